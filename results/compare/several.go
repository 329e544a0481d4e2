package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// finest is the least standard deviation that a run's median is taken to have,
// as a share: runs that agree by more than that do so by chance.
const finest = 1e-4

// shiftShare is the part of the level that the test of a common shift takes. It
// is small, since all points are wrong at once where that test is.
const shiftShare = 0.02

// several tests the changes of sides with several runs by the medians of their
// runs. What moved all points of a run alike is estimated first and taken out;
// where it differs between the sides by more than chance it counts as part of
// every change. What is left of a point's medians has a spread of its own,
// which so few runs tell badly: it is weighed against that of the other points.
func (c *Comparison) several(tested []*Change, o Options, comparisons int) {
	before, after := shifts(tested)
	shift := of(before, after)
	level := 1.0 // share of o.Alpha that is left for the points
	if before != nil {
		level -= shiftShare
		p := shiftShare * o.Alpha / float64(comparisons)
		c.Told = shift.p() < p
		c.Shift = shift.ratio(o.Level)
		shift.margin = quantile(1-p/2, shift.freedom) * shift.standard()
	}
	effects := make([]effect, len(tested))
	for i, ch := range tested {
		ch.beside = [2][]float64{less(ch.before, before), less(ch.after, after)}
		effects[i] = of(ch.beside[0], ch.beside[1])
	}
	c.Spread = math.Expm1(moderate(effects, independent(tested)))
	for i, ch := range tested {
		e := effects[i]
		ch.Spread = math.Expm1(e.sd)
		if c.Told {
			e.size, e.margin = e.size+shift.size, shift.margin
		}
		ch.Ratio = e.ratio(o.Level)
		if c.Told {
			wide := quantile((1+o.Level)/2, shift.freedom) * shift.standard()
			ch.Ratio.Lo, ch.Ratio.Hi = ch.Ratio.Lo*math.Exp(-wide), ch.Ratio.Hi*math.Exp(wide)
		}
		ch.P = min(1, e.p()/level)
		ch.freedom = e.freedom
	}
}

// shifts is by how much each run of either side moved all points alike; nil
// where there are too few points to tell. The shift of a run that has too few
// of them is not a number.
func shifts(tested []*Change) (before, after []float64) {
	if len(tested) < together {
		return nil, nil
	}
	at := func(side func(*Change) []float64) []float64 {
		list := make([]float64, len(side(tested[0])))
		for run := range list {
			var moved []float64
			for _, ch := range tested {
				middle := (median(ch.before) + median(ch.after)) / 2
				if v := side(ch)[run] - middle; !math.IsNaN(v) {
					moved = append(moved, v)
				}
			}
			list[run] = math.NaN()
			if len(moved) >= together {
				list[run] = median(moved)
			}
		}
		return list
	}
	return at(func(ch *Change) []float64 { return ch.before }), at(func(ch *Change) []float64 { return ch.after })
}

// less is values without the shifts of their runs.
func less(values, shifts []float64) []float64 {
	list := slices.Clone(values)
	for i := range shifts {
		list[i] -= shifts[i]
	}
	return list
}

// An effect is the difference between the runs of two sides.
type effect struct {
	size    float64 // mean of the one less that of the other
	sd      float64 // of a run
	freedom float64 // degrees of freedom of sd; 0: it is not known
	n, m    int     // runs
	margin  float64 // that the size has to exceed
}

// of is the effect between runs a and runs b, of which some may be NaN.
func of(a, b []float64) effect {
	a, b = numbers(a), numbers(b)
	e := effect{n: len(a), m: len(b), freedom: float64(max(0, len(a)+len(b)-2))}
	if e.n == 0 || e.m == 0 {
		return effect{size: math.NaN()}
	}
	ma, mb := stat.Mean(a, nil), stat.Mean(b, nil)
	sum := 0.0
	for _, v := range a {
		sum += (v - ma) * (v - ma)
	}
	for _, v := range b {
		sum += (v - mb) * (v - mb)
	}
	e.size = mb - ma
	if e.freedom > 0 {
		e.sd = max(finest, math.Sqrt(sum/e.freedom))
	}
	return e
}

// standard is the standard error of the effect's size.
func (e effect) standard() float64 { return e.sd * math.Sqrt(1/float64(e.n)+1/float64(e.m)) }

// p is the probability, both sides together, of an effect as large by chance.
func (e effect) p() float64 {
	if e.freedom == 0 || math.IsNaN(e.size) {
		return 1
	}
	t := max(0, math.Abs(e.size)-e.margin) / e.standard()
	return min(1, 2*distuv.StudentsT{Sigma: 1, Nu: e.freedom}.CDF(-t))
}

// ratio is the effect as a ratio with its interval.
func (e effect) ratio(level float64) Interval {
	v := unknown()
	if !math.IsNaN(e.size) {
		v.Value = math.Exp(e.size)
	}
	if e.freedom > 0 {
		half := quantile((1+level)/2, e.freedom) * e.standard()
		v.Lo, v.Hi = math.Exp(e.size-half), math.Exp(e.size+half)
	}
	return v
}

// quantile is that of Student's distribution.
func quantile(p, freedom float64) float64 {
	if freedom <= 0 {
		return math.Inf(1)
	}
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(p)
}

// independent is how many of the points tell of the spread between runs by
// themselves. What slows some points of a run alike, such as all those on two
// workers, makes their spreads one and the same: they are then as one point. It
// is told from how much the residuals of two points are along each other, which
// of independent points is one part in as many as there are degrees of freedom.
func independent(tested []*Change) float64 {
	if len(tested) < 2 {
		return 1
	}
	runs := len(tested[0].before) + len(tested[0].after)
	gram := make([]float64, runs*runs)
	points, freedom := 0.0, float64(runs-2)
	for _, ch := range tested {
		u := append(residuals(ch.beside[0]), residuals(ch.beside[1])...)
		norm := floats.Norm(u, 2)
		if !(norm > finest) { // or not a number: a run lacks it
			continue
		}
		points++
		for i := range u {
			for j := range u {
				gram[i*runs+j] += u[i] * u[j] / (norm * norm)
			}
		}
	}
	if points < 2 || freedom <= 1 {
		return 1
	}
	pairs := (floats.Dot(gram, gram) - points) / (points * (points - 1))
	alike := max(0, (pairs-1/freedom)/(1-1/freedom))
	return points / (1 + (points-1)*alike)
}

// residuals are values without their mean.
func residuals(values []float64) []float64 {
	list := slices.Clone(values)
	floats.AddConst(-stat.Mean(values, nil), list)
	return list
}

// numbers are values without those that are not.
func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// median of values that are numbers; NaN where there is none.
func median(values []float64) float64 {
	list := numbers(values)
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// apart says whether the runs of one side are beyond those of the other, but for
// as few as Mann and Whitney's test at 5 % allows; of so few runs that no order
// of them is as rare, all have to be.
func (c *Comparison) apart(ch *Change, t tables) bool {
	a, b := ch.beside[0], ch.beside[1]
	if c.Told {
		a, b = ch.before, ch.after
	}
	a, b, below := numbers(a), numbers(b), 0
	for _, x := range a {
		for _, y := range b {
			if (y > x) != (ch.Ratio.Value > 1) {
				below++
			}
		}
	}
	tails := t.tails(len(a), len(b))
	return 2*tails.upTo(below) <= max(0.05, 2*tails.upTo(0))
}
