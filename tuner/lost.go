package tuner

import (
	"errors"
	"fmt"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// mostStarts is how many restarts of a device may fail in a row before a sweep gives up.
const mostStarts = 3

// lost reports whether err says that the device's process was lost, for which no candidate is to
// blame.
func lost(err error) bool {
	return errors.Is(err, device.ErrKilled) || errors.Is(err, device.ErrStart)
}

// ensureStarted starts a device's process if it has one, since later queries return no error.
func ensureStarted(d device.Device) error {
	if r, ok := d.(interface{ Ready() error }); ok {
		return r.Ready()
	}
	return nil
}

// retry reports whether to try again after err: once for each candidate, if the worker was killed.
func (c *candidate) retry(err error) bool {
	if c.retried || !errors.Is(err, device.ErrKilled) {
		return false
	}
	c.retried = true
	return true
}

// readyOrRetry calls ready, once more if c lost its worker meanwhile.
func (s *Sweep) readyOrRetry(c *candidate, check *verification) {
	s.ready(c, check)
	if code := c.record.ReasonCode; code != nil && *code == record.ReasonLost && !c.retried {
		c.retried = true
		c.record.Status, c.record.ReasonCode, c.record.Reason = record.OK, nil, nil
		s.ready(c, check)
	}
	if c.record.Status == record.OK {
		s.starts = 0
	}
}

// lose ends a candidate whose worker is lost.
func (s *Sweep) lose(c *candidate, err error) {
	if errors.Is(err, device.ErrStart) {
		s.starts++
	}
	c.decline(record.Failed, record.ReasonLost, err.Error())
}

// lostCandidate returns a candidate that cannot be laid out because the worker is lost.
func (s *Sweep) lostCandidate(l *Layout, spec grid.Spec, err error) *candidate {
	l.refuse(record.ReasonLost, err.Error())
	c := s.enter(l, spec)
	s.lose(c, err)
	return c
}

// checkRestarts returns an error if the device failed to restart too often.
func (s *Sweep) checkRestarts(c *candidate) error {
	if s.starts < mostStarts || c.record.Reason == nil {
		return nil
	}
	return fmt.Errorf("tuner: the device failed to restart %d times in a row: %s", s.starts, *c.record.Reason)
}
