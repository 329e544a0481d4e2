package search

import (
	"context"
	"math"
	"slices"
	"testing"
)

// TestBeliefs: without an expectation, the belief about an arm is its score. With one, score and
// expectation count by their variances, as for two independent measurements.
func TestBeliefs(t *testing.T) {
	samples := [][]float64{{1, 1.1, 1.2, 1.3}, {2, 2.2, 2.4, 2.6}, {1.5, 1.65, 1.8, 1.95}}
	s := &state{arms: make([]Arm, 3), live: []int{0, 1, 2}, samples: samples}
	sigma := noise(samples)
	v := 1.4 * sigma * sigma / 4
	of := s.beliefs()
	for i := range samples {
		if want := math.Log(Score(samples[i])); math.Abs(of[i].mean-want) > 1e-12 || math.Abs(of[i].variance-v) > 1e-12 {
			t.Errorf("arm %d: %+v, want its score, %v, with variance %v", i, of[i], want, v)
		}
	}
	// Arm 1 is expected to be as fast as the others, with a doubt as large as the error of its score: the
	// belief lies in the middle.
	s.arms[1].Doubt = math.Sqrt(v)
	middle := (math.Log(Score(samples[1])) + math.Log(Score(samples[2]))) / 2
	if b := s.beliefs()[1]; math.Abs(b.mean-middle) > 1e-12 || math.Abs(b.variance-v/2) > 1e-12 {
		t.Errorf("an arm in doubt: %+v, want %v with variance %v", b, middle, v/2)
	}
}

// TestNoise is that of samples by hand: the median distance from the score, 1.48 of which is a standard
// deviation, and larger by √(n/(n-1)) since the samples made the score.
func TestNoise(t *testing.T) {
	if got := noise([][]float64{{1}, {2}}); got != 0.1 {
		t.Errorf("of single samples: %v, want the usual noise", got)
	}
	one := []float64{1, 1, 1.2, 1.2} // its score is 1
	if got, want := noise([][]float64{one}), 1.48*(0+math.Log(1.2))/2*math.Sqrt(4./3); math.Abs(got-want) > 1e-12 {
		t.Errorf("of %v: %v, want %v", one, got, want)
	}
}

// limited is a bench that notes the limits of samples, by arm.
type limited struct {
	*noisy
	limits [][]float64
}

func (l *limited) Measure(ctx context.Context, arm int, limit float64) (float64, error) {
	l.limits[arm] = append(l.limits[arm], limit)
	return l.noisy.Measure(ctx, arm, limit)
}

// TestLimits: a first sample is rough only if it takes over twice the best so far. Later samples never are.
func TestLimits(t *testing.T) {
	b := &limited{newNoisy([]float64{3, 4, 5}, 1, 0), make([][]float64, 3)}
	search(t, b, []Arm{{Predicted: 1}, {Predicted: 2}, {Predicted: 3}}, options())
	for arm, want := range []float64{0, 6, 6} {
		if l := b.limits[arm]; l[0] != want || slices.Max(append(l[1:], 0)) > 0 {
			t.Errorf("the limits of arm %d are %v, want %v and then none", arm, l, want)
		}
	}
}

// TestChampion: new arms are compared with the fastest of those that won an earlier search.
func TestChampion(t *testing.T) {
	s := &state{arms: []Arm{{Known: 1, Beaten: true}, {Known: 3}, {}, {Known: 2}}}
	if s.enter(); s.champion != 3 || !slices.Equal(s.live, []int{2, 3}) {
		t.Errorf("the champion is %d of arms %v, want 3 of 2 and 3", s.champion, s.live)
	}
	s = &state{arms: []Arm{{Known: 1, Beaten: true}, {}}}
	if s.enter(); s.champion != -1 {
		t.Errorf("the champion is %d, which was beaten", s.champion)
	}
}

// TestTiesByInterval: an arm that is slower by more than a tie cannot be told from the winner while the
// interval of their ratio covers 1.
func TestTiesByInterval(t *testing.T) {
	for _, c := range []struct {
		name   string
		ratios []float64
		ties   []int
	}{
		{"covers 1", []float64{1.1, 0.95, 1.1, 0.95, 1.1, 1.1, 0.95, 1.1}, []int{1}},
		{"lies above 1", []float64{1.1, 1.05, 1.1, 1.05, 1.1, 1.1, 1.05, 1.1}, nil},
	} {
		s := &state{arms: make([]Arm, 2), o: Options{Tie: 0.01, Incumbent: -1}, samples: [][]float64{slices.Repeat([]float64{1}, 8), c.ratios}}
		r := &Result{Winner: 0, Second: -1}
		s.runnerUp(r, []int{0, 1}, []float64{1, 1.1})
		if !slices.Equal(r.Ties, c.ties) || r.Second != 1 || math.Abs(r.Lead-0.1) > 1e-12 {
			t.Errorf("the interval %s: ties %v, second %d by %v", c.name, r.Ties, r.Second, r.Lead)
		}
	}
}
