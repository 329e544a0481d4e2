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
	"rnnbench/rnn/schedule"
)

// converge verifies c. An iterative technique gets as few iterations as its answer takes, unless the user has
// set how many: the number doubles until the answer is right, and is then narrowed down. The record keeps
// it. If no number leads to the answer, the status is NotConverged.
func (v *verification) converge(ctx context.Context, s *Sweep, c *candidate) error {
	t, ok := c.Technique.(rnn.Iterative)
	if !ok {
		return v.run(ctx, s, c)
	}
	name, _, most := t.IterationsKnob(c.Problem)
	n := &convergence{check: v, sweep: s, c: c, knob: name}
	given := c.Spec.Knobs[name] > 0
	right, unconverged, err := n.iterate(ctx, given)
	tooFew := 0
	for err == nil && !right && unconverged {
		tooFew = c.Plan.Iterations
		if given || tooFew >= most {
			how := c.record.Verify
			c.decline(record.NotConverged, record.ReasonUnconverged,
				fmt.Sprintf("after %d iterations the states still change by %.2g of the largest, and %s", how.Iterations, how.Residual, mismatch(how)))
			return nil
		}
		more := min(2*tooFew, most)
		right, unconverged, err = n.retry(ctx, more, more == most)
	}
	if err != nil || !right || given {
		return err
	}
	return n.narrow(ctx, tooFew)
}

// A convergence finds how many iterations a candidate takes.
type convergence struct {
	check *verification
	sweep *Sweep
	c     *candidate
	knob  string // that says how many
}

// narrow finds about the fewest iterations that lead to the right answer, more than tooFew. The candidate
// has enough.
func (n *convergence) narrow(ctx context.Context, tooFew int) error {
	enough := n.c.Plan.Iterations
	for enough-tooFew > max(1, enough/8) && ctx.Err() == nil {
		between := (enough + tooFew) / 2
		right, _, err := n.retry(ctx, between, false)
		if err != nil {
			return err
		}
		if right {
			enough = between
		} else {
			tooFew = between
		}
	}
	if n.c.Plan.Iterations == enough {
		return nil
	}
	_, _, err := n.retry(ctx, enough, true)
	return err
}

// farApart is a residual with which no answer is right: the error of Newton's method after the last
// iteration is about its square. Answers of 16 or 8 bits are rounded by more.
func farApart(p rnn.Precision) float64 {
	if p == rnn.FP32 {
		return 0.01
	}
	return 0.2
}

// iterate verifies the candidate once. It reports whether the answer is right and, if not, whether that is so
// because the iterations have not converged. Unless always, an answer that cannot be right is not compared.
func (n *convergence) iterate(ctx context.Context, always bool) (right, unconverged bool, err error) {
	c := n.c
	if !always {
		if _, err := c.prog.Run(1); err != nil {
			return false, false, err
		}
		if residual, err := oracle.Residual(c.Plan, c.prog); err != nil || residual > farApart(c.Problem.Precision) {
			return false, true, err
		}
	}
	if err := n.check.run(ctx, n.sweep, c); err != nil {
		return false, false, err
	}
	how := c.record.Verify
	how.Iterations = c.Plan.Iterations
	how.Residual, unconverged, err = oracle.Unconverged(c.Plan, c.prog, how.Tolerance)
	how.Residual = min(how.Residual, math.MaxFloat64) // which JSON can hold
	return how.OK, unconverged && !how.OK, err
}

// retry is iterate with another number of iterations. An answer with more is not the peer of one with fewer.
func (n *convergence) retry(ctx context.Context, iterations int, always bool) (right, unconverged bool, err error) {
	c, s := n.c, n.sweep
	spec := c.Spec
	spec.Knobs = knob.Params{}
	maps.Copy(spec.Knobs, c.Spec.Knobs)
	spec.Knobs[n.knob] = iterations
	l, err := LayOutWithin(s.Device, s.Techniques, c.Point, spec, c.limit)
	if err == nil && l.Reason != "" {
		err = fmt.Errorf("%w: with %d iterations: %s", schedule.ErrUnsupported, iterations, l.Reason)
	}
	if err != nil {
		return false, false, err
	}
	if peer := n.check.peer; peer != nil && peer.label == c.Spec.Label {
		n.check.peer = nil
	}
	c.close()
	l.Spec, c.Layout = c.Spec, l
	if err := s.load(c); err != nil {
		return false, false, err
	}
	return n.iterate(ctx, always)
}
