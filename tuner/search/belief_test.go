package search

import (
	"math"
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
