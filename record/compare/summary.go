package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Geomean is the geometric mean of the ratios of the changes for which pick is true, with Student's
// interval of the mean logarithm. It also returns their number. nil picks all; changes without a ratio
// are left out. The interval reflects how points differ from one another. What slowed a whole run
// alike is in the mean itself.
func (c *Comparison) Geomean(level float64, pick func(*Change) bool) (Interval, int) {
	var logs []float64
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Ratio.Value > 0 && (pick == nil || pick(ch)) {
			logs = append(logs, math.Log(ch.Ratio.Value))
		}
	}
	n := len(logs)
	if n == 0 {
		return unknown(), 0
	}
	mean, sd := stat.MeanStdDev(logs, nil)
	v := Interval{Value: math.Exp(mean), Lo: math.NaN(), Hi: math.NaN()}
	if n > 1 {
		half := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile((1+level)/2) * sd / math.Sqrt(float64(n))
		v.Lo, v.Hi = math.Exp(mean-half), math.Exp(mean+half)
	}
	return v, n
}

// Worst lists up to n changes with the verdict Slower, the largest ratio first.
func (c *Comparison) Worst(n int) []*Change {
	var list []*Change
	for i := range c.Changes {
		if c.Changes[i].Verdict == Slower {
			list = append(list, &c.Changes[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *Change) int {
		switch {
		case a.Ratio.Value > b.Ratio.Value:
			return -1
		case a.Ratio.Value < b.Ratio.Value:
			return 1
		}
		return 0
	})
	return list[:min(n, len(list))]
}
