package newton

import (
	"math"

	"rnnbench/rnn"
)

// iterations names the knob that says how many iterations run.
const iterations = "iterations"

// most iterations are worth a try.
const most = 32

// IterationsKnob implements rnn.Iterative.
func (Technique) IterationsKnob(p rnn.Problem) (name string, few, limit int) {
	return iterations, fewest(p), most
}

// fewest is about the fewest iterations that answers like p's took, with random weights of 8 to 1,024 units
// over 16 to 4,096 steps and seed 1. Numbers of units and steps hardly matter:
//
//	tangent of a step          cells                  gain 50%   100%        200%
//	exact                      gru-diag, indrnn       2 to 3     2 to 4      3 to 5
//	of each state by itself    lstm-diag              6 to 8     7 to 9      8 to 12
//	without recurrent products lstm, gru, cifg        6 to 7     8 to 11     16 to 20
//	                           rnn-tanh, ligru, janet 8 to 14    13 to more  more than 32
//
// The exact method doubles its digits with each iteration, the others add as many as in the one before: with
// 16 bits lstm and gru take 3 to 5. Three layers took 2 or 3 more than one, and training as many as the
// forward pass.
func fewest(p rnn.Problem) int {
	c, gain := p.Cell, 1.0
	if p.Gain > 0 {
		gain = float64(p.Gain) / 100
	}
	digits := map[rnn.Precision]float64{rnn.FP32: 1, rnn.TF32: 0.55, rnn.FP16: 0.55}[p.Precision]
	if digits == 0 {
		digits = 0.4
	}
	var n float64
	switch {
	case c.Newton != nil && len(c.States) == 1:
		return min(most, int(2+max(0, math.Log2(gain))))
	case c.Newton != nil:
		n = 7
	case len(c.Gates) > 2:
		n = 8 * (0.4 + 0.6*gain)
	default:
		n = 13 * (0.4 + 0.6*gain)
	}
	return min(most, max(2, int(digits*(n+float64(p.Layers-1)))))
}
