package worker_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestKernels: a program lists the same kernels in a worker as in this process.
func TestKernels(t *testing.T) {
	here, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	there, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	s, err := devicetest.Case{Layer: devicetest.Layer{Cell: cell.LSTM, Hidden: 20, Batch: 2, Steps: 3}, Stepwise: true}.Build()
	if err != nil {
		t.Fatal(err)
	}
	var lists [2][]device.Kernel
	for i, d := range []device.Device{here, there} {
		p, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if lists[i] = p.Kernels(); p.Close() != nil {
			t.Error("Close failed")
		}
	}
	if len(lists[0]) == 0 || !reflect.DeepEqual(lists[0], lists[1]) {
		t.Errorf("here %+v, there %+v", lists[0], lists[1])
	}
	for _, k := range lists[0] {
		if want := map[string]int{"gemm": 3, "cell": 3}[k.Name]; k.Variant == "" || want > 0 && k.Launches != want {
			t.Errorf("three steps launch kernel %+v", k)
		}
	}
}

// made is the explanation of clumsy devices for a knob's value n.
func made(n int) device.Explanation {
	return device.Explanation{
		Kernels: []device.Kernel{{Name: "k", Variant: "v", Grid: [3]int{1, 2, 3}, Registers: n, Launches: 1, Seconds: 0.5}},
		Choices: []device.Choice{{Layer: "a layer", Count: 2, Steps: 3, Runs: device.Option{Variant: "v", Cycles: 7}, Others: []device.Option{{Variant: "w", Why: "it does not fit"}}}},
		Passes:  []device.Pass{{Name: "first", Found: []string{"one", "two"}}},
	}
}

// Explain implements device.Explainer. If n is large, it returns an error besides the explanation.
func (clumsy) Explain(s *schedule.Schedule, k knob.Params) (device.Explanation, error) {
	if k["n"] > 100 {
		return made(k["n"]), fmt.Errorf("too much: %w", schedule.ErrUnsupported)
	}
	return made(k["n"]), nil
}

// TestExplain: an explanation comes back from a worker unchanged, also along with an error.
func TestExplain(t *testing.T) {
	d, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 8, Batch: 1, Steps: 2}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := d.Explain(s, knob.Params{"n": 5}); err != nil || !reflect.DeepEqual(e, made(5)) {
		t.Errorf("got %+v, %v", e, err)
	}
	if e, err := d.Explain(s, knob.Params{"n": 101}); !errors.Is(err, schedule.ErrUnsupported) || !reflect.DeepEqual(e, made(101)) {
		t.Errorf("got %+v, %v", e, err)
	}
}

// Predict implements device.Predictor.
func (clumsy) Predict(s *schedule.Schedule, k knob.Params) (device.Prediction, error) {
	if k["n"] > 100 {
		return device.Prediction{}, fmt.Errorf("too much: %w", schedule.ErrUnsupported)
	}
	return device.Prediction{Seconds: float64(len(s.Nodes) + k["n"]), Error: 0.25}, nil
}

// TestPredict: a prediction comes back from a worker unchanged.
func TestPredict(t *testing.T) {
	d, err := open(t, "serve", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err := devicetest.Layer{Cell: cell.LSTM, Hidden: 8, Batch: 1, Steps: 2}.Schedule(1)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := d.Predict(s, knob.Params{"n": 5}); err != nil || p != (device.Prediction{Seconds: float64(len(s.Nodes) + 5), Error: 0.25}) {
		t.Errorf("got %+v, %v", p, err)
	}
	if _, err := d.Predict(s, knob.Params{"n": 101}); !errors.Is(err, schedule.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
