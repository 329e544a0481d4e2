package tuner

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestLeastBytes counts by hand the bytes that a run must read and write: each weight and input once, and
// the states of the last layer, in training of all layers and the gradients of the last. The history's
// steps are read like the new ones.
func TestLeastBytes(t *testing.T) {
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 2, Batch: 2, Steps: 5, History: 3}
	projected, train := p, p
	projected.Projection = 2
	train.Pass = rnn.Train
	const inputs, states = 4 * 3 * 2 * (5 + 3), 4 * 4 * 2 * (5 + 3)
	for _, c := range []struct {
		name          string
		p             rnn.Problem
		given, states float64
	}{
		{"forward", p, 4*(16*(3+4)+16*(4+4)) + inputs, states},
		{"training", train, 8*(16*(3+4)+16*(4+4)) + inputs, 3 * states},
		{"with a projection", projected, 4*(16*(3+2)+2*4+16*(2+2)+2*4) + inputs, states / 2},
	} {
		if got := givenBytes(c.p, 4, 4); got != c.given {
			t.Errorf("%s: weights and inputs are %v bytes, want %v", c.name, got, c.given)
		}
		if got := stateBytes(c.p, 4); got != c.states {
			t.Errorf("%s: states are %v bytes, want %v", c.name, got, c.states)
		}
	}
}
