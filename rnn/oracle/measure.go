package oracle

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/rnn"
)

// An expectation says what a part of a right answer is like, or a value that a stepwise check reads.
type expectation struct {
	size  float64 // the largest value, or so
	error float64 // the largest error of an honest evaluation, relative to size
	sides float64 // the same where units are on other sides of kinks than in the reference
	mean  float64 // what the root mean square of many errors may be, relative to size; 0: not known
	jumps bool    // it is a gradient that may jump: see jumps.go
}

// How many times the error of one honest evaluation another may have, in its largest error, and in the
// root mean square of the errors of states. Many values leave less to chance than the largest.
const (
	margin       = 6
	marginOfMean = 2.5
	// marginOfIntegers takes the place of margin in int8, where rounding to integers is nearly all of the
	// error, and techniques choose the same integers or those of a like grid. Few units leave more to
	// chance: it is larger by 1/units, so twice as large for one unit.
	marginOfIntegers = 2.5
)

// tolerance is the error, relative to the largest value of its tensor, that an honest technique may
// have.
func (e expectation) tolerance() float64 { return margin * e.error }

// measureFLOPs is how much a measure may compute, in operations of the reference, where a few
// sequences and steps do not take more.
var measureFLOPs = 1e8

// expectations measures the errors of an honest evaluation of d: the reference's own code, which
// rounds as a technique does, is compared with the reference. Of large problems only some
// sequences and the first steps are evaluated. unit is that of Plan.UnitError.
func expectations(d *rnn.Data, unit float64) map[string]expectation {
	return rnn.Once(d, measured(unit), func(d *rnn.Data) map[string]expectation {
		all := measure(d, unit)
		if jumps(d.Problem) {
			widenJumps(all, measure(in16Bits(d), unit))
		}
		return all
	})
}

// measured is the key under which data keep their expectations, by the unit error of functions.
type measured float64

// measureCost is roughly what evaluating p with so many sequences costs.
func measureCost(p rnn.Problem, distinct int) float64 {
	p.Batch, p.Lengths = distinct, ""
	points := float64(p.Reads()) * float64(p.Frames()) * float64(p.Hidden) * float64(distinct)
	aligned := alignmentFLOPs * float64(alignments(p)) * float64(p.Steps) * float64(distinct)
	return 3 * (float64(p.FLOPs()) + cellFLOPs*points + aligned)
}

// measuredSteps is the least number of steps that a measure evaluates. Cells forget errors within a few.
const measuredSteps = 4

// shorten returns the part of p, of so many distinct sequences, that a measure evaluates: p itself if
// it is small.
func shorten(p rnn.Problem, distinct int) (q rnn.Problem, sequences int) {
	if measureCost(p, distinct) <= measureFLOPs {
		return p, distinct
	}
	one := p
	one.Steps, one.History = min(p.Steps, 1), min(p.History, 1)
	affords := max(1, int(measureFLOPs/measureCost(one, 1))) // steps of a sequence
	const some = 32                                          // steps, if more sequences would leave fewer
	sequences = min(distinct, max(1, affords/some))
	steps := min(p.Steps, max(measuredSteps, affords/sequences))
	q = p
	q.Batch, q.Lengths, q.Weighted, q.Calls = sequences, "", false, 0
	q.Steps, q.History = steps, min(p.History, steps)
	return q, sequences
}

// MeasureBytes estimates the memory that a measure of p takes, besides what parameters take.
func MeasureBytes(p rnn.Problem, distinct int) int64 {
	q, sequences := shorten(p, rnn.Distinct(p, distinct))
	return 2 * ReferenceBytes(q, sequences) // exact and honest
}

// shortened returns the part of d that a measure evaluates: all of a small problem.
func shortened(d *rnn.Data) *rnn.Data {
	p := d.Problem
	q, sequences := shorten(p, d.Distinct)
	if q == p {
		return d
	}
	out := rnn.DataFor(q, sequences)
	for _, t := range d.Tensors {
		switch {
		case t.Name == "loss_weight":
			continue
		case t.PerSequence:
			t.Values = (rnn.Part{From: d.Distinct - sequences, N: sequences}).Rows(t.Values, t.Cols, d.Distinct) // the longest come last
			if had := t.Rows / d.Distinct; had > 1 {
				to := q.Frames()
				if had == p.Steps && p.History > 0 || t.Name == "target" || t.Name == "dy" || t.Name == "reset" {
					to = q.Steps
				}
				t.Values = t.Values[:to*sequences*t.Cols]
			}
			t.Rows = len(t.Values) / t.Cols
			if t.Name == "target" && p.Transcript > 0 {
				t.Values = rnn.FitTranscripts(t.Values, t.Cols, q.Steps)
			} else if t.Name == "target" {
				for i, class := range t.Values {
					t.Values[i] = max(class, 0) // all of them count
				}
			}
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// A tally is what a measure finds of one part.
type tally struct {
	n                      int
	most, worst            float64 // largest value and error
	sides                  float64 // largest error on the evaluation's own sides of kinks
	early, late            float64 // squared errors of the first half of the values, and of the second
	gradient, state, total bool    // what the values are: total is a sum over all steps
}

func (t *tally) add(exact, honest []float64) {
	for i, v := range exact {
		e := math.Abs(honest[i] - v)
		if t.most, t.worst = max(t.most, math.Abs(v)), max(t.worst, e); 2*i < len(exact) {
			t.early += e * e
		} else {
			t.late += e * e
		}
	}
	t.n += len(exact)
}

// largestOfMean is the least that the largest of many errors is, over their root mean square.
const largestOfMean = 2.5

// relative is the largest error over the largest value.
func (t *tally) relative() float64 {
	return Deviation{MaxAbs: max(t.worst, largestOfMean*t.mean())}.relative(t.most)
}

// mean is the root mean square of the errors.
func (t *tally) mean() float64 { return math.Sqrt((t.early + t.late) / float64(max(1, t.n))) }

// sumErrors is the error of a sum in single precision, over ε times the root of its terms. Records
// of GPUs have up to 6 with copies.
const sumErrors = 3

// cutOff is an allowance for products in single precision on GPUs, whose recorded errors were up to 3
// times those of one honest evaluation. Tensor cores cut off bits of sums, which may be the cause.
const cutOff = 2

// enough is the number of values whose largest error is no matter of chance.
const enough = 1 << 10

// measure computes the expectations of d.
func measure(d *rnn.Data, unit float64) map[string]expectation {
	part := shortened(d)
	cost := measureCost(part.Problem, part.Distinct)
	tallies := map[string]*tally{}
	rows, had := float64(d.Problem.Frames()*d.Problem.Batch), float64(part.Problem.Frames()*part.Distinct)
	for draw := range uint64(16) {
		if draw > 0 && (float64(draw+1)*cost > measureFLOPs || !slices.ContainsFunc(values(tallies), func(t *tally) bool { return t.n < enough })) {
			break
		}
		one := part
		if draw > 0 { // other values are rounded otherwise
			one = part.Off(0x1p-5, draw)
		}
		evaluate(one, unit, rows/had, tallies)
	}
	out := map[string]expectation{}
	usual, growth := usualErrors(tallies), growing(part, tallies)
	for name, t := range tallies {
		e := expectation{size: t.most, error: t.relative(), sides: Deviation{MaxAbs: t.sides}.relative(t.most), jumps: t.gradient && jumps(d.Problem)}
		if t.n < 1<<6 { // by chance it may be small
			e.error = max(e.error, usual[t.gradient])
		}
		e.error = max(e.error, 2*rnn.FP32.Epsilon()) * growth
		if t.total && rows > had { // sums of more terms; those of copies err in the same direction
			e.error += sumErrors * rnn.FP32.Epsilon() * (math.Sqrt(rows) - math.Sqrt(had))
		}
		if t.gradient && d.Problem.History > part.Problem.History { // it passes more steps
			e.error *= float64(d.Problem.History) / float64(part.Problem.History)
		}
		if t.gradient && d.Problem.Output > 0 && !t.total {
			e.size *= lossWeight(d) / lossWeight(part)
		}
		if d.Problem.Transcript > 0 {
			longer(&e, t.gradient, name, part.Problem.Steps, d.Problem.Steps)
		}
		if d.Problem.Precision == rnn.FP32 {
			e.error *= cutOff
		}
		if e.jumps && t.worst > 0 {
			e.mean = marginOfJumps * e.error * t.mean() / t.worst
		}
		if t.n >= enough && t.mean() > 0 && !t.gradient { // gradients jump at kinks, and PyTorch and cuDNN lose more of them
			e.mean = e.error * marginOfMean * t.mean() / max(t.worst, largestOfMean*t.mean())
		}
		if d.Problem.Precision == rnn.INT8 {
			e.error *= marginOfIntegers * (1 + 1/float64(d.Problem.Hidden)) / margin
		}
		out[name] = e
	}
	return out
}

func values(m map[string]*tally) (all []*tally) {
	for _, t := range m {
		all = append(all, t)
	}
	return all
}

// usualErrors returns the median of the errors of gradients and of other tensors.
func usualErrors(tallies map[string]*tally) map[bool]float64 {
	all := map[bool][]float64{}
	for _, t := range tallies {
		all[t.gradient] = append(all[t.gradient], t.relative())
	}
	out := map[bool]float64{}
	for gradient, errors := range all {
		slices.Sort(errors)
		out[gradient] = errors[len(errors)/2]
	}
	return out
}

// growing is by how much more errors grow over the steps that a measure left out. Where they are
// larger in the second half of the steps that it evaluated, they still grow. They add up like a
// random walk then, at most for some more steps: cells forget.
func growing(part *rnn.Data, tallies map[string]*tally) float64 {
	const longest = 1 << 8
	more := 1.0
	for _, t := range tallies {
		if t.state && t.late > 1.7*t.early {
			more = math.Sqrt(max(1, longest/float64(part.Problem.Frames())))
		}
	}
	return more
}

// lossWeight is the largest weight of a row's loss.
func lossWeight(d *rnn.Data) (most float64) {
	for row := range d.Problem.Steps * d.Distinct {
		_, w := d.Class(row)
		most = max(most, w)
	}
	return most
}

// manySides is the number of units on other sides of kinks than in the reference from which these
// are a part of the error. Where there are fewer, CompareAgain finds them.
const manySides = 8

// evaluate adds the errors of one honest evaluation of d to tallies. The run has so many times the
// rows of d.
func evaluate(d *rnn.Data, unit, times float64, tallies map[string]*tally) {
	exact, honest := newReference(d), newReference(narrowed(d))
	honest.lossy = &rounding{precision: d.Problem.Precision, unit: unit}
	exact.forward()
	honest.forward()
	tallied(tallies, "prob", false, exact.prob, honest.prob)
	train := d.Problem.Pass == rnn.Train
	var above []float64
	flips := 0
	if train {
		flips = honest.sidesOf(exact)
		exact.backward()
		above = honest.above()
		honest.backwardFrom(above)
	}
	other := honest.answer()
	for i, t := range exact.answer() {
		tallied(tallies, t.Name, t.Gradient, t.Values, other[i].Values)
		one := tallies[t.Name]
		one.total = t.Gradient && !t.PerSequence
		one.state = !t.Gradient && strings.Contains(t.Name, "_l")
	}
	if !train {
		return
	}
	inner(tallies, exact, honest)
	if float64(flips)*times < manySides {
		return
	}
	for l := range honest.layers {
		honest.layers[l].side = nil
	}
	honest.backwardFrom(above)
	other = honest.answer()
	for i, t := range exact.answer() {
		for k, v := range t.Values {
			one := tallies[t.Name]
			one.sides = max(one.sides, math.Abs(other[i].Values[k]-v))
		}
	}
}

// tallied adds values, exact and of an honest evaluation, to the tally of that name.
func tallied(tallies map[string]*tally, name string, gradient bool, exact, rounded []float64) {
	t := tallies[name]
	if t == nil {
		t = &tally{gradient: gradient}
		tallies[name] = t
	}
	t.add(exact, rounded)
}

// inner adds the gradients that answers do not have, by the names of stepwise checks.
func inner(tallies map[string]*tally, r, honest *reference) {
	add := func(name string, exact, rounded []float64) { tallied(tallies, name, true, exact, rounded) }
	if r.p.Output > 0 {
		add("gradient of logits", r.prob, honest.prob)
		add("dy", r.dTop, honest.dTop)
	}
	for i := range r.layers {
		y, z, level := &r.layers[i], &honest.layers[i], i/r.p.Ways()
		add(r.p.Named("d(x·W)", i), y.dPre, z.dPre)
		add(r.p.Named("d(h·R)", i), y.dRec, z.dRec)
		if j := y.projection; j != nil {
			add("gradient of "+r.p.Named(r.p.Cell.States[0], i), j.d, z.projection.d)
		}
		if y.dIn == nil {
			continue
		}
		add(r.p.Named("d(input)", i), y.dIn, z.dIn)
		if level > 0 {
			add(fmt.Sprintf("gradient of h_l%d", level-1), y.dIn, z.dIn)
		}
	}
}

// sidesOf takes the sides of all kinks from another evaluation. It returns how many were others.
func (r *reference) sidesOf(other *reference) (flips int) {
	others := clippedLayers(other)
	for i, y := range clippedLayers(r) {
		y.sidesOf(others[i]) // which answers show, so no tolerance need be wider
	}
	if _, found := r.p.Cell.Kink(); !found {
		return 0
	}
	for l := range r.layers {
		sidesAt(r, l, other)
		y := &r.layers[l]
		for i, side := range y.side {
			if (side > 0) != (r.sideValue(y, i) > 0) {
				flips++
			}
		}
	}
	return flips
}

// expect is the expectation of a part of the answer whose measure is d; ok is false where there is none.
func expect(d *rnn.Data, name string, unit float64) (e expectation, ok bool) {
	if d == nil {
		return e, false
	}
	e, ok = expectations(d, unit)[name]
	return e, ok
}
