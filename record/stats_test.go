package record

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInterval checks the order statistics that enclose the median with 95 % confidence, computed from
// the binomial distribution.
func TestInterval(t *testing.T) {
	for _, want := range []struct {
		n      int
		lo, hi float64
		level  float64
	}{
		{6, 1, 6, 0.968750}, {7, 1, 7, 0.984375}, {8, 1, 7, 0.960938}, {9, 2, 8, 0.960938}, {10, 2, 9, 0.978516}, {20, 6, 15, 0.958611},
		{30, 10, 21, 0.957226},
	} {
		samples := make([]float64, want.n)
		for i := range samples {
			samples[i] = float64(want.n - i)
		}
		s, _ := Summarize(samples, 0)
		if s.Lo == nil || s.Hi == nil || *s.Lo != want.lo || *s.Hi != want.hi || math.Abs(s.Level-want.level) > 1e-6 {
			t.Errorf("n = %d: got %+v, want %+v", want.n, s, want)
		}
	}
	for n := range 6 {
		if s, w := Summarize(make([]float64, n), 0); s.Lo != nil || s.Hi != nil || !slices.Contains(w, WarnFewRounds) {
			t.Errorf("%d samples are too few for an interval", n)
		}
	}
}

func TestSummarize(t *testing.T) {
	in := []float64{3, 1, 2, 4}
	s, warnings := Summarize(in, 0.01)
	if !slices.Equal(in, []float64{3, 1, 2, 4}) {
		t.Error("the samples were reordered")
	}
	if s.N != 4 || s.Min != 1 || s.Q1 != 1.75 || s.Median != 2.5 || s.Q3 != 3.25 || s.Max != 4 || s.Mean != 2.5 ||
		math.Abs(*s.Stdev-math.Sqrt(5./3)) > 1e-15 || s.Lo != nil || s.Hi != nil || s.Level != Confidence {
		t.Errorf("got %+v", s)
	}
	if !slices.Equal(warnings, []string{WarnFewRounds}) {
		t.Errorf("got %q", warnings)
	}
	if s, warnings := Summarize(nil, 0); s.N != 0 || len(warnings) != 1 {
		t.Errorf("no samples: got %+v %q", s, warnings)
	}
	if s, _ := Summarize([]float64{7}, 0); s.Median != 7 || s.Stdev != nil {
		t.Errorf("one sample: got %+v", s)
	}
	if s, w := Summarize(slices.Repeat([]float64{2}, 10), 0.01); *s.Lo != 2 || *s.Hi != 2 || len(w) != 0 {
		t.Errorf("equal samples: got %+v %q", s, w)
	}
}

func TestWarnings(t *testing.T) {
	normal := func(seed uint64, n int, sd float64, shift func(i int) float64) []float64 {
		r := rand.New(rand.NewPCG(seed, 1))
		x := make([]float64, n)
		for i := range x {
			x[i] = 1 + sd*r.NormFloat64() + shift(i)
		}
		return x
	}
	none := func(int) float64 { return 0 }
	for _, c := range []struct {
		name    string
		samples []float64
		want    string
	}{
		{"noisy", normal(1, 20, 0.1, none), WarnNoisy},
		{"warming up", normal(2, 20, 0.001, func(i int) float64 { return 0.05 * float64(i) / 20 }), WarnDrift},
		{"stepping", normal(3, 10, 0.001, func(i int) float64 { return 0.1 * float64(i/5) }), WarnDrift},
		{"two clocks", normal(4, 20, 0.001, func(i int) float64 { return 0.1 * float64(i%2) }), WarnBimodal},
	} {
		if _, w := Summarize(c.samples, 0.02); !slices.Contains(w, c.want) {
			t.Errorf("%s: got %q", c.name, w)
		}
	}
	count := map[string]int{}
	for seed := range uint64(1000) {
		_, w := Summarize(normal(seed, 10, 0.03, none), 0.01)
		for _, w := range w {
			count[w]++
		}
	}
	if count[WarnDrift] > 20 || count[WarnBimodal] > 20 {
		t.Errorf("of 1000 harmless samples too many are warned of: %v", count)
	}
}

// TestRankTestTail compares the tail of the rank test with all orderings of small samples.
func TestRankTestTail(t *testing.T) {
	for n := 1; n <= 6; n++ {
		counts := make([]float64, n*n+1)
		total := 0.0
		for mask := range 1 << (2 * n) {
			early, pairs := 0, 0
			for bit := range 2 * n {
				if mask>>bit&1 == 0 {
					early++
				} else {
					pairs += early
				}
			}
			if early == n {
				counts[pairs]++
				total++
			}
		}
		sum := 0.0
		for u := range n*n/2 + 1 {
			sum += counts[u]
			if got, want := rarity(n, u), min(1, 2*sum/total); math.Abs(got-want) > 1e-12 {
				t.Errorf("n = %d, u = %d: got %g, want %g", n, u, got, want)
			}
		}
	}
	if exact, approx := rarity(20, 120), rarity(21, 133); math.Abs(exact/approx-1) > 0.2 {
		t.Errorf("the approximation is off where it takes over: %g, %g", exact, approx)
	}
}
