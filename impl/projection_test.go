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
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// TestProjectionStepwise checks layers with a projection step by step, and plants faults in outputs,
// in what is projected, and in gradients.
func TestProjectionStepwise(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range []*cell.Cell{cell.LSTM, cell.LSTMPeephole, cell.SLSTM, cell.LSTM, cell.LSTMPeephole, cell.SLSTM} {
		p := rnn.Problem{Cell: c, Input: 5, Hidden: 11, Projection: 3 + 3*(i%3), Layers: 2, Batch: 3, Steps: 9, Output: 4 * (i % 2), Pass: rnn.Train}
		data := rnn.NewData(p, 1, 2, "normal")
		plan, prog := ran(t, d, []string{"cudnnstyle", "persistent"}[i/3], p, data)
		got := plantFaults(t, plan, prog, data, map[string]float64{
			"h_l0": 1, "h_l1": 1, "unprojected_l0": 1, "grad_weight_hr_l1": 1, "grad_weight_hh_l0": 1, "grad_h0_l0": 1, "grad_c0_l1": 1, "dx": 1,
		})
		for _, flops := range []float64{1e5, 1e3} {
			if dev, _, err := (oracle.Stepwise{FLOPs: flops}).Check(plan, prog, data, got); err != nil || !dev.OK() {
				t.Errorf("%v, %v operations: %v, %v", p, flops, dev, err)
			}
		}
	}
}

// TestProjectionDeclines: techniques and cells without a projection decline it.
func TestProjectionDeclines(t *testing.T) {
	for _, c := range []struct {
		technique string
		cell      *cell.Cell
		want      string
	}{
		{"scc", cell.LSTM, "no projection of a loop's outputs"},

		{"cudnn", cell.LSTM, "without a projection"},
		{"scan", cell.LSTM, "is not a linear recurrence"},
		{"naive", cell.SRU, "has no recurrent product"},
		{"naive", cell.QRNN, "has no recurrent product"},
		{"naive", cell.LSTMC, "has no recurrent product"},
		{"naive", cell.GRU, "needs its output of all units at the next step"},
		{"naive", cell.RNNTanh, "needs its output of all units at the next step"},
		{"cudnnstyle", cell.LSLSTM, "reads a state that is not its output"},
	} {
		p := rnn.Problem{Cell: c.cell, Input: 4, Hidden: 6, Projection: 2, Layers: 1, Batch: 1, Steps: 2}
		_, _, err := rnn.Layout(impl.Lookup(c.technique), p, nil)
		if !errors.Is(err, schedule.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v", c.technique, c.cell, err)
		}
	}
	p := rnn.Problem{Cell: cell.LSTM, Input: 4, Hidden: 6, Projection: 2, Layers: 1, Batch: 1, Steps: 1}
	if _, _, err := rnn.Layout(impl.Lookup("persistent"), p, nil); !errors.Is(err, schedule.ErrProjection) || !strings.Contains(err.Error(), "no weights stay on chip") {
		t.Errorf("persistent of one step: %v", err)
	}
	p.Steps = 2
	for _, projection := range []int{-1, 6, 7} {
		p.Projection = projection
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "less than the hidden units") {
			t.Errorf("a projection of %d: %v", projection, err)
		}
	}
	p.Projection, p.Heads = 4, 2
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "would mix the heads") {
		t.Errorf("heads: %v", err)
	}
}

// TestProjectionCells lists the cells that can have one: only the recurrent product reads their
// output.
func TestProjectionCells(t *testing.T) {
	var names []string
	for _, c := range cell.All() {
		if c.Projects() {
			names = append(names, c.Name)
		}
	}
	if want := []string{"lstm", "lstm-peephole", "slstm"}; !slices.Equal(names, want) {
		t.Errorf("cells %v, want %v", names, want)
	}
}

// TestEmulatedProjection runs an LSTM with a projection on the CUDA device without a GPU: one
// problem for each technique and precision.
func TestEmulatedProjection(t *testing.T) {
	d := emulated(t)
	for i, tech := range []string{"cudnnstyle", "naive", "persistent"} {
		var some []rnn.Problem
		for j, precision := range []rnn.Precision{rnn.BF16, rnn.FP32, rnn.FP16} {
			some = append(some, impltest.Projected(precision)[1+(i+j)%3]) // of the LSTM
		}
		t.Run(tech, func(t *testing.T) { impltest.Run(t, d, impl.Lookup(tech), some) })
	}
}
