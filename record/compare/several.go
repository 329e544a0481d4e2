package compare

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// finest is the least standard deviation assumed of a run's median, as a share. Runs that agree better
// do so by chance.
const finest = 1e-4

// shiftShare is the part of o.Alpha that the test of a common shift uses. It is small, since an error
// of that test makes all points wrong at once.
const shiftShare = 0.02

// several tests the changes between sides with several runs by the medians of their runs. First it
// estimates and removes each run's shift, which moves all points of the run alike. If the shifts
// differ between the sides by more than chance, that difference is part of every change. The rest of a
// point's medians has a spread of its own. A few runs estimate it badly, so moderate combines it with
// the spreads of the other points.
func (c *Comparison) several(tested []*Change, o Options, comparisons int) {
	before, after := shifts(tested)
	shift := effectOf(before, after)
	level := 1.0 // share of o.Alpha that is left for the points
	if before != nil {
		level -= shiftShare
		p := shiftShare * o.Alpha / float64(comparisons)
		c.Shifted = shift.p() < p
		c.Shift, c.shift = shift.ratio(o.Level), shift
		shift.margin = quantile(1-p/2, shift.freedom) * shift.standard()
	}
	effects := make([]effect, len(tested))
	for i, ch := range tested {
		ch.unshifted = [2][]float64{withoutShifts(ch.before, before), withoutShifts(ch.after, after)}
		effects[i] = effectOf(ch.unshifted[0], ch.unshifted[1])
	}
	c.Spread = math.Expm1(moderate(effects, independent(tested)))
	for i, ch := range tested {
		e := effects[i]
		ch.Spread = math.Expm1(e.sd)
		if c.Shifted {
			e.size, e.margin = e.size+shift.size, shift.margin
		}
		ch.Ratio = e.ratio(o.Level)
		if c.Shifted {
			wide := quantile((1+o.Level)/2, shift.freedom) * shift.standard()
			ch.Ratio.Lo, ch.Ratio.Hi = ch.Ratio.Lo*math.Exp(-wide), ch.Ratio.Hi*math.Exp(wide)
		}
		ch.P = min(1, e.p()/level)
		ch.freedom = e.freedom
	}
}

// shifts estimates by how much each run of either side moved all points alike, as logs. It is nil if
// there are too few points, and NaN for a run with too few of them.
func shifts(tested []*Change) (before, after []float64) {
	if len(tested) < fewestPoints {
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
			if len(moved) >= fewestPoints {
				list[run] = median(moved)
			}
		}
		return list
	}
	return at(func(ch *Change) []float64 { return ch.before }), at(func(ch *Change) []float64 { return ch.after })
}

// withoutShifts returns values less the shifts of their runs.
func withoutShifts(values, shifts []float64) []float64 {
	list := slices.Clone(values)
	for i := range shifts {
		list[i] -= shifts[i]
	}
	return list
}

// An effect is the difference between the runs of two sides.
type effect struct {
	size    float64 // mean of the new side less mean of the base, as logs
	sd      float64 // of a run
	freedom float64 // degrees of freedom of sd; 0: sd is unknown
	n, m    int     // runs of the base and of the new side
	margin  float64 // that |size| must exceed
}

// effectOf computes the effect between the runs a and b. NaNs among them are left out.
func effectOf(a, b []float64) effect {
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

// p is the two-sided probability of an effect that large by chance.
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

// quantile is the quantile of Student's distribution.
func quantile(p, freedom float64) float64 {
	if freedom <= 0 {
		return math.Inf(1)
	}
	return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(p)
}

// independent estimates how many independent points inform about the spread between runs. What slows
// some points of a run alike, such as all points on two workers, makes their spreads equal: they
// count as one. The estimate compares the mean squared correlation of two points' residuals with
// 1/freedom, its value for independent points.
func independent(tested []*Change) float64 {
	if len(tested) < 2 {
		return 1
	}
	runs := len(tested[0].before) + len(tested[0].after)
	gram := make([]float64, runs*runs)
	points, freedom := 0.0, float64(runs-2)
	for _, ch := range tested {
		u := append(residuals(ch.unshifted[0]), residuals(ch.unshifted[1])...)
		norm := floats.Norm(u, 2)
		if !(norm > finest) { // or NaN: a run lacks the point
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

// residuals returns values less their mean.
func residuals(values []float64) []float64 {
	list := slices.Clone(values)
	floats.AddConst(-stat.Mean(values, nil), list)
	return list
}

// numbers returns values without NaNs.
func numbers(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), math.IsNaN)
}

// median is the median of the values that are not NaN; NaN: there are none.
func median(values []float64) float64 {
	list := numbers(values)
	if len(list) == 0 {
		return math.NaN()
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// apart reports whether the runs of one side lie beyond those of the other. Mann and Whitney's test at
// 5 % limits the number of pairs in the other order. With too few runs for that level, none may be.
func (c *Comparison) apart(ch *Change, t tables) bool {
	a, b := ch.unshifted[0], ch.unshifted[1]
	if c.Shifted {
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
