package rnn_test

import (
	"math"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// TestAdamFollowsSteadyGradient: under a constant gradient, Adam moves a parameter by the learning
// rate at each iteration, however the betas are rounded.
func TestAdamFollowsSteadyGradient(t *testing.T) {
	for _, beta2 := range []float64{0.9, 0.99, 0.999, 0.9999} {
		o := rnn.Optimizer{Rule: schedule.Adam, Beta1: 0.9, Beta2: beta2, Epsilon: 1e-30}
		op := schedule.Update{Rule: o.Rule, Beta1: float32(o.Beta1), Beta2: float32(o.Beta2), Epsilon: float32(o.Epsilon)}
		const rate, gradient = 0.01, 0.3
		moment, param := make([]float64, 2), 0.0
		for i := range 20 {
			var rates []float64
			for _, v := range o.Rates(i+1, rate, 0) {
				rates = append(rates, float64(v))
			}
			before := param
			param = op.Step(rates, param, gradient, moment)
			if got := before - param; math.Abs(got/rate-1) > 1e-6 {
				t.Errorf("beta2 %g: iteration %d moves the parameter by %.9g, not %g", beta2, i+1, got, rate)
			}
		}
	}
}
