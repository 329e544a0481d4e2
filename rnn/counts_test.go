package rnn

import (
	"math"
	"testing"

	"rnnbench/rnn/cell"
)

// TestFLOPsOfHistory: the gradients pass the kept steps too, and the forward pass does not. A window
// of two steps reads nothing before the first.
func TestFLOPsOfHistory(t *testing.T) {
	const batch, steps, history, rows = 2, 5, 3, 4 * 4
	p := Problem{Cell: cell.LSTM, Pass: Train, Input: 3, Hidden: 4, Layers: 2, Batch: batch, Steps: steps, History: history}
	weights := rows * (3 + 4 + 4 + 4)
	if got, want := p.FLOPs(), int64(2*weights*batch*(steps+2*(steps+history))); got != want {
		t.Errorf("%v: %d operations, want %d", p, got, want)
	}
	p.Cell, p.Layers = cell.QRNN2, 1
	gates := len(p.Cell.Gates) * 4 * 3
	used := steps + 2*(steps+history) + (steps - 1) + 2*(steps+history-1) // of the present step, and of the one before
	if got, want := p.FLOPs(), int64(2*gates*batch*used); got != want {
		t.Errorf("%v: %d operations, want %d", p, got, want)
	}
}

// TestLossWeightsOfCopies: the weights of all sequences of a batch add up to 1, where some are
// copies.
func TestLossWeightsOfCopies(t *testing.T) {
	p := Problem{Cell: cell.GRU, Pass: Train, Input: 3, Hidden: 4, Layers: 1, Batch: 7, Steps: 5, Output: 3, Weighted: true}
	for _, distinct := range []int{1, 2, 3, 7} {
		d, sum := NewData(p, 1, distinct, "normal"), 0.0
		for b := range p.Batch {
			for step := range p.Steps {
				sum += float64(d.Get("loss_weight")[step*distinct+b%distinct])
			}
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("%d distinct sequences: the weights add up to %v", distinct, sum)
		}
	}
}
