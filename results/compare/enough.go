package compare

import (
	"math"
	"slices"
)

// mostRuns of a side are what anybody would make.
const mostRuns = 100

// power is how many standard errors beyond the least change that is found four
// of five such changes are found.
const power = 0.84

// enough is how many runs of each side would probably settle a change of the
// size that was seen: tell it from none where it would matter, else show that it
// does not. It is 0 where the spread between runs is not known, or where
// mostRuns are not enough.
func (c *Comparison) enough(ch *Change, o Options, tested int, q quantiles) int {
	sd, more := math.Log1p(ch.Spread), ch.freedom
	if !(sd > 0) { // single runs, of which the other points tell
		sd, more = math.Log1p(c.Spread), 0
	} else {
		more -= float64(len(ch.before) + len(ch.after) - 2)
	}
	if !(sd > 0) {
		return 0
	}
	lg, p := math.Abs(math.Log(ch.Ratio.Value)), o.Alpha/float64(tested)
	if !(lg >= o.effect()) { // that it is the same is told without a correction
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

// quantiles keeps those of Student's distribution that were computed: points ask
// for the same ones.
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

// Enough is how many runs of each side would probably settle nine of ten
// ambiguous points; 0 where there is none, or where mostRuns would not.
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
