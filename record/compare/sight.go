package compare

import (
	"math"
	"slices"
	"sort"
)

// A Sight is how small a change a comparison sees: one that gets the verdict FASTER or SLOWER in four of five
// cases. NaN: unknown.
type Sight struct {
	Point  float64 // change of one point, as a share, at nine of ten points
	Common float64 // change of all points alike, where that is told apart from changes of points; else Point
}

// SightOf is what the comparison saw.
func (c *Comparison) SightOf(o Options) Sight {
	if c.Single {
		var reach []float64
		for i := range c.Changes {
			if ch := &c.Changes[i]; ch.Ratio.Value > 0 {
				reach = append(reach, c.reach(ch))
			}
		}
		v := most(reach)
		return Sight{v, v}
	}
	return c.sightAfter(0, o)
}

// sightAfter is the sight after so many runs per side; 0: after those that there were.
func (c *Comparison) sightAfter(runs int, o Options) Sight {
	var least []float64
	q := quantiles{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if !(ch.Ratio.Value > 0) {
			continue
		}
		e := effect{sd: math.Log1p(ch.Spread), freedom: ch.freedom, n: len(numbers(ch.before)), m: len(numbers(ch.after))}
		if c.Single { // the typical spread of points is known, but not that of runs at each
			e.sd, e.freedom = math.Log1p(c.Spread), 0
		}
		level := 1.0
		if !math.IsNaN(c.Shift.Value) && !c.Single {
			level -= shiftShare
		}
		least = append(least, max(e.seen(level*o.Alpha/float64(c.tested), runs, q), o.effect()+power*e.after(runs).standard()))
	}
	s := Sight{Point: math.Expm1(most(least))}
	s.Common = s.Point
	if c.shift.freedom > 0 {
		s.Common = math.Expm1(c.shift.seen(shiftShare*o.Alpha, runs, q))
	}
	return s
}

// after is the effect after so many runs per side, if its standard deviation stays; 0: after those that there
// were.
func (e effect) after(runs int) effect {
	if runs > 0 {
		e.freedom += float64(2*runs - e.n - e.m)
		if e.freedom < float64(2*runs-2) {
			e.freedom = float64(2*runs - 2)
		}
		e.n, e.m = runs, runs
	}
	return e
}

// seen is the least size that a test at level p finds in four of five cases after so many runs, as a logarithm.
func (e effect) seen(p float64, runs int, q quantiles) float64 {
	e = e.after(runs)
	if e.n == 0 || e.m == 0 || !(e.sd > 0) || e.freedom <= 0 {
		return math.Inf(1)
	}
	return (q.of(1-p/2, e.freedom) + power) * e.standard()
}

// most is a value that nine of ten do not exceed; NaN: there are none, or it is infinite.
func most(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	if v := list[(len(list)*9-1)/10]; !math.IsInf(v, 0) {
		return v
	}
	return math.NaN()
}

// mostToSee is the largest number of runs per side for which a time is worth telling.
const mostToSee = 10000

// RunsToSee is how many runs per side would see a change of this share, of one point or of all alike; 0:
// unknown, or too many.
func (c *Comparison) RunsToSee(change float64, o Options) int {
	n := 2 + sort.Search(mostToSee-1, func(i int) bool {
		s := c.sightAfter(2+i, o)
		return max(s.Point, s.Common) <= change
	})
	if n > mostToSee {
		return 0
	}
	return n
}
