package cpu

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/predict"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// zen is a Zen 4, whatever machine runs the test.
var zen = predict.Machine{Level: simd.AVX512, Near: 32 << 10, Own: 1 << 20, Last: 32 << 20}

// plan returns a planner of so many workers with kernels that every machine has.
func plan(t *testing.T, workers int) *planner {
	t.Helper()
	k, err := simd.For(simd.Generic)
	if err != nil {
		t.Fatal(err)
	}
	return &planner{workers: workers, kernels: k, gemm: gemm.New(k, int(zen.Own))}
}

// seconds returns the predicted seconds of s on so many workers of zen.
func seconds(t *testing.T, workers int, s *schedule.Schedule, k knob.Params) float64 {
	t.Helper()
	f, err := format(s)
	if err != nil {
		t.Fatal(err)
	}
	sec, err := predict.Seconds(plan(t, workers).outline(s, f, k), zen)
	if err != nil || !(sec > 0) || math.IsInf(sec, 0) {
		t.Fatalf("%v s, %v", sec, err)
	}
	return sec
}

// products returns a schedule of products of m rows by packed weights of k rows and n columns, so
// many on each stream.
func products(t *testing.T, streams, count, m, n, k int) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(streams)
	for stream := range streams {
		a, c, w, p := b.Matrix("a", m, k), b.Matrix("c", m, n), b.Matrix("w", k, n), b.Packed("p", k, n)
		b.Prepare(schedule.Pack{Src: w.All(), Dst: p.All()})
		for range count {
			b.Do(stream, schedule.Gemm{A: a.All(), B: p.All(), C: c.All()})
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPredictedInPlace: in training, products pack weights as they go, so no separate pack is
// predicted.
func TestPredictedInPlace(t *testing.T) {
	b := schedule.NewBuilder(1)
	w, p, a, c := b.Matrix("w", 512, 512), b.Packed("p", 512, 512), b.Matrix("a", 4, 512), b.Matrix("c", 4, 512)
	b.Do(0, schedule.Pack{Src: w.All(), Dst: p.All()})
	b.Do(0, schedule.Gemm{A: a.All(), B: p.All(), C: c.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(plan(t, 1).outline(s, simd.F32, nil).Schedule.Nodes); n != 1 {
		t.Errorf("%d operations are predicted, not the product alone", n)
	}
}

// TestPredictedStreams: teams serve streams side by side, and sharing small products gains nothing.
func TestPredictedStreams(t *testing.T) {
	s := products(t, 2, 50, 4, 64, 64)
	one, two := seconds(t, 1, s, nil), seconds(t, 2, s, knob.Params{"teams": 2})
	if ratio := one / two; ratio < 1.5 || ratio > 2 {
		t.Errorf("two teams take %.3g s, one worker %.3g s", two, one)
	}
	if shared := seconds(t, 2, s, knob.Params{"teams": 1}); shared < one {
		t.Errorf("two workers that share products take %.3g s, one %.3g s", shared, one)
	}
	large := products(t, 1, 4, 128, 512, 512)
	one, two = seconds(t, 1, large, nil), seconds(t, 2, large, nil)
	if ratio := one / two; ratio < 1.8 || ratio > 2.05 {
		t.Errorf("large products take two workers %.3g s, one %.3g s", two, one)
	}
}

// TestPredictedWait: a stream that waits for another one is no faster than one stream.
func TestPredictedWait(t *testing.T) {
	b := schedule.NewBuilder(2)
	var at [9]*schedule.Matrix
	for i := range at {
		at[i] = b.Matrix("x", 64, 64)
	}
	w := b.Matrix("w", 64, 64)
	for i := range len(at) - 1 {
		b.Do(i%2, schedule.Gemm{A: at[i].All(), B: w.All(), C: at[i+1].All()})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	if two, one := seconds(t, 2, s, knob.Params{"teams": 2}), seconds(t, 1, s, nil); two <= one {
		t.Errorf("a chain over two teams takes %.3g s, and one worker %.3g s", two, one)
	}
}

// TestPredictedLayers: time grows with steps, and workers share large layers.
func TestPredictedLayers(t *testing.T) {
	for _, l := range []devicetest.Layer{
		{Cell: cell.LSTM, Hidden: 512, Batch: 16}, {Cell: cell.GRU, Hidden: 24, Batch: 8}, {Cell: cell.RNNTanh, Hidden: 300, Batch: 1},
		{Cell: cell.LSTM, Hidden: 512, Batch: 16, Backward: true, Train: true}, {Cell: cell.RNNTanh, Hidden: 640, Batch: 2, Precision: schedule.BF16},
	} {
		of := func(steps, workers int) float64 {
			l.Steps = steps
			s, err := l.Schedule(1)
			if err != nil {
				t.Fatal(err)
			}
			return seconds(t, workers, s, nil)
		}
		if ratio := (of(80, 1) - of(40, 1)) / (of(40, 1) - of(20, 1)); ratio < 1.8 || ratio > 2.2 {
			t.Errorf("%v: 40 steps more take %.3g times 20 steps more", l, ratio)
		}
		if ratio := of(40, 1) / of(40, 2); l.Hidden > 500 && (ratio < 1.3 || ratio > 2.1) {
			t.Errorf("%v: two workers are %.3g times as fast", l, ratio)
		}
	}
}

// TestPredictedGroupsOfOne: a layer is predicted with groups of workers also if it is so small that
// one worker runs it alone.
func TestPredictedGroupsOfOne(t *testing.T) {
	for _, backward := range []bool{false, true} {
		s, err := devicetest.Layer{Cell: cell.RNNTanh, Hidden: 4, Batch: 2, Steps: 3, Train: backward, Backward: backward}.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		if one, two := seconds(t, 4, s, nil), seconds(t, 4, s, knob.Params{"crews": 2}); two > 2*one || one > 2*two {
			t.Errorf("backward %v: %.3g s, in two groups %.3g s", backward, one, two)
		}
	}
}

// TestPredictDeclines: Predict declines what Compile declines, for the same reason.
func TestPredictDeclines(t *testing.T) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 16, Batch: 1, Steps: 3}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	tf32 := *s
	tf32.Precision = schedule.TF32
	for _, c := range []struct {
		s    *schedule.Schedule
		k    knob.Params
		want error
	}{{s, knob.Params{"bands": 1}, nil}, {s, knob.Params{"bands": 2}, schedule.ErrKnob}, {&tf32, nil, schedule.ErrPrecision}} {
		compiled := d.compiles(c.s, c.k)
		x, err := d.Predict(c.s, c.k)
		if c.want == nil && (err != nil || x.Seconds <= 0 || x.Error <= 0) || c.want != nil && !errors.Is(err, c.want) || (err == nil) != (compiled == nil) {
			t.Errorf("%v: %+v, %v; Compile says %v", c.k, x, err, compiled)
		}
	}
}

// compiles returns the error of Compile for s.
func (d *Device) compiles(s *schedule.Schedule, k knob.Params) error {
	p, err := d.Compile(s, k)
	if err != nil {
		return err
	}
	return p.Close()
}
