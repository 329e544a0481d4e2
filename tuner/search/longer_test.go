package search

import "testing"

// TestLonger: with time left, rounds go on while the winner is open, and end where it is settled.
func TestLonger(t *testing.T) {
	for _, c := range []struct {
		name  string
		truth []float64
		noise float64
		clear bool
		more  bool // rounds beyond the usual
	}{
		{"a lead", []float64{1, 2}, 0.01, true, false},
		{"equal", []float64{1, 1}, 0, false, false},
		{"open", []float64{1, 1.03}, 0.1, true, true},
	} {
		for _, strategy := range []string{"racing", "exhaustive"} {
			o := options()
			o.Strategy = strategy
			usual := search(t, newNoisy(c.truth, 3, c.noise), make([]Arm, 2), o)
			left := 1000
			o.Longer = func() bool { left--; return left > 0 }
			r := search(t, newNoisy(c.truth, 3, c.noise), make([]Arm, 2), o)
			if r.Clear != c.clear || !r.Complete || (r.Rounds > o.Rounds) != c.more || usual.Rounds > o.Rounds {
				t.Errorf("%s, %s: clear %t, complete %t, %d rounds, usually %d", c.name, strategy, r.Clear, r.Complete, r.Rounds, usual.Rounds)
			}
		}
	}
	// Only extra rounds are cut short when the time is spent.
	o := options()
	o.Longer = func() bool { return true }
	n := 0
	o.Spent = func() bool { n++; return n > 40 }
	if r := search(t, newNoisy([]float64{1, 1.001}, 3, 0.1), make([]Arm, 2), o); r.Clear || !r.Complete || r.Rounds != 20 {
		t.Errorf("spent: clear %t, complete %t, %d rounds", r.Clear, r.Complete, r.Rounds)
	}
	// One sample each is no ground for a claim.
	o = options()
	o.MaxEvals = 2
	if r := search(t, newNoisy([]float64{1, 2}, 3, 0.1), make([]Arm, 2), o); r.Clear || r.Complete {
		t.Errorf("two samples: clear %t, complete %t", r.Clear, r.Complete)
	}
}
