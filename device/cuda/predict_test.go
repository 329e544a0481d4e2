package cuda_test

import (
	"errors"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestPredict: a run's predicted time grows with its steps, and a graph saves the host's time for
// launches.
func TestPredict(t *testing.T) {
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	seconds := func(l devicetest.Layer, k knob.Params) float64 {
		t.Helper()
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := d.Predict(s, k)
		if err != nil || p.Error <= 0 || p.Error >= 1 {
			t.Fatalf("%+v: %+v, %v", l, p, err)
		}
		return p.Seconds
	}
	l := devicetest.Layer{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 100, Precision: schedule.BF16}
	once, graphed := seconds(l, nil), seconds(l, knob.Params{"graph": 1})
	// Measured on an H200: 82 to 90 µs.
	if once < 60e-6 || once > 130e-6 || graphed >= once {
		t.Errorf("100 steps take %.3g s, and %.3g s as a graph", once, graphed)
	}
	l.Steps = 400
	if more := seconds(l, nil); more < 3*once || more > 4.1*once {
		t.Errorf("400 steps take %.3g s, 100 %.3g s", more, once)
	}
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 9000, Batch: 16, Steps: 10, Precision: schedule.FP32}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Predict(s, nil); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("a layer that no kernel has room for: %v", err)
	}
}

// TestPredictTimesLaunches: a device times its launches only after TimeLaunches.
func TestPredictTimesLaunches(t *testing.T) {
	d, _ := emulated(t)
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 8, Batch: 2, Steps: 3, Precision: schedule.FP32}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	usual, err := d.Predict(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cuda.Dispatch(d); got.Host != 0 || got.Graph != 0 {
		t.Errorf("launches were timed unasked: %+v", got)
	}
	d.TimeLaunches()
	for range 2 {
		p, err := d.Predict(s, nil)
		if err != nil || p.Seconds <= 0 || p.Seconds > 8*usual.Seconds {
			t.Errorf("a run takes %g s, and %g s with launches timed: %v", usual.Seconds, p.Seconds, err)
		}
	}
	if got := cuda.Dispatch(d); got.Host <= 0 || got.Graph <= 0 {
		t.Errorf("launches take %+v", got)
	}
}

// TestPredictBarrier: a layer in one group with a barrier, the last resort, is predicted to take
// longer than the variant that runs by default.
func TestPredictBarrier(t *testing.T) {
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []devicetest.Layer{
		{Cell: cell.RNNTanh, Hidden: 65, Batch: 2, Steps: 137, Precision: schedule.FP32},
		{Cell: cell.LSTM, Hidden: 512, Batch: 16, Steps: 100, Precision: schedule.BF16},
		{Cell: cell.GRU, Hidden: 309, Batch: 1, Steps: 96, Precision: schedule.FP16, Backward: true},
	} {
		s, err := l.Schedule(1)
		if err != nil {
			t.Fatal(err)
		}
		usual, err1 := d.Predict(s, nil)
		barrier, err2 := d.Predict(s, knob.Params{"resident": 3})
		if err := errors.Join(err1, err2); err != nil || barrier.Seconds <= usual.Seconds || barrier.Seconds > 20*usual.Seconds {
			t.Errorf("%s of %d units: %.3g s, and %.3g s with a barrier, %v", l.Cell.Name, l.Hidden, usual.Seconds, barrier.Seconds, err)
		}
	}
}

// TestPredictStreams: products of several streams share the GPU. Large ones take as long as one
// after the other, and small ones run side by side.
func TestPredictStreams(t *testing.T) {
	d, err := cuda.Machine("h200")
	if err != nil {
		t.Fatal(err)
	}
	products := func(streams, size int, p schedule.Precision) float64 {
		b := schedule.NewBuilder(streams)
		b.SetPrecision(p)
		for i := range streams {
			for range 16 / streams {
				b.Do(i, schedule.Gemm{A: b.Matrix("a", size, size).All(), B: b.Matrix("b", size, size).All(), C: b.Matrix("c", size, size).All()})
			}
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		found, err := d.Predict(s, knob.Params{"graph": 1})
		if err != nil {
			t.Fatal(err)
		}
		return found.Seconds
	}
	for _, p := range []schedule.Precision{schedule.FP32, schedule.BF16} {
		if one, four := products(1, 4096, p), products(4, 4096, p); four > one || four < 0.8*one {
			t.Errorf("%v: large products take %.3g s on one stream and %.3g s on four", p, one, four)
		}
		if one, four := products(1, 128, p), products(4, 128, p); four > 0.5*one {
			t.Errorf("%v: small products take %.3g s on one stream and %.3g s on four", p, one, four)
		}
	}
}
