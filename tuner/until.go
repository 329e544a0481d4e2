package tuner

import (
	"time"

	"rnnbench/results"
)

// share sets when a point has to be done that is one of so many left: what is left of the budget is
// divided evenly. So a point that is settled early leaves its time to the others.
func (s *Sweep) share(left int) {
	s.until = time.Time{}
	if b := s.Settings.Budget; b > 0 {
		s.until = time.Now().Add(time.Until(s.started.Add(b)) / time.Duration(max(1, left)))
	}
}

// clear says why the rounds of live candidates end if they are to end once the winner is settled; "":
// they go on.
func (s *Sweep) clear(live []*candidate, done int) string {
	var samples [][]float64
	for _, c := range live {
		if c.record.Status == results.OK {
			samples = append(samples, c.samples.Wall)
		}
	}
	switch {
	case results.Settled(samples):
		return stopClear
	case s.until.IsZero() && done >= s.Settings.MaxRounds, !s.until.IsZero() && time.Now().After(s.until):
		return stopMax
	}
	return ""
}
