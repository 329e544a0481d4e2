package tuner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
)

// converge verifies c. An iterative technique gets as few iterations as its answer takes, unless the user has
// set how many: see rnn.Fewest. The record keeps it. If no number leads to the answer, the status is
// NotConverged.
func (v *verification) converge(ctx context.Context, s *Sweep, c *candidate) error {
	t, ok := c.Technique.(rnn.Iterative)
	if !ok {
		return v.run(ctx, s, c)
	}
	name, _, most := t.IterationsKnob(c.Problem)
	n := &convergence{check: v, sweep: s, c: c, knob: name}
	if c.Spec.Knobs[name] > 0 {
		right, unconverged, err := n.iterate(ctx, true)
		if err == nil && !right && unconverged {
			n.decline()
		}
		return err
	}
	found, err := rnn.Fewest(c.Plan.Iterations, most, func(iterations int) (bool, error) { return n.enough(ctx, iterations, most) })
	switch {
	case errors.Is(err, errConvergedWrong):
		return nil
	case err != nil:
		return err
	case found == 0:
		n.decline()
	case found != c.Plan.Iterations:
		_, _, err = n.retry(ctx, found, true)
	}
	return err
}

// A convergence finds how many iterations a candidate takes.
type convergence struct {
	check *verification
	sweep *Sweep
	c     *candidate
	knob  string // that says how many
	right bool   // some number has led to the right answer
}

// errConvergedWrong says that an answer is wrong, and that more iterations would not change it.
var errConvergedWrong = errors.New("the iterations have converged to a wrong answer")

// enough reports whether so many iterations lead to the right answer. The candidate has them afterwards.
func (n *convergence) enough(ctx context.Context, iterations, most int) (bool, error) {
	if n.right && ctx.Err() != nil {
		return false, nil // what is known to be enough will do
	}
	var right, unconverged bool
	var err error
	if iterations == n.c.Plan.Iterations {
		right, unconverged, err = n.iterate(ctx, false)
	} else {
		right, unconverged, err = n.retry(ctx, iterations, iterations == most)
	}
	if err == nil && !right && !unconverged && !n.right {
		err = errConvergedWrong
	}
	n.right = n.right || right
	return right, err
}

// decline gives up on the candidate.
func (n *convergence) decline() {
	how := n.c.record.Verify
	n.c.decline(record.NotConverged, record.ReasonUnconverged,
		fmt.Sprintf("after %s the states still change by %.2g of the largest, and %s", quantity.Plural(how.Iterations, "iteration"), how.Residual, mismatch(how)))
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
		if _, err := c.run(1); err != nil {
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
