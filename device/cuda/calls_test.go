package cuda_test

import (
	"slices"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// summing is a schedule whose run adds the first row of x to the first row of sum, and multiplies
// the sum. x has width columns, in 16 bits if the precision has 16.
func summing(t *testing.T, p schedule.Precision, width int) (s *schedule.Schedule, x, sum, y *schedule.Matrix) {
	t.Helper()
	b := schedule.NewBuilder(2)
	b.SetPrecision(p)
	x, sum, y = b.Matrix("x", 2, width), b.Matrix("sum", 2, width), b.Matrix("y", 2, 8)
	b.Do(0, schedule.Map{Op: cell.Add, Out: sum.All(), A: sum.All(), B: x.All()})
	b.Do(1, schedule.Gemm{A: x.All(), B: b.Matrix("w", width, 8).All(), C: y.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, x, sum, y
}

// callAll makes five calls with two alternating inputs, launched one by one and as a graph. Rows
// are whole words of 32 bits, or not.
func callAll(t *testing.T, d device.Device) {
	for i := range 8 {
		precision, width, graph := []schedule.Precision{schedule.FP32, schedule.BF16}[i%2], []int{16, 3}[i/2%2], i/4 // rows of whole words and not
		s, x, sum, y := summing(t, precision, width)
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
		inputs := append(slices.Repeat([]float32{1}, width), slices.Repeat([]float32{0.5}, width)...)
		took, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: width, Out: y, Read: 8, N: 5})
		if err != nil || len(took.Wall) != 5 || len(took.Run) != 5 {
			t.Fatalf("%v, graph=%d: %v: %+v", precision, graph, err, took)
		}
		got := make([]float32, width)
		if err := p.Read(sum, got); err != nil || !slices.Equal(got, slices.Repeat([]float32{4}, width)) {
			t.Errorf("%v, graph=%d: after five calls the sum is %v: %v", precision, graph, got, err)
		}
		for i, w := range took.Wall {
			if w <= 0 || took.Run[i] < 0 {
				t.Errorf("%v, graph=%d: call %d took %v, its run %v", precision, graph, i, w, took.Run[i])
			}
		}
		if _, here := d.(*cuda.Device); here { // not in a worker
			serves(t, p, device.Calls{In: x, Inputs: inputs, Each: width, Out: y, Read: 8, N: 3}, s)
		}
		if _, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: width, Out: y, Read: 9, N: 1}); err == nil {
			t.Error("a part of a row is read")
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := device.Call(p, device.Calls{In: x, Inputs: inputs, Each: width, Out: y, Read: 8, N: 1}); err == nil {
			t.Error("a closed program makes calls")
		}
	}
}

// serves holds what the host receives from each call to the call's input: a product with ones.
func serves(t *testing.T, p device.Program, c device.Calls, s *schedule.Schedule) {
	t.Helper()
	w := s.Matrices[slices.IndexFunc(s.Matrices, func(m *schedule.Matrix) bool { return m.Name == "w" })]
	if err := p.Write(w, slices.Repeat([]float32{1}, w.Elements())); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 3; n++ {
		got, err := cuda.Served(p, c, n)
		if err != nil {
			t.Fatal(err)
		}
		want := float32(c.Each) * []float32{0.5, 1}[n%2]
		y := make([]float32, c.Read) // in single precision
		copy(driver.Bytes(y), got)
		if !slices.Equal(y, slices.Repeat([]float32{want}, c.Read)) {
			t.Errorf("call %d: %v, want %v", n, y, want)
		}
	}
}

// TestCalls: calls are made one by one, with alternating inputs.
func TestCalls(t *testing.T) {
	d, _ := emulated(t)
	callAll(t, d)
}

// TestGPUCalls makes them on a GPU.
func TestGPUCalls(t *testing.T) { callAll(t, openGPU(t, time.Minute)) }
