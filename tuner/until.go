package tuner

import (
	"time"

	"rnnbench/record"
)

// A share is the part of a budget that a point may use while its winner is open. What is left of the
// budget is divided evenly among the points left, so a point that is settled early leaves its time to
// the others.
type share struct {
	began time.Time // when the budget began
	until time.Time // when the current point has to be done; zero: there is no budget
}

// next begins a point and returns its share; 0: there is no budget. left counts the points that are
// left, with this one.
func (s *share) next(budget time.Duration, left int) time.Duration {
	if s.until = (time.Time{}); budget == 0 {
		return 0
	}
	part := time.Until(s.began.Add(budget)) / time.Duration(max(1, left))
	s.until = time.Now().Add(part)
	return part
}

// stop says why the rounds of live candidates end after so many if they are to end once the winner is
// settled; "": they go on. most limits them where there is no budget.
func (s *share) stop(live []*candidate, done, most int) string {
	var samples [][]float64
	for _, c := range live {
		if c.record.Status == record.OK {
			samples = append(samples, c.samples.Wall)
		}
	}
	switch {
	case record.Settled(samples):
		return stopClear
	case s.until.IsZero() && done >= most, !s.until.IsZero() && time.Now().After(s.until):
		return stopMax
	}
	return ""
}
