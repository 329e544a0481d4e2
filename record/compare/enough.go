package compare

import (
	"math"
	"slices"
)

// mostRuns is the largest number of runs per side that is worth proposing.
const mostRuns = 100

// power is how many standard errors a change must exceed the critical value by, to be found in four of
// five cases.
const power = 0.84

// enough is how many runs per side would probably settle a change of the observed size: show that it
// is a change if it is large enough to matter, else show that it does not matter. It is 0 if the
// spread between runs is unknown or mostRuns are not enough.
func (c *Comparison) enough(ch *Change, o Options, tested int, q quantiles) int {
	sd, more := math.Log1p(ch.Spread), ch.freedom
	if !(sd > 0) { // for single runs, take the typical spread of all points
		sd, more = math.Log1p(c.Spread), 0
	} else {
		more -= float64(len(ch.before) + len(ch.after) - 2)
	}
	if !(sd > 0) {
		return 0
	}
	lg, p := math.Abs(math.Log(ch.Ratio.Value)), o.Alpha/float64(tested)
	if !(lg >= o.effect()) { // the verdict SAME needs no correction for the number of points
		lg, p = max(o.effect()/2, o.effect()-lg), 1-o.Level
	}
	for n := 3; n <= mostRuns; n++ {
		se := sd * math.Sqrt(2/float64(n))
		if (q.of(1-p/2, max(0, more)+float64(2*n-2))+power)*se <= lg {
			return n
		}
	}
	return 0
}

// quantiles caches quantiles of Student's distribution, since points ask for the same ones.
type quantiles map[[2]float64]float64

func (q quantiles) of(p, freedom float64) float64 {
	key := [2]float64{p, freedom}
	v, ok := q[key]
	if !ok {
		v = quantile(p, freedom)
		q[key] = v
	}
	return v
}

// Enough is how many runs per side would probably settle nine of ten ambiguous points; 0: there are
// none, or mostRuns are not enough.
func (c *Comparison) Enough() int {
	var need []int
	for i := range c.Changes {
		if ch := &c.Changes[i]; ch.Verdict == Ambiguous {
			n := ch.Enough
			if n == 0 {
				n = mostRuns + 1
			}
			need = append(need, n)
		}
	}
	if need == nil {
		return 0
	}
	slices.Sort(need)
	if n := need[(len(need)*9-1)/10]; n <= mostRuns {
		return n
	}
	return 0
}
