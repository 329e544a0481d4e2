package impl_test

import (
	"errors"
	"runtime"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// longProblems have many steps and few units.
var longProblems = []struct {
	technique string
	problem   rnn.Problem
	knobs     knob.Params
	step      int64 // bytes at most that the schedule and the CPU's program take for each step
}{
	{"naive", rnn.Problem{}, nil, 8400},
	{"naive", rnn.Problem{Pass: rnn.Train, Output: 3}, nil, 26500},
	{"cudnnstyle", rnn.Problem{}, nil, 2600},
	{"cudnnstyle", rnn.Problem{Pass: rnn.Train, Layers: 2}, knob.Params{"streams": 4, "inputbatch": 4}, 9400},
	{"cudnnstyle", rnn.Problem{Pass: rnn.Train}, knob.Params{"streams": 1, "inputbatch": 100, "fused": 0, "grouped": 0, "weightgrad": 1}, 22000},
	{"scc", rnn.Problem{}, nil, 3700},
	{"scc", rnn.Problem{Pass: rnn.Train, History: 4500}, nil, 8800},
	{"scc", rnn.Problem{Pass: rnn.Train, Output: 3}, knob.Params{"intra": 0, "fused": 0}, 18000},
	{"persistent", rnn.Problem{Pass: rnn.Train}, nil, 300},
	{"persistent", rnn.Problem{Pass: rnn.Train, Layers: 2, Projection: 1}, nil, 600},
}

// heap returns the bytes in use on the heap.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestLongSchedules compares the memory of a long schedule with its predictions: before layout,
// after layout, and for the program that a device makes of it.
func TestLongSchedules(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	near := func(a, b, part int64) bool { return max(a-b, b-a) <= b/part+64<<10 }
	for _, test := range longProblems {
		p := test.problem
		p.Cell, p.Input, p.Hidden, p.Batch, p.Layers, p.Steps = cell.LSTM, 2, 2, 1, max(1, p.Layers), 5000
		before := heap()
		plan, s, err := rnn.Layout(impl.Lookup(test.technique), p, test.knobs)
		if err != nil {
			t.Fatal(err)
		}
		laid := heap() - before
		if said := s.Size(); !near(laid, said, 6) {
			t.Errorf("%s %v: the schedule takes %d KiB, predicted %d", test.technique, p, laid>>10, said>>10)
		}
		var large *rnn.TooLarge
		if _, _, err := rnn.LayoutWithin(impl.Lookup(test.technique), p, test.knobs, 1); !errors.As(err, &large) {
			t.Errorf("%s %v: %v", test.technique, p, err)
		} else if !near(large.Bytes, rnn.ScheduleBytes(s), 50) {
			t.Errorf("%s %v: laying it out takes %d KiB, predicted %d", test.technique, p, rnn.ScheduleBytes(s)>>10, large.Bytes>>10)
		}
		said, err := d.Memory(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range s.Matrices { // they are outside of the heap
			said -= 4 * int64(m.Elements()+32)
		}
		prog, err := d.Compile(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		bound := heap() - before - laid
		if !near(bound, said, 6) {
			t.Errorf("%s %v: the program takes %d KiB, predicted %d", test.technique, p, bound>>10, said>>10)
		}
		if step := (laid + bound) / int64(p.Frames()); step > test.step {
			t.Errorf("%s %v: a step takes %d bytes, want %d at most", test.technique, p, step, test.step)
		}
		prog.Close()
		runtime.KeepAlive(plan)
		runtime.KeepAlive(s)
	}
}
