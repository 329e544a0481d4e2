package impl_test

import (
	"errors"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestHeadsStepwise checks layers with heads step by step, and plants a fault in one weight's
// gradient and one state.
func TestHeadsStepwise(t *testing.T) {
	d, err := cpu.Open(cpu.Options{Threads: 2, InTurn: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for i, c := range []*cell.Cell{cell.GRU, cell.LSTM, cell.RNNReLU, cell.GRU, cell.SLSTM} {
		p := rnn.Problem{Cell: c, Input: 5, Hidden: 12, Heads: 3, Layers: 2, Batch: 3, Steps: 9, Pass: rnn.Train}
		data := rnn.NewData(p, 1, 2, "normal")
		plan, prog := ran(t, d, []string{"cudnnstyle", "persistent"}[i/3], p, data)
		plantFaults(t, plan, prog, data, map[string]float64{"grad_weight_hh_l0": 1, "h_l1": 1})
	}
}

// TestHeadsDecline: techniques without heads decline them, and so do cells without recurrent
// products.
func TestHeadsDecline(t *testing.T) {
	for _, c := range []struct {
		technique string
		cell      *cell.Cell
		want      string
	}{
		{"scc", cell.LSTM, "not in blocks"},
		{"cudnn", cell.LSTM, "does not support heads"},
		{"naive", cell.SRU, "heads would divide nothing"},
	} {
		p := rnn.Problem{Cell: c.cell, Input: 4, Hidden: 6, Heads: 2, Layers: 1, Batch: 1, Steps: 2}
		_, _, err := rnn.Layout(impl.Lookup(c.technique), p, nil)
		if !errors.Is(err, schedule.ErrHeads) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %v: %v", c.technique, c.cell, err)
		}
	}
	for _, heads := range []int{-1, 4, 7, 12} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 4, Hidden: 6, Heads: heads, Layers: 1, Batch: 1, Steps: 2}
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "must divide the hidden units") {
			t.Errorf("%d heads: %v", heads, err)
		}
	}
}
