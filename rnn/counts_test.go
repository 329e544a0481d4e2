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

// TestChooseEdges: the first and the last steps are compared whole, as many of each as a quarter of
// all whole steps.
func TestChooseEdges(t *testing.T) {
	const steps, of = 100, 10
	for _, whole := range []int{2, 8, 20, 40} {
		plan := choose(1, steps, of, float64(2*whole*of))
		for i := range max(1, whole/4) {
			if plan[i] != of || plan[steps-1-i] != of {
				t.Errorf("%d whole steps: of steps %d and %d, %d and %d of %d values are compared", whole, i, steps-1-i, plan[i], plan[steps-1-i], of)
			}
		}
	}
}

// TestMostNear: up to 5 % of the units may be near a kink, besides what chance gives in a small network.
func TestMostNear(t *testing.T) {
	for _, k := range []struct {
		units, near int
		many        bool
	}{{10000, 500, false}, {10000, 568, false}, {10000, 569, true}, {1000000, 51000, true}, {20, 5, false}, {20, 6, true}, {0, 1, false}} {
		if got := (Kinks{Units: k.units, Near: k.near}).TooMany(); got != k.many {
			t.Errorf("%d of %d units: too many: %v", k.near, k.units, got)
		}
	}
}
