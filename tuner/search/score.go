package search

import (
	"math"
	"slices"
)

// Score is the mean of the faster half of an arm's samples; 0: there are none.
//
// Noise makes runs longer, often by much. On a shared machine the slower half tells more of other
// programs than of the arm. Of the scores tried, this one agrees best with itself: it most often
// names the same winner in repeated recordings and in either half of the rounds
// (docs/notebook/tuning.md).
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

// median is the median of samples; 0: there are none.
func median(samples []float64) float64 {
	n := len(samples)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// noise is the standard deviation of samples from the scores of their arms, as a share. It is
// estimated by the median, so outliers do not count. It is a usual value where each arm has one sample.
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
