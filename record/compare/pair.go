package compare

import (
	"math"
	"slices"
)

// Between single runs, a smaller change is never told from a moment of the machine.
const (
	leastReach    = 0.05 // with enough points to estimate their common shift
	leastReachFew = 0.10 // with fewer points
)

// pair tests the changes between two single runs by their samples. All samples of a run share its
// moment, so the test alone would call a slow moment a change. pair therefore also estimates how large
// a change a moment may cause: c.Reach.
func (c *Comparison) pair(tested []*Change, t tables, o Options) {
	var effects, tails []float64
	for _, ch := range tested {
		before, after := logs(ch.Base), logs(ch.New)
		lg, p := t.shift(before, after, o.Level)
		ch.P = p
		ch.Ratio = Interval{Value: math.Exp(lg.Value), Lo: math.Exp(lg.Lo), Hi: math.Exp(lg.Hi)}
		if !math.IsNaN(lg.Value) {
			effects = append(effects, lg.Value)
		}
		tails = append(append(tails, distances(before)...), distances(after)...)
	}
	// A disturbance of some samples may as well affect all samples of a point.
	slices.Sort(tails)
	reach := math.Log1p(leastReachFew)
	if n := len(tails); n > 0 {
		reach = max(reach, tails[n*19/20])
	}
	if n := len(effects); n >= fewestPoints {
		shift := median(effects)
		apart := slices.Clone(effects)
		for i := range apart {
			apart[i] = math.Abs(apart[i] - shift)
		}
		sd := 1.4826 * median(apart) // of a normal distribution; robust against a few outliers
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

// distances returns the absolute distances of sorted values from their median.
func distances(sorted []float64) []float64 {
	list, middle := slices.Clone(sorted), median(sorted)
	for i := range list {
		list[i] = math.Abs(list[i] - middle)
	}
	return list
}

// reach is the largest change that a moment may cause at one point, as a share. It is more than
// c.Reach where the point's samples spread widely.
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

// mirror is how many times the largest change in the other direction a change between single runs must
// be. A moment slows one run as easily as the other, so without a change both directions look alike.
const mirror = 3

// beyond reports whether a change between single runs is larger than a moment may cause, both by
// itself and relative to the common shift.
func (c *Comparison) beyond(ch *Change) bool {
	reach, lg := math.Log1p(c.reach(ch)), math.Log(ch.Ratio.Value)
	if !math.IsNaN(c.Shift.Value) {
		if unshifted := lg - math.Log(c.Shift.Value); unshifted*lg < 0 || math.Abs(unshifted) < reach {
			return false
		}
	}
	return math.Abs(lg) >= reach
}
