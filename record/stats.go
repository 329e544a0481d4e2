package record

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"gonum.org/v1/gonum/stat"
)

// Confidence is the level that intervals of the median reach at least.
const Confidence = 0.95

// Summarize describes samples, in seconds and in the order in which they were taken, and returns
// warnings about them. target is the relative half-width that the median's interval should reach; 0:
// any. The caller sets Stop. Samples must be finite; there may be none.
//
// It assumes no distribution and leaves no sample out.
func Summarize(samples []float64, target float64) (Stats, []string) {
	s := Stats{N: len(samples), Level: Confidence}
	if s.N == 0 {
		return s, []string{WarnFewRounds}
	}
	sorted := slices.Sorted(slices.Values(samples))
	s.Min, s.Max = sorted[0], sorted[s.N-1]
	s.Q1, s.Median, s.Q3 = quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75)
	s.Mean = stat.Mean(sorted, nil)
	if s.N > 1 {
		sd := stat.StdDev(sorted, nil)
		s.Stdev = &sd
	}
	var warnings []string
	if lo, hi, level, ok := around(sorted); ok {
		s.Lo, s.Hi, s.Level = &lo, &hi, math.Round(level*1e6)/1e6
	} else {
		warnings = append(warnings, WarnFewRounds)
	}
	if half, ok := s.HalfWidth(); ok && target > 0 && half > target {
		warnings = append(warnings, WarnNoisy)
	}
	effect := max(target, 0.01)
	if bimodal(sorted, s.Median*effect) {
		warnings = append(warnings, WarnBimodal)
	}
	if drifts(samples, effect) {
		warnings = append(warnings, WarnDrift)
	}
	return s, warnings
}

// around is the interval of the median of sorted, between two of the samples, and its level; false:
// there are too few.
func around(sorted []float64) (lo, hi, level float64, ok bool) {
	ci := benchmath.AssumeNothing.Summary(benchmath.NewSample(sorted, &benchmath.DefaultThresholds), Confidence)
	return ci.Lo, ci.Hi, ci.Confidence, !math.IsInf(ci.Lo, 0) && !math.IsInf(ci.Hi, 0)
}

// HalfWidth is the larger side of the median's interval, relative to the median; false: too few
// samples.
func (s *Stats) HalfWidth() (float64, bool) {
	if s.Lo == nil || s.Hi == nil || s.Median <= 0 {
		return 0, false
	}
	return max(*s.Hi-s.Median, s.Median-*s.Lo) / s.Median, true
}

// quantile interpolates between order statistics as NumPy and R (type 7) do: the smallest sample is
// quantile 0, the largest is quantile 1.
//
// Note: gonum's stat.Quantile interpolates the distribution function instead, so its median of
// 1, 2, 3, 4 is 2.
func quantile(sorted []float64, p float64) float64 {
	at, frac := math.Modf(p * float64(len(sorted)-1))
	i := int(at)
	if frac == 0 {
		return sorted[i]
	}
	return sorted[i] + frac*(sorted[i+1]-sorted[i])
}

// bimodal reports whether sorted falls into two groups, each of at least a fifth of the samples. The
// gap between them must be over effect seconds and over twice the width of either group.
func bimodal(sorted []float64, effect float64) bool {
	n := len(sorted)
	if n < 8 {
		return false
	}
	least := max(2, (n+4)/5)
	for i := least; i <= n-least; i++ {
		gap := sorted[i] - sorted[i-1]
		widest := max(sorted[i-1]-sorted[0], sorted[n-1]-sorted[i])
		if gap > effect && gap > 2*widest {
			return true
		}
	}
	return false
}

// drifts reports whether the later half of samples differs from the earlier half. The medians must
// differ by more than effect, relative to the earlier one. Mann and Whitney's test must also reject
// chance at the 1 % level.
func drifts(samples []float64, effect float64) bool {
	half := len(samples) / 2
	if half < 5 {
		return false // no ordering of 4 and 4 is rare enough
	}
	early, late := slices.Clone(samples[:half]), slices.Clone(samples[len(samples)-half:])
	slices.Sort(early)
	slices.Sort(late)
	before, after := quantile(early, 0.5), quantile(late, 0.5)
	if math.Abs(after-before) <= effect*before {
		return false
	}
	// u is twice the number of pairs whose earlier sample is smaller; ties count once.
	u := 0
	for _, a := range early {
		for _, b := range late {
			switch {
			case a < b:
				u += 2
			case a == b:
				u++
			}
		}
	}
	return rarity(half, (min(u, 2*half*half-u)+1)/2) < 0.01
}

// rarity is the two-sided p-value of Mann and Whitney's test: the probability that, of two samples of
// n values from one population, at most u pairs are in one order.
func rarity(n, u int) float64 {
	if n > 20 { // normal approximation
		mean, sd := float64(n*n)/2, math.Sqrt(float64(n*n*(2*n+1))/12)
		return math.Erfc((mean - float64(u) - 0.5) / sd / math.Sqrt2)
	}
	// ways[i][v] counts the orderings of i late samples among the early ones so far that have v
	// pairs in order. Early ones are added one by one (Mann and Whitney 1947).
	ways := make([][]float64, n+1)
	for i := range ways {
		ways[i] = make([]float64, n*n+1)
		ways[i][0] = 1 // without early ones there are no pairs
	}
	for j := 1; j <= n; j++ {
		// The largest sample is early and adds no pair, or late and adds j pairs.
		for i := 1; i <= n; i++ {
			for v := n * n; v >= j; v-- {
				ways[i][v] += ways[i-1][v-j]
			}
		}
	}
	var at, all float64
	for v, w := range ways[n] {
		all += w
		if v <= u {
			at += w
		}
	}
	return min(1, 2*at/all)
}
