package cpu

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// zen holds the caches of a Zen 4, whatever machine runs the test.
var zen = caches{near: 32 << 10, own: 1 << 20, last: 32 << 20}

// plan returns a planner of so many workers with kernels that every machine has.
func plan(t *testing.T, workers int) *planner {
	t.Helper()
	k, err := simd.For(simd.Generic)
	if err != nil {
		t.Fatal(err)
	}
	return &planner{workers: workers, kernels: k, gemm: gemm.New(k, int(zen.own))}
}

// seconds returns the predicted seconds of s on so many workers of zen.
func seconds(t *testing.T, workers int, s *schedule.Schedule, k knob.Params) float64 {
	t.Helper()
	f, err := format(s)
	if err != nil {
		t.Fatal(err)
	}
	sec, err := plan(t, workers).predict(s, f, k, ratesOf(simd.AVX512), zen)
	if err != nil || !(sec > 0) || math.IsInf(sec, 0) {
		t.Fatalf("%v s, %v", sec, err)
	}
	return sec
}

// products returns a schedule of products by packed weights of k rows and n columns, on streams in
// turn. Each stream reads the same few weights again and again.
func products(t *testing.T, streams, weights, count, m, n, k int) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(streams)
	for stream := range streams {
		a, c := b.Matrix("a", m, k), b.Matrix("c", m, n)
		var packed []schedule.View
		for range weights {
			w, p := b.Matrix("w", k, n), b.Packed("p", k, n)
			b.Prepare(schedule.Pack{Src: w.All(), Dst: p.All()})
			packed = append(packed, p.All())
		}
		for i := range count {
			b.Do(stream, schedule.Gemm{A: a.All(), B: packed[i%weights], C: c.All()})
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPredictedProductsOfTiles compares predictions with times of a Sapphire Rapids core with AMX
// and weights in L2.
func TestPredictedProductsOfTiles(t *testing.T) {
	k := simd.Model(simd.AMX)
	rapids := caches{near: 48 << 10, own: 2 << 20, last: 480 << 20}
	pl := &planner{workers: 1, kernels: k, gemm: gemm.New(k, int(rapids.own))}
	for _, c := range []struct {
		m, n, k int
		micros  float64
	}{{2, 1024, 512, 6.9}, {4, 512, 512, 3.6}, {8, 1024, 512, 7.4}, {16, 512, 512, 5.7}, {16, 1024, 512, 9.7}, {32, 512, 512, 10.1}, {64, 1024, 512, 35}} {
		s := products(t, 1, 1, 100, c.m, c.n, c.k)
		s.Precision = schedule.BF16
		sec, err := pl.predict(s, simd.BF16, nil, ratesOf(simd.AMX), rapids)
		if got := 1e6 * sec / 100; err != nil || got > 1.3*c.micros || got < c.micros/1.3 {
			t.Errorf("%d×%d×%d: %.2f µs, measured %.2f, %v", c.m, c.n, c.k, got, c.micros, err)
		}
	}
}

// TestPredictedProducts compares predictions with times of a Zen 4 core with AVX-512.
func TestPredictedProducts(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		micros  float64
	}{
		{1, 234, 234, 2.03}, {1, 998, 998, 42.2}, {2, 496, 124, 2.32}, {4, 93, 93, 0.68}, {5, 1145, 1145, 117},
		{8, 349, 698, 35.0}, {13, 297, 297, 20.7}, {14, 164, 656, 27.9}, {16, 56, 224, 4.04},
	} {
		const count = 100
		got := 1e6 * seconds(t, 1, products(t, 1, 1, count, c.m, c.n, c.k), nil) / count
		if ratio := got / c.micros; ratio < 0.8 || ratio > 1.25 {
			t.Errorf("%d rows by %d×%d: predicted %.3g µs, measured %.3g µs", c.m, c.k, c.n, got, c.micros)
		}
	}
}

// TestPredictedWidening compares predictions of products by weights of 16 bits with times of a core
// with AVX2. Elements are widened among the multiply-adds, so with one or two rows both take time.
func TestPredictedWidening(t *testing.T) {
	for _, c := range []struct {
		m, n, k int
		micros  float64
	}{{1, 152, 152, 0.94}, {1, 603, 87, 2.57}, {2, 87, 603, 3.3}, {2, 603, 87, 3.1}} {
		s := products(t, 1, 1, 100, c.m, c.n, c.k)
		s.Precision = schedule.BF16
		sec, err := plan(t, 1).predict(s, simd.BF16, nil, ratesOf(simd.AVX2), zen)
		if got := 1e6 * sec / 100; err != nil || got > 1.25*c.micros || got < c.micros/1.25 {
			t.Errorf("%d×%d×%d: %.2f µs, measured %.2f, %v", c.m, c.n, c.k, got, c.micros, err)
		}
	}
}

// TestPredictedResults: results that exceed a core's own caches take time to write.
func TestPredictedResults(t *testing.T) {
	row := func(rows int) float64 { return seconds(t, 1, products(t, 1, 1, 4, rows, 128, 8), nil) / float64(rows) }
	if near, far := row(200), row(20000); far < 1.05*near {
		t.Errorf("a row takes %.3g s of 200, and %.3g s of 20,000", near, far)
	}
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
	f := newForecast(plan(t, 1), s, simd.F32, nil, ratesOf(simd.Generic), zen)
	if n := len(f.schedule.Nodes); n != 1 {
		t.Errorf("%d operations are predicted, not the product alone", n)
	}
}

// TestPredictedMemory: weights that were read long ago come from further away.
func TestPredictedMemory(t *testing.T) {
	each := func(weights int) float64 {
		const count = 512
		return seconds(t, 1, products(t, 1, weights, count, 1, 256, 256), nil) / count // weights of 256 KiB
	}
	if one, some, many := each(1), each(64), each(256); !(one < some && some < many) {
		t.Errorf("weights of 256 KiB take %.3g s, of 16 MiB %.3g s, of 64 MiB %.3g s a product", one, some, many)
	}
}

// TestPredictedRows: rows in far memory take longer if they are not contiguous. When all rows were
// predicted to, predictions of scc were 1.5 to 2.4 times too long for layers of one gate and many
// sequences.
func TestPredictedRows(t *testing.T) {
	const rows = 60 * 400
	row := func(cols, of int) float64 {
		b := schedule.NewBuilder(1)
		x, bias := b.Matrix("x", rows, of), b.Matrix("bias", 1, cols)
		part := schedule.View{M: x, Rows: rows, Cols: cols}
		b.Do(0, schedule.Map{Op: cell.Add, Out: part, A: part, B: bias.All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		return 1e9 * seconds(t, 1, s, nil) / rows
	}
	behind, apart := row(32, 32), row(32, 128)
	if behind > 25 || apart < behind+30 {
		t.Errorf("a row takes %.3g ns behind another, %.3g ns apart", behind, apart)
	}
}

// TestPredictedStreams: teams serve streams side by side, and sharing small products gains nothing.
func TestPredictedStreams(t *testing.T) {
	s := products(t, 2, 1, 50, 4, 64, 64)
	one, two := seconds(t, 1, s, nil), seconds(t, 2, s, knob.Params{"teams": 2})
	if ratio := one / two; ratio < 1.5 || ratio > 2 {
		t.Errorf("two teams take %.3g s, one worker %.3g s", two, one)
	}
	if shared := seconds(t, 2, s, knob.Params{"teams": 1}); shared < one {
		t.Errorf("two workers that share products take %.3g s, one %.3g s", shared, one)
	}
	large := products(t, 1, 1, 4, 128, 512, 512)
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

// TestPredictedFewKinds: equal operations are predicted once, so that predicting long schedules is
// fast.
func TestPredictedFewKinds(t *testing.T) {
	s := products(t, 1, 2, 1000, 4, 64, 64)
	p := newForecast(plan(t, 1), s, simd.F32, nil, ratesOf(simd.Generic), zen)
	if _, err := p.operations(); err != nil || len(p.known) > 4 {
		t.Errorf("%d kinds of products, %v", len(p.known), err)
	}
}

// TestPredictedCalls: if one call runs all steps of a sequence, the prediction for a step is within
// a quarter of the time on a Sapphire Rapids (nanoseconds).
func TestPredictedCalls(t *testing.T) {
	rapids := caches{near: 48 << 10, own: 2 << 20, last: 480 << 20}
	p := &forecast{planner: plan(t, 1), core: core{ratesOf(simd.AMX), rapids}}
	for _, c := range []struct {
		cell   *cell.Cell
		hidden int
		took   float64
	}{
		{cell.LSTM, 16, 70}, {cell.LSTM, 32, 144}, {cell.LSTM, 64, 622}, {cell.LSTM, 128, 1974},
		{cell.GRU, 32, 102}, {cell.GRU, 64, 319}, {cell.GRU, 128, 1715},
		{cell.Lookup("rnn-tanh"), 16, 32}, {cell.Lookup("rnn-tanh"), 48, 82}, {cell.Lookup("rnn-tanh"), 96, 202},
		{cell.Lookup("rnn-relu"), 16, 13.6}, {cell.Lookup("rnn-relu"), 32, 23.6}, {cell.Lookup("rnn-relu"), 64, 88}, {cell.Lookup("rnn-relu"), 128, 485},
	} {
		w := &persistent{band: band{hidden: c.hidden}, weights: make([][]float32, c.cell.Recurrent)}
		if got := 1e9 * p.stepInCall(w, c.cell.Inference, c.hidden); got < 0.75*c.took || got > 1.25*c.took {
			t.Errorf("a step of %v of %d units is predicted to take %.1f ns, and took %.1f", c.cell, c.hidden, got, c.took)
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
