package impl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
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
		got, _, err := oracle.ReadDistinct(plan, prog, data)
		if err != nil {
			t.Fatal(err)
		}
		check := func() oracle.Deviation {
			dev, covered, err := oracle.Stepwise{FLOPs: 1e9}.Check(plan, prog, data, got)
			if err != nil || covered.Share != 1 {
				t.Fatalf("%v: %v: %v of the values are compared", p, err, covered.Share)
			}
			return dev
		}
		if dev := check(); !dev.OK() {
			t.Errorf("%v: %v", p, dev)
		}
		for _, name := range []string{"grad_weight_hh_l0", "h_l1"} {
			i := slices.IndexFunc(got, func(t oracle.Tensor) bool { return t.Name == name })
			v := &got[i].Values[len(got[i].Values)/2]
			right := *v
			*v += 1
			if dev := check(); dev.OK() {
				t.Errorf("%v: %s may be off by 1", p, name)
			}
			*v = right
		}
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
