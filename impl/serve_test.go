package impl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestServed compares calls with states kept on the device with the reference of one sequence.
func TestServed(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	problems := slices.Concat(impltest.CallProblems(rnn.FP32), impltest.CallProblems(rnn.BF16), impltest.CallProblems(rnn.INT8))
	if testing.Short() {
		problems = slices.Concat(impltest.CallProblems(rnn.FP32), impltest.CallProblems(rnn.INT8)[:8])
	}
	impltest.RunCalls(t, d, impl.Direct(), problems)
}

// TestEmulatedCalls does the same on the CUDA device without a GPU, with a few cells.
func TestEmulatedCalls(t *testing.T) {
	d := emulated(t)
	var problems []rnn.Problem
	for _, p := range slices.Concat(impltest.CallProblems(rnn.FP32), impltest.CallProblems(rnn.BF16)) {
		if slices.Contains([]*cell.Cell{cell.LSTM, cell.GRU, cell.SRU, cell.LSTMC}, p.Cell) {
			problems = append(problems, p)
		}
	}
	impltest.RunCalls(t, d, slices.Concat(impl.Direct(), impl.Vendors()), problems)
}

// TestServedDeclines: calls keep states alone, so a cell that reads earlier inputs is declined. So
// is training.
func TestServedDeclines(t *testing.T) {
	p := rnn.Problem{Cell: cell.QRNN2, Input: 3, Hidden: 5, Layers: 1, Batch: 2, Steps: 1, Calls: 3}
	_, _, err := rnn.Layout(impl.Lookup("naive"), p, nil)
	if !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), "only states are kept") {
		t.Errorf("a cell that reads earlier inputs: %v", err)
	}
	p.Cell, p.Pass = cell.LSTM, rnn.Train
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "use pass forward") {
		t.Errorf("training: %v", err)
	}
}
