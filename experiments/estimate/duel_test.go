package estimate

import (
	"math"
	"testing"

	"rnnbench/record"
)

// TestDuel: a mean has its interval, and a point that is within its interval is neither faster nor slower.
func TestDuel(t *testing.T) {
	d := Duel{{2, 1.9, 2.1}, {0.5, 0.4, 0.6}, {1, 0.9, 1.1}}
	if s, want := d.Full("cuDNN", "point"), "1.00× as fast as cuDNN (geometric mean of 3 points, 0.88 to 1.11; range 0.50× to 2.00×; clearly slower at 1; even within intervals at 1)"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
	if s, want := d[:1].Brief("cuDNN"), "2.00× as fast as cuDNN (1.90 to 2.10)"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
	d = append(d, Estimate{3, 0, math.Inf(1)})
	if s, want := d.Brief("cuDNN"), "1.32× as fast as cuDNN (interval unknown)"; s != want {
		t.Errorf("%q, want %q", s, want)
	}
}

// TestLeader: a technique leads where no other may be as fast.
func TestLeader(t *testing.T) {
	of := func(label string, at float64) record.Record {
		lo, hi := 0.99*at, 1.01*at
		return record.Record{Status: record.OK, Impl: record.Impl{Label: label}, Stats: &record.Stats{Median: at, Lo: &lo, Hi: &hi}}
	}
	all := func(record.Point) bool { return true }
	recs := []record.Record{of("a", 1), of("b", 1.03), of("c", 2)}
	if best, clear := Leader(recs, []string{"a", "b", "c"}, all); best.Impl.Label != "a" || clear {
		t.Errorf("%v, %t", best.Impl.Label, clear)
	}
	if best, clear := Leader(recs, []string{"a", "c"}, all); best.Impl.Label != "a" || !clear {
		t.Errorf("%v, %t", best.Impl.Label, clear)
	}
	var s Score
	s.Add(&recs[0], true)
	s.Add(&recs[1], false)
	if text := s.Text([]string{"a", "b"}); text != "a at 1; without a clear lead at 1" {
		t.Error(text)
	}
}
