package oracle

import (
	"math"
	"testing"

	"rnnbench/rnn"
)

// TestCompareCounts: an answer that lacks a tensor is an error, which says how many tensors it has.
func TestCompareCounts(t *testing.T) {
	p := rnn.Problem{}
	const want = "rnn: an answer has 1 tensors, not 2"
	if _, err := Compare(p, make([]Tensor, 1), make([]Tensor, 2)); err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestBeyond: of values that several processors look through, it finds the largest one, or one that is not finite.
func TestBeyond(t *testing.T) {
	v := make([]float64, 200000)
	v[7], v[150000] = 3, -5
	if d := beyond(v, 4); d.most != 5 || d.at != 150000 {
		t.Errorf("%+v", d)
	}
	v[199999] = math.NaN()
	if d := beyond(v, 8); !math.IsInf(d.most, 1) || d.at != 199999 {
		t.Errorf("%+v", d)
	}
}
