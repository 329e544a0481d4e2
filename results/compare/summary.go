package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Geomean is the geometric mean of the ratios of those changes that both runs
// measured and pick takes, with Student's interval of the mean logarithm, and
// the number of them. The interval tells how points differ from one another:
// whatever slowed a whole run alike is in the mean itself.
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
	v := Interval{math.Exp(mean), math.NaN(), math.NaN()}
	if n > 1 {
		half := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile((1+level)/2) * sd / math.Sqrt(float64(n))
		v.Lo, v.Hi = math.Exp(mean-half), math.Exp(mean+half)
	}
	return v, n
}

// Worst lists the n changes that became slowest, the slowest first, of those
// that were called slower.
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

// Rounds is how many samples of each run would probably settle nine of ten of
// the ambiguous points: intervals narrow with the square root of their number,
// and as many are needed as let the correction for the number of points find
// anything at all. It is 0 where nothing is ambiguous.
func (c *Comparison) Rounds(o Options) int {
	var need []int
	tested := 0
	for i := range c.Changes {
		ch := &c.Changes[i]
		if !math.IsNaN(ch.P) {
			tested++
		}
		if ch.Verdict != Ambiguous {
			continue
		}
		n := min(len(samples(ch.Base)), len(samples(ch.New)))
		if !ch.Ratio.Known() || n == 0 {
			need = append(need, n)
			continue
		}
		half := math.Log(ch.Ratio.Hi/ch.Ratio.Lo) / 2
		want := half / math.Log1p(max(o.MinEffect, 0.001))
		need = append(need, int(math.Ceil(float64(n)*want*want)))
	}
	if need == nil {
		return 0
	}
	slices.Sort(need)
	return max(need[(len(need)*9-1)/10], Least(tested, o))
}

// Least is the number of samples of each run that lets a point differ at all
// when so many points are tested.
func Least(tested int, o Options) int {
	n, orders := 1, 2.0 // orderings of n samples and n others
	for 2/orders*float64(max(1, tested)) >= o.Alpha {
		n++
		orders *= float64(2*(2*n-1)) / float64(n)
	}
	return n
}
