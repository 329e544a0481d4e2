package rnn

import (
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
