package rnn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/rnn/cell"
)

// TestCutIsFewerSteps: data cut to fewer steps are the data drawn for fewer steps.
func TestCutIsFewerSteps(t *testing.T) {
	for _, p := range []Problem{
		{Cell: cell.LSTM, Pass: Train, Input: 3, Hidden: 5, Layers: 2, Batch: 4, Steps: 9},
		{Cell: cell.GRU, Pass: Forward, Input: 3, Hidden: 5, Layers: 1, Batch: 4, Steps: 7, Output: 6, OneHot: true},
		{Cell: cell.LSTMC, Pass: Train, Input: 3, Hidden: 5, Layers: 1, Batch: 2, Steps: 5, Output: 6, History: 8},
		{Cell: cell.RNNTanh, Pass: Train, Input: 3, Hidden: 5, Layers: 1, Batch: 1, Steps: 1, History: 3},
	} {
		q := p
		q.Steps, q.History = max(1, p.Steps/2), p.History/2
		for _, distribution := range Distributions() {
			want, got := NewData(q, 7, 3, distribution), NewData(p, 7, 3, distribution).Cut(q)
			if got.Problem != q || got.Distinct != want.Distinct || len(got.Tensors) != len(want.Tensors) {
				t.Fatalf("%v: %d tensors of %v, want %d", q, len(got.Tensors), got.Problem, len(want.Tensors))
			}
			for i, w := range want.Tensors {
				if g := got.Tensors[i]; g.Name != w.Name || g.Rows != w.Rows || !slices.Equal(g.Values, w.Values) {
					t.Errorf("%v, %s: %s differs", q, distribution, w.Name)
				}
			}
		}
	}
}

// TestUniformIsFloat32: the values are those of Float32.
func TestUniformIsFloat32(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	got := make([]float32, 10_000)
	uniform(0.25)(rand.NewPCG(3, 4), got)
	for i, v := range got {
		if want := float32(0.25) * (2*rng.Float32() - 1); v != want {
			t.Fatalf("value %d is %v, want %v", i, v, want)
		}
	}
}

func BenchmarkNewData(b *testing.B) {
	p := Problem{Cell: cell.LSTM, Pass: Train, Input: 1024, Hidden: 1024, Layers: 4, Batch: 32, Steps: 3}
	for b.Loop() {
		NewData(p, 1, 3, "normal")
	}
}

// TestGlorot: weights lie within Glorot and Bengio's bound and come near it, and biases are 0. Recurrent
// weights keep their gain, and states are as they were drawn.
func TestGlorot(t *testing.T) {
	for _, p := range []Problem{
		{Cell: cell.LSTM, Pass: Train, Input: 70, Hidden: 30, Layers: 2, Batch: 2, Steps: 2, Output: 50, Direction: BothWays},
		{Cell: cell.LSTM, Pass: Train, Input: 20, Hidden: 60, Layers: 1, Batch: 2, Steps: 2, Output: 50, Projection: 15},
		{Cell: cell.GRU, Pass: Train, Input: 90, Hidden: 64, Layers: 1, Batch: 2, Steps: 2, Output: 9, OneHot: true, Heads: 4, Gain: 200},
		{Cell: cell.SRU, Pass: Train, Input: 40, Hidden: 40, Layers: 2, Batch: 2, Steps: 2},
	} {
		plain, d := NewData(p, 5, 2, "normal"), NewData(p, 5, 2, "normal")
		d.Glorot()
		bounds := map[string][2]int{ // inputs and outputs
			"weight_ih_l0": {p.Input, p.Hidden}, "weight_ih_l1": {p.Out(), p.Hidden}, "weight_ih_l1_reverse": {p.Out(), p.Hidden},
			"weight_hh_l0": {p.HeadUnits(), p.Hidden / max(1, p.Heads)}, "weight_hr_l0": {p.Hidden, p.Projection}, "weight_out": {p.Out(), p.Output},
		}
		for i, x := range d.Tensors {
			bias := x.Name == "bias_out" || x.Name[:min(5, len(x.Name))] == "bias_"
			fans, weight := bounds[x.Name]
			most := 0.0
			for _, v := range x.Values {
				most = max(most, math.Abs(float64(v)))
			}
			want := math.Sqrt(6 / float64(fans[0]+fans[1]))
			if x.Name == "weight_hh_l0" && p.Gain > 0 {
				want *= float64(p.Gain) / 100
			}
			switch {
			case bias && most != 0:
				t.Errorf("%v: %s is not 0", p, x.Name)
			case weight && (most > want*1.000001 || most < 0.95*want):
				t.Errorf("%v: the largest of %s is %g, and the bound %g", p, x.Name, most, want)
			case x.PerSequence && !slices.Equal(x.Values, plain.Tensors[i].Values):
				t.Errorf("%v: %s has changed", p, x.Name)
			}
		}
	}
}
