package tuner

import (
	"context"
	"fmt"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
)

// settle verifies c. An iterative technique that was chosen may turn out a bad choice: it does not
// converge, or takes so many iterations that it is predicted to be slower than what was chosen instead.
// Then that takes the place of c. The reason of the choice says what was found.
func (v *verification) settle(ctx context.Context, s *Sweep, c *candidate) error {
	err := v.converge(ctx, s, c)
	t, iterative := c.Technique.(rnn.Iterative)
	if err != nil || !iterative || c.Spec.Choice == nil {
		return err
	}
	found := c.record.Verify.Iterations
	switch _, fewest, _ := t.IterationsKnob(c.Problem); {
	case c.record.Status == record.NotConverged && c.Spec.Instead != nil:
		return v.replace(ctx, s, c, fmt.Sprintf("%s has not converged in %d iterations", c.Spec.Name, found))
	case c.record.Status != record.OK || !c.record.Verify.OK:
		return nil
	case found > fewest && c.Spec.Instead != nil:
		slow, err := c.slower(s.Device)
		if err != nil {
			return err
		}
		if slow != "" {
			return v.replace(ctx, s, c, fmt.Sprintf("%s took %d iterations, with which it is predicted to take %s", c.Spec.Name, found, slow))
		}
	}
	c.explain(fmt.Sprintf("%s; the answer took %d", c.record.Impl.Choice.Why, found))
	return nil
}

// explain changes the reason of c's choice, which other points may share.
func (c *candidate) explain(why string) {
	choice := *c.record.Impl.Choice
	choice.Why = why
	c.record.Impl.Choice = &choice
}

// slower returns the time of c on d that is predicted with its number of iterations, if what was chosen
// instead is predicted to be faster; "" if not, or if there is no prediction.
func (c *candidate) slower(d device.Device) (string, error) {
	x := c.Spec.Instead.Choice.Expected
	model, ok := d.(device.Predictor)
	if !ok || x == nil {
		return "", nil
	}
	now, err := model.Predict(c.Schedule, c.DeviceKnobs)
	if err != nil || now.Seconds <= x.Seconds {
		return "", err
	}
	return quantity.SI(now.Seconds, "s"), nil
}

// replace puts what was chosen instead in the place of c, and verifies it.
func (v *verification) replace(ctx context.Context, s *Sweep, c *candidate, why string) error {
	next, err := s.prepare(c.Point, *c.Spec.Instead)
	if err != nil {
		return err
	}
	next.explain(why + ", so this runs instead: " + next.record.Impl.Choice.Why)
	next.input, next.record.Cost = c.input, c.record.Cost
	if v.peer != nil && v.peer.label == c.Spec.Label {
		v.peer = nil
	}
	c.close()
	if *c = *next; c.record.Status == record.OK {
		s.checkMemory(c)
	}
	if c.record.Status != record.OK {
		return nil
	}
	if err := s.load(c); err != nil {
		return err
	}
	return v.run(ctx, s, c)
}

// recorded reports whether c has a record already, or what may have run instead of it.
func (c *candidate) recorded(s *Sweep) (bool, error) {
	switch {
	case s.Skip == nil:
		return false, nil
	case s.Skip(c.record.Key()):
		return true, nil
	case c.Spec.Instead == nil:
		return false, nil
	}
	other, err := s.draft(c.Point, *c.Spec.Instead)
	return err == nil && s.Skip(other.record.Key()), err
}
