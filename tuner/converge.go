package tuner

import (
	"context"
	"fmt"
	"maps"
	"math"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
)

// converge verifies c. An iterative technique whose answer is wrong because it has not converged gets more
// iterations, unless the user has set how many. The record keeps the number that led to the answer. If none
// does, its status is NotConverged.
func (v *verification) converge(ctx context.Context, s *Sweep, c *candidate) error {
	knobs := c.Knobs
	for {
		if err := v.run(ctx, s, c); err != nil {
			return err
		}
		how := c.record.Verify
		residual, unconverged, err := oracle.Unconverged(c.Plan, c.prog, how.Tolerance)
		if err != nil {
			return err
		}
		if math.IsInf(residual, 0) {
			residual = math.MaxFloat64 // which JSON can hold
		}
		how.Iterations, how.Residual = c.Plan.Iterations, residual
		if how.OK || !unconverged {
			return nil
		}
		more, ok := c.moreIterations(s, knobs)
		if !ok {
			c.decline(record.NotConverged, record.ReasonUnconverged,
				fmt.Sprintf("after %d iterations the states still change by %.2g of the largest, and %s", how.Iterations, residual, mismatch(how)))
			return nil
		}
		c.close()
		c.Layout = more
		if err := s.load(c); err != nil {
			return err
		}
	}
}

// moreIterations lays c out anew with more iterations. It reports false where there are enough, or where the
// user has set how many: knobs are the first settings.
func (c *candidate) moreIterations(s *Sweep, knobs knob.Params) (*Layout, bool) {
	t, ok := c.Technique.(rnn.Iterative)
	if !ok {
		return nil, false
	}
	next, ok := t.More(c.Knobs)
	if !ok {
		return nil, false
	}
	spec := c.Spec
	if spec.Knobs = maps.Clone(c.Spec.Knobs); spec.Knobs == nil {
		spec.Knobs = knob.Params{}
	}
	for name, v := range next {
		if v == c.Knobs[name] {
			continue
		}
		if knobs[name] != 0 {
			return nil, false
		}
		spec.Knobs[name] = v
	}
	l, err := LayOutWithin(s.Device, s.Techniques, c.Point, spec, c.limit)
	if err != nil || l.Reason != "" {
		return nil, false
	}
	l.Spec = c.Spec
	return l, true
}
