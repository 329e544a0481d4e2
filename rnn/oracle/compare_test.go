package oracle

import (
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
