package cuda_test

import (
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// summing is a schedule each run of which adds the first row of x, which is stored in 16 bits where
// the precision has so many, to the first row of sum, and multiplies what it has.
func summing(t *testing.T, p schedule.Precision) (s *schedule.Schedule, x, sum, y *schedule.Matrix) {
	t.Helper()
	b := schedule.NewBuilder(2)
	b.SetPrecision(p)
	x, sum, y = b.Matrix("x", 2, 16), b.Matrix("sum", 2, 16), b.Matrix("y", 2, 8)
	b.Do(0, schedule.Map{Op: cell.Add, Out: sum.All(), A: sum.All(), B: x.All()})
	b.Do(1, schedule.Gemm{A: x.All(), B: b.Matrix("w", 16, 8).All(), C: y.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, x, sum, y
}

// callAll makes five calls with two inputs in turns, launched one by one and as a graph.
func callAll(t *testing.T, d device.Device) {
	for _, precision := range []schedule.Precision{schedule.FP32, schedule.BF16} {
		s, x, sum, y := summing(t, precision)
		for _, graph := range []int{0, 1} {
			p, err := d.Compile(s, knob.Params{"graph": graph})
			if err != nil {
				t.Fatal(err)
			}
			if _, near := p.(device.Caller); !near {
				t.Error("calls are made from afar")
			}
			if err := p.Prepare(); err != nil {
				t.Fatal(err)
			}
			inputs := append(slices.Repeat([]float32{1}, 16), slices.Repeat([]float32{0.5}, 16)...)
			took, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: 16, Out: y, Read: 8, N: 5})
			if err != nil || len(took.Wall) != 5 || len(took.Run) != 5 {
				t.Fatalf("%v, graph=%d: %v: %+v", precision, graph, err, took)
			}
			got := make([]float32, 16)
			if err := p.Read(sum, got); err != nil || !slices.Equal(got, slices.Repeat([]float32{4}, 16)) {
				t.Errorf("%v, graph=%d: after five calls the sum is %v: %v", precision, graph, got, err)
			}
			for i, w := range took.Wall {
				if w <= 0 || took.Run[i] < 0 {
					t.Errorf("%v, graph=%d: call %d took %v, its run %v", precision, graph, i, w, took.Run[i])
				}
			}
			if _, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: 16, Out: y, Read: 9, N: 1}); err == nil {
				t.Error("a part of a row is read")
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: 16, Out: y, Read: 8, N: 1}); err == nil {
				t.Error("a closed program makes calls")
			}
		}
	}
}

// TestCalls: calls are made one by one, with the inputs in turns.
func TestCalls(t *testing.T) {
	d, _ := emulated(t)
	callAll(t, d)
}

// TestGPUCalls makes them on a GPU.
func TestGPUCalls(t *testing.T) { callAll(t, openGPU(t, time.Minute)) }
