package compare

import (
	"math"
	"slices"
)

// Of single runs a change of less is never told from a moment of the machine:
// where there are enough points to see what others did, and where not.
const (
	leastReach    = 0.05
	leastReachFew = 0.10
)

// pair tests the changes between two single runs by their samples, which share
// their run's moment: the test alone would call such a moment a change. So pair
// also finds how far a moment may reach.
func (c *Comparison) pair(tested []*Change, t tables, o Options) {
	var effects, tails []float64
	for _, ch := range tested {
		before, after := logs(ch.Base), logs(ch.New)
		lg, p := t.shift(before, after, o.Level)
		ch.P = p
		ch.Ratio = Interval{math.Exp(lg.Value), math.Exp(lg.Lo), math.Exp(lg.Hi)}
		if !math.IsNaN(lg.Value) {
			effects = append(effects, lg.Value)
		}
		tails = append(append(tails, distances(before)...), distances(after)...)
	}
	// A moment that befell some samples may befall all of them.
	slices.Sort(tails)
	reach := math.Log1p(leastReachFew)
	if n := len(tails); n > 0 {
		reach = max(reach, tails[n*19/20])
	}
	if n := len(effects); n >= together {
		shift := median(effects)
		apart := slices.Clone(effects)
		for i := range apart {
			apart[i] = math.Abs(apart[i] - shift)
		}
		sd := 1.4826 * median(apart) // as if of a normal distribution, whatever a few points did
		c.Shift.Value, c.Spread = math.Exp(shift), math.Expm1(sd/math.Sqrt2)
		reach = max(math.Log1p(leastReach), math.Abs(shift), tails[len(tails)*19/20],
			quantile(1-o.Alpha/2/float64(n), float64(n-1))*sd)
		c.away = [2]float64{shift - slices.Min(effects), slices.Max(effects) - shift}
		wide := quantile((1+o.Level)/2, float64(n-1)) * sd
		for _, ch := range tested {
			if ch.Ratio.Known() {
				ch.Ratio.Lo = min(ch.Ratio.Lo, ch.Ratio.Value*math.Exp(-wide))
				ch.Ratio.Hi = max(ch.Ratio.Hi, ch.Ratio.Value*math.Exp(wide))
			}
		}
	}
	c.Reach = math.Expm1(reach)
}

// distances are those of sorted values from their median.
func distances(sorted []float64) []float64 {
	list, middle := slices.Clone(sorted), median(sorted)
	for i := range list {
		list[i] = math.Abs(list[i] - middle)
	}
	return list
}

// reach is how far a moment may reach at one point, whose samples may spread
// more than those of others.
func (c *Comparison) reach(ch *Change) float64 {
	reach := math.Log1p(c.Reach)
	if ch.Ratio.Value > 1 {
		reach = max(reach, mirror*c.away[0])
	} else {
		reach = max(reach, mirror*c.away[1])
	}
	for _, v := range [][]float64{logs(ch.Base), logs(ch.New)} {
		if n := len(v); n > 0 {
			reach = max(reach, 3*(v[n*3/4]-v[n/4])/1.349)
		}
	}
	return math.Expm1(reach)
}

// mirror is how far a change between single runs has to be beyond the largest
// one in the other direction: a moment befalls the one run as easily as the
// other, so that without a change both directions look alike.
const mirror = 3

// beyond says whether a change between single runs is more than a moment of
// either run, by itself and beside what all points did.
func (c *Comparison) beyond(ch *Change) bool {
	reach, lg := math.Log1p(c.reach(ch)), math.Log(ch.Ratio.Value)
	if !math.IsNaN(c.Shift.Value) {
		if beside := lg - math.Log(c.Shift.Value); beside*lg < 0 || math.Abs(beside) < reach {
			return false
		}
	}
	return math.Abs(lg) >= reach
}
