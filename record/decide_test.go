package record

import (
	"math"
	"slices"
	"testing"
)

// TestHalfWidth: the half-width is that of the wider side.
func TestHalfWidth(t *testing.T) {
	for _, c := range []struct{ lo, hi, want float64 }{{9, 13, 0.3}, {6, 11, 0.4}, {10, 10, 0}} {
		s := Stats{Median: 10, Lo: &c.lo, Hi: &c.hi}
		if w, ok := s.HalfWidth(); !ok || math.Abs(w-c.want) > 1e-12 {
			t.Errorf("from %v to %v around 10: %v, %t, want %v", c.lo, c.hi, w, ok, c.want)
		}
	}
}

// TestBimodal: two groups count if each has a fifth of the samples and lies apart by more than the effect
// and twice the width of either.
func TestBimodal(t *testing.T) {
	groups := func(n, m int, gap, width float64) []float64 {
		var list []float64
		for i := range n {
			list = append(list, width*float64(i)/float64(max(1, n-1)))
		}
		for range m {
			list = append(list, width+gap)
		}
		return list
	}
	for _, c := range []struct {
		name   string
		sorted []float64
		want   bool
	}{
		{"a fifth", groups(8, 2, 1, 0.1), true},
		{"less than a fifth", groups(9, 2, 1, 0.1), false},
		{"two halves", groups(5, 5, 1, 0.1), true},
		{"a gap below the effect", groups(5, 5, 0.4, 0.1), false},
		{"a gap of less than twice the width", groups(5, 5, 1, 0.6), false},
		{"too few", groups(3, 4, 1, 0.1), false},
	} {
		if got := bimodal(c.sorted, 0.5); got != c.want {
			t.Errorf("%s: %v is bimodal: %t", c.name, c.sorted, got)
		}
	}
}

// TestDriftIsRelativeToTheEarlier: later samples must differ by more than a share of the earlier ones.
func TestDriftIsRelativeToTheEarlier(t *testing.T) {
	for _, c := range []struct {
		early, late float64
		want        bool
	}{{1, 1.55, true}, {1, 1.45, false}, {1, 0.55, false}, {1, 0.45, true}} {
		samples := slices.Concat(slices.Repeat([]float64{c.early}, 6), slices.Repeat([]float64{c.late}, 6))
		if got := drifts(samples, 0.5); got != c.want {
			t.Errorf("from %v to %v: drift is %t", c.early, c.late, got)
		}
	}
}

// TestNodesDiffer: a machine differs if its ratio is off by more than the noise, and by 2 % at least.
func TestNodesDiffer(t *testing.T) {
	for _, c := range []struct {
		ratio, noise float64
		want         bool
	}{{1.03, 0.01, true}, {0.97, 0.01, true}, {1.015, 0.01, false}, {1.04, 0.05, false}, {1.06, 0.05, true}, {0.94, 0.05, true}} {
		if got := (NodeSpeed{Ratio: &c.ratio, Noise: &c.noise}).Differs(); got != c.want {
			t.Errorf("a ratio of %v with noise of %v differs: %t", c.ratio, c.noise, got)
		}
	}
	if one := 2.0; (NodeSpeed{Ratio: &one}).Differs() {
		t.Error("a machine without a noise differs")
	}
}

// TestLimitsOfTraining: each limit ends training once it is reached, not once it is passed.
func TestLimitsOfTraining(t *testing.T) {
	p := TrainingPlan{Iterations: 10, Time: 5, Loss: 2}
	for _, c := range []struct {
		name string
		at   Training
		want string
	}{
		{"before", Training{Iterations: 9, Wall: 4.9, Loss: 2.1}, ""},
		{"at the iterations", Training{Iterations: 10, Wall: 4.9, Loss: 2.1}, "iterations"},
		{"at the time", Training{Iterations: 9, Wall: 5, Loss: 2.1}, "time"},
		{"at the loss", Training{Iterations: 9, Wall: 4.9, Loss: 2}, "loss"},
		{"at the held-out loss", Training{Iterations: 9, Wall: 4.9, Loss: 3, HeldOut: &Score{Loss: 2}}, "loss"},
		{"a held-out loss above", Training{Iterations: 9, Wall: 4.9, Loss: 1, HeldOut: &Score{Loss: 2.1}}, ""},
		{"not begun", Training{}, ""},
	} {
		if got := p.Reached(&c.at); got != c.want {
			t.Errorf("%s: %q is reached, want %q", c.name, got, c.want)
		}
	}
}

// TestApart: a loss at the end of its band is 1 apart, whatever the width of the band.
func TestApart(t *testing.T) {
	tr := Training{Comparison: &Comparison{Curve: []float64{1.5, 2, 0.9}, Loss: []float64{1, 2, 1}, Width: []float64{0.5, 0.1, 0.2}}}
	got := tr.Apart()
	for i, want := range []float64{1, 0, 0.5} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("at iteration %d: %v apart, want %v", i, got[i], want)
		}
	}
}
