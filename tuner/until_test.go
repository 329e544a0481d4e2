package tuner

import (
	"testing"
	"time"

	"rnnbench/record"
)

// TestUntilClear: rounds end where the winner is settled, at the time of the point's share, or at the
// most rounds without a budget.
func TestUntilClear(t *testing.T) {
	made := func(times ...float64) *candidate {
		c := &candidate{record: record.Record{Status: record.OK}}
		c.samples.Wall = times
		return c
	}
	one, two, open := made(1, 1, 1, 1, 1, 1), made(2, 2, 2, 2, 2, 2), made(0.9, 1.2, 0.9, 1.2, 0.9, 1.2)
	broken := made(0.9, 1.2)
	broken.record.Status = record.Failed
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name  string
		live  []*candidate
		done  int
		until time.Time
		want  string
	}{
		{"a lead", []*candidate{one, two}, 6, future, stopClear},
		{"open", []*candidate{one, two, open}, 6, future, ""},
		{"open, beyond the most rounds", []*candidate{one, open}, 99, future, ""},
		{"open, out of time", []*candidate{one, open}, 6, past, stopMax},
		{"open, no budget", []*candidate{one, open}, 6, time.Time{}, ""},
		{"open, no budget, the most rounds", []*candidate{one, open}, 20, time.Time{}, stopMax},
		{"a failed one is no rival", []*candidate{one, two, broken}, 6, future, stopClear},
	} {
		s := share{until: c.until}
		if got := s.stop(c.live, c.done, 20); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	s := share{began: time.Now()}
	if s.next(time.Hour, 4); time.Until(s.until) > 15*time.Minute {
		t.Errorf("one of four points has %v of an hour", time.Until(s.until))
	}
	if s.next(0, 4); !s.until.IsZero() {
		t.Error("a share of no budget")
	}
}
