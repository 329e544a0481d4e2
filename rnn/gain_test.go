package rnn_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rnnbench/cells"
	"rnnbench/impl/naive"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// load returns a cell that is a file.
func load(t *testing.T, name string) *cell.Cell {
	c, err := cells.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestGainScales: a gain scales recurrent weights, or those of units where there are no others. All else
// stays the same to the bit.
func TestGainScales(t *testing.T) {
	for c, name := range map[*cell.Cell]string{
		cell.LSTM: "weight_hh", cell.LSTMPeephole: "weight_hh", cell.GRU: "weight_hh", cell.SLSTM: "weight_hh",
		cell.LSTMC: "peephole", load(t, "gru-diag"): "peephole", load(t, "lstm-diag"): "peephole", load(t, "indrnn"): "peephole",
	} {
		p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 8, Layers: 2, Batch: 2, Steps: 3, Direction: rnn.BothWays, Output: 4}
		usual := rnn.NewData(p, 7, 2, "normal")
		for _, p.Gain = range []int{0, 25, 100, 400} {
			scaled, factor := 0, float32(max(p.Gain, 1))/100
			if p.Gain == 0 {
				factor = 1
			}
			for i, got := range rnn.NewData(p, 7, 2, "normal").Tensors {
				want := slices.Clone(usual.Tensors[i].Values)
				if strings.HasPrefix(got.Name, name+"_l") {
					scaled++
					for j := range want {
						want[j] *= factor
					}
				}
				if !slices.Equal(got.Values, want) {
					t.Errorf("%v, gain %d%%: %s is wrong", c, p.Gain, got.Name)
				}
			}
			if scaled != p.Reads() {
				t.Errorf("%v: %d tensors are scaled, want %d", c, scaled, p.Reads())
			}
		}
	}
}

// TestCheckGain: a gain that cannot be, and one that would change nothing, are declined in a sentence.
func TestCheckGain(t *testing.T) {
	good := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 3, Steps: 5, Gain: 400}
	with := func(change func(*rnn.Problem)) rnn.Problem {
		p := good
		change(&p)
		return p
	}
	for want, p := range map[string]rnn.Problem{
		"":                          good,
		"gain is -1%: it must be 0": with(func(p *rnn.Problem) { p.Gain = -1 }),
		"to 10000%":                 with(func(p *rnn.Problem) { p.Gain = 10_001 }),
		"weights are given":         with(func(p *rnn.Problem) { p.Weights = "m:0@1" }),
	} {
		if err := p.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", p, err, want)
		}
	}
	for _, c := range []struct {
		p      rnn.Problem
		want   string
		reason error
	}{
		{with(func(p *rnn.Problem) { p.Cell = cell.RGLRU }), "no weight of rg-lru multiplies a state", schedule.ErrCell},
		{with(func(p *rnn.Problem) { p.Cell = cell.SRU }), "set gain to none", schedule.ErrCell},
		{with(func(p *rnn.Problem) { p.Cell, p.Norm = cell.GRU, rnn.NormLayer }), "set norm to none, or gain to none", schedule.ErrNorm},
	} {
		if _, _, err := rnn.Layout(naive.Technique{}, c.p, nil); !errors.Is(err, c.reason) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.p, err, c.want)
		}
	}
}

// TestGainOfPoints: a gain of 100% is the same point as none.
func TestGainOfPoints(t *testing.T) {
	a, ok := axis.Named("gain")
	if !ok {
		t.Fatal("there is no axis gain")
	}
	for percent, want := range map[int]string{0: "100%", 100: "100%", 25: "25%", 400: "400%"} {
		var p axis.Point
		a.Set(&p, percent)
		if a.Place(&p) != want || p == (axis.Point{}) != (want == "100%") {
			t.Errorf("%d is %s in %+v", percent, a.Place(&p), p)
		}
	}
}
