package search

import (
	"math"
	"slices"
)

// Score is what samples of one arm come to: the mean of the faster half, 0 where
// there is none.
//
// Noise makes runs longer, often by much: of a machine that others use as well
// the slower half tells more of them than of the arm. Of the scores tried, this
// one names the same winner most often when the same points are recorded again,
// or by either half of the rounds (docs/performance.md, Tuning).
func Score(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	fast := slices.Sorted(slices.Values(samples))[:(len(samples)+1)/2]
	sum := 0.0
	for _, s := range fast {
		sum += s
	}
	return sum / float64(len(fast))
}

// median of samples, 0 if there is none.
func median(samples []float64) float64 {
	n := len(samples)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// noise is how far a sample of several arms is from the score of its arm, as a
// share: a standard deviation, but for the few that are far off. Where each arm
// has a single sample it is a usual one.
func noise(samples [][]float64) float64 {
	const usual = 0.1
	var off []float64
	for _, s := range samples {
		if n := float64(len(s)); n > 1 {
			m := Score(s)
			for _, x := range s {
				off = append(off, math.Abs(math.Log(x/m))*math.Sqrt(n/(n-1)))
			}
		}
	}
	if off == nil {
		return usual
	}
	return 1.48 * median(off)
}
