package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// A gain scales what a step multiplies its states by: the recurrent weights R of every layer and, in
// cells without R, the weights of units that multiply a state. Input weights, biases and projections
// stay as they are, and so do weights of units with another meaning, such as L of rg-lru.
//
// The gain is part of the data that are drawn. Operations do not depend on it.

// maxGain bounds Problem.Gain, in percent.
const maxGain = 10_000

// checkGain reports an invalid gain, and weights that are given and so have none.
func checkGain(p Problem) error {
	switch {
	case p.Gain < 0 || p.Gain > maxGain:
		return fmt.Errorf("rnn: gain is %d%%: it must be 0 (none, which is 100%%) to %d%%", p.Gain, maxGain)
	case p.Gain > 0 && p.Weights != "":
		return fmt.Errorf("rnn: gain is %d%%, but the weights are given and not drawn: set gain to none", p.Gain)
	}
	return nil
}

// declineGain says why the recurrent weights of p's layers cannot have a gain.
func declineGain(p Problem) error {
	switch {
	case p.Gain == 0:
	case p.Cell.Multiplied() == 0 && len(p.Cell.Multipliers()) == 0:
		return fmt.Errorf("%w: no weight of %v multiplies a state, so a gain would change nothing: set gain to none", schedule.ErrCell, p.Cell)
	case p.Norm == NormLayer:
		return fmt.Errorf("%w: normalised products do not depend on the size of recurrent weights: set norm to none, or gain to none", schedule.ErrNorm)
	}
	return nil
}

// scaleRecurrent gives the recurrent weights of layer i of Problem.Reads their gain.
func (d *Data) scaleRecurrent(i int) {
	p := d.Problem
	if p.Gain == 0 {
		return
	}
	scale := func(values []float32) {
		for j := range values {
			values[j] *= float32(p.Gain) / 100
		}
	}
	if p.Cell.Multiplied() > 0 {
		scale(d.Get(p.Named("weight_hh", i)))
		return
	}
	for _, k := range p.Cell.Multipliers() {
		scale(d.Get(p.Named("peephole", i))[k*p.Hidden : (k+1)*p.Hidden])
	}
}
