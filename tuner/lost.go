package tuner

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/results"
	"rnnbench/tuner/grid"
)

// mostStarts is how many restarts of a device may fail in a row before a sweep
// gives up.
const mostStarts = 3

// lost reports whether err is the loss of the device's process, which no candidate is
// to blame for.
func lost(err error) bool {
	return errors.Is(err, device.ErrKilled) || errors.Is(err, device.ErrStart)
}

// started has a device that lives in another process be there, so that it can be asked
// what has no error for an answer.
func started(d device.Device) error {
	if r, ok := d.(interface{ Ready() error }); ok {
		return r.Ready()
	}
	return nil
}

// retry reports whether what ended with err is tried again: once for each candidate, if
// the worker was killed.
func (c *candidate) retry(err error) bool {
	if c.retried || !errors.Is(err, device.ErrKilled) {
		return false
	}
	c.retried = true
	return true
}

// readyOrRetry makes c ready, again if it lost its worker on the way.
func (s *Sweep) readyOrRetry(c *candidate, check *verification) {
	s.ready(c, check)
	if code := c.record.ReasonCode; code != nil && *code == results.ReasonLost && !c.retried {
		c.retried = true
		c.record.Status, c.record.ReasonCode, c.record.Reason = results.OK, nil, nil
		s.ready(c, check)
	}
	if c.record.Status == results.OK {
		s.starts = 0
	}
}

// lose ends a candidate whose worker is lost.
func (s *Sweep) lose(c *candidate, err error) {
	if errors.Is(err, device.ErrStart) {
		s.starts++
	}
	c.decline(results.Failed, results.ReasonLost, err.Error())
}

// absent is a candidate that cannot be laid out since the worker is lost.
func (s *Sweep) absent(l *Layout, spec grid.Spec, err error) *candidate {
	l.refuse(results.ReasonLost, err.Error())
	c := s.enter(l, spec)
	s.lose(c, err)
	return c
}

// gone ends a sweep whose device cannot restart.
func (s *Sweep) gone(c *candidate) error {
	if s.starts < mostStarts || c.record.Reason == nil {
		return nil
	}
	return fmt.Errorf("tuner: the device failed to restart %d times in a row: %s", s.starts, *c.record.Reason)
}
