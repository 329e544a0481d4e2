package rnn

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/axis"
)

// given returns weights of p whose values differ from all that is drawn.
func given(p Problem) Weights {
	w := Weights{ID: "test:layer@00000000"}
	q := p
	q.Batch, q.Steps = 1, 1
	for _, t := range NewData(q, 1, 1, "normal").Tensors {
		if t.Name != "x" && t.Name != "dy" {
			t.Values = slices.Clone(t.Values)
			for i := range t.Values {
				t.Values[i] = 100 + float32(i)
			}
			w.Tensors = append(w.Tensors, t)
		}
	}
	return w
}

// TestWeights: data has the weights that the problem names, and first states for all sequences. What is
// not given is drawn, or 0.
func TestWeights(t *testing.T) {
	p, err := Of(axis.Point{Cell: "lstm", Pass: "train", Hidden: 5, Input: 3, Batch: 4, Steps: 2, Layers: 2, Precision: "fp32", Direction: "both"})
	if err != nil {
		t.Fatal(err)
	}
	w := given(p)
	if err := w.Fits(p); err != nil {
		t.Fatal(err)
	}
	drawn := NewData(p, 7, 4, "normal")
	for _, zeros := range []bool{false, true} {
		w.Zeros = zeros
		kept := slices.DeleteFunc(slices.Clone(w.Tensors), func(t Tensor) bool { return strings.HasPrefix(t.Name, "c0") })
		RegisterWeights(Weights{w.ID, kept, zeros})
		q := p
		q.Weights = w.ID
		for i, got := range NewData(q, 7, 4, "normal").Tensors {
			first, want := got.Values[0], drawn.Tensors[i].Values[0]
			switch {
			case strings.HasPrefix(got.Name, "c0") && zeros:
				want = 0
			case !got.PerSequence, strings.HasPrefix(got.Name, "h0"):
				want = 100
			}
			if first != want {
				t.Errorf("zeros %v: %s begins with %g, want %g", zeros, got.Name, first, want)
			}
			if strings.HasPrefix(got.Name, "h0") && got.Values[3*got.Cols] != 100 {
				t.Errorf("%s of the last sequence begins with %g", got.Name, got.Values[3*got.Cols])
			}
		}
	}
	if id := drawn.Problem.Weights; id != "" || !slices.Contains(KnownWeights(), w.ID) {
		t.Errorf("the drawn problem has weights %q, and %v are known", id, KnownWeights())
	}
}

// TestWrongWeights: weights of another network are refused.
func TestWrongWeights(t *testing.T) {
	p, _ := Of(axis.Point{Cell: "gru", Pass: "forward", Hidden: 5, Input: 3, Batch: 4, Steps: 2, Layers: 1, Precision: "fp32"})
	for name, change := range map[string]func(w *Weights){
		"lack parameters":            func(w *Weights) { w.Tensors = w.Tensors[1:] },
		"has no tensor weight_ih_l7": func(w *Weights) { w.Tensors[0].Name = "weight_ih_l7" },
		"has 15 × 4 values":          func(w *Weights) { w.Tensors[0].Cols = 4 },
		"has 15 × 3 values":          func(w *Weights) { w.Tensors[0].Values = w.Tensors[0].Values[1:] },
	} {
		w := given(p)
		change(&w)
		if err := w.Fits(p); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
