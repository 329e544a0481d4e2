package oracle

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// A Deviation says how far an answer is from the reference, in the tensor that uses most of its
// tolerance.
type Deviation struct {
	Tensor    string
	MaxAbs    float64 // largest absolute difference, or the root mean square of all
	Error     float64 // MaxAbs over the largest value of the reference's tensor, or over its Spread if that is more
	Tolerance float64 // what Error may be
	Row, Col  int     // of the largest difference
	Mean      bool    // MaxAbs is the root mean square
}

// vanishing is the smallest scale that differences are divided by.
const vanishing = 0x1p-100

// relative is MaxAbs over the scale of the tensor, or over vanishing if that is more. Gradients
// through hundreds of steps become smaller than single precision's exponents (2⁻¹²⁶) reach, and are
// then as good as zero.
func (d Deviation) relative(scale float64) float64 {
	switch {
	case d.MaxAbs == 0:
		return 0
	case scale == 0:
		return d.MaxAbs
	}
	return d.MaxAbs / max(scale, vanishing)
}

// OK reports whether the deviation is within its tolerance.
func (d Deviation) OK() bool { return d.Error <= d.Tolerance && !math.IsInf(d.Error, 0) }

func (d Deviation) String() string {
	if d.Mean {
		return fmt.Sprintf("%s is off by %.3g in the root mean square, or %.3g of the largest value; the tolerance is %.3g", d.Tensor, d.MaxAbs, d.Error, d.Tolerance)
	}
	return fmt.Sprintf("%s[%d,%d] is off by %.3g, or %.3g of the largest value; the tolerance is %.3g", d.Tensor, d.Row, d.Col, d.MaxAbs, d.Error, d.Tolerance)
}

// Compare compares an answer for problem p with the reference's answer, which has the rows of
// distinct sequences alone. Steps that a tensor leaves out are not compared.
func Compare(p rnn.Problem, got, want []Tensor) (Deviation, error) {
	if len(got) != len(want) {
		return Deviation{}, fmt.Errorf("rnn: an answer has %d tensors, not %d", len(got), len(want))
	}
	worst := Deviation{Tolerance: 1}
	for i, w := range want {
		d, err := deviation(p, got[i], got[i].Values, w)
		if err != nil {
			return Deviation{}, err
		}
		worst = worst.OrWorse(d)
	}
	return worst, nil
}

// CompareAgain compares an answer that Compare finds wrong, and gives it the benefit of the doubt.
// Units at a kink count as on the answer's side, and are counted: see ReferenceNear. A network that amplifies
// rounding is judged layer by layer: see follow. A tensor of few values may be small since its terms happen to
// cancel: it counts as no smaller than it usually is. What is usual takes several references to find out, so it is
// asked for last.
func CompareAgain(d *rnn.Data, got []Tensor) (Deviation, Kinks, error) {
	r := newReference(d)
	follow(r, got)
	want, found := near(r, got)
	dev, err := Compare(d.Problem, got, want)
	if err != nil || dev.OK() {
		return dev, found, err
	}
	spread(d, want, r.run)
	dev, err = Compare(d.Problem, got, want)
	return dev, found, err
}

// spread sets Spread in want's tensors of few values. It moves each input and parameter up or down
// by a part of itself, and divides the largest change by that part. Terms that cancel in the tensor
// do not cancel in its change, since each moves on its own. Spread is the median over several
// draws. The part is small: a unit that a draw moves over the kink of ReLU would make the change
// thousands of times as large. run is the answer that want follows, if it does.
func spread(d *rnn.Data, want, run []Tensor) {
	const (
		few   = 16 // the largest of more values is hardly small by chance
		draws = 9
		part  = 0x1p-18
	)
	if !slices.ContainsFunc(want, func(t Tensor) bool { return len(t.Values) <= few }) {
		return
	}
	moved := make([][draws]float64, len(want))
	for seed := range uint64(draws) {
		r := newReference(d.Off(part, seed))
		r.run = run
		for i, t := range answerOf(r) {
			if len(t.Values) > few {
				continue
			}
			for k, v := range t.Values {
				moved[i][seed] = max(moved[i][seed], math.Abs(v-want[i].Values[k])/part)
			}
		}
	}
	for i := range want {
		slices.Sort(moved[i][:])
		want[i].Spread = moved[i][draws/2]
	}
}

// OrWorse returns the one of d and e that uses more of its tolerance.
func (d Deviation) OrWorse(e Deviation) Deviation {
	if e.used() >= d.used() {
		return e
	}
	return d
}

// used is the part of its tolerance that d uses; infinite where that is not a number.
func (d Deviation) used() float64 {
	if u := d.Error / d.Tolerance; !math.IsNaN(u) {
		return u
	}
	return math.Inf(1)
}

// deviation compares values, which are g's, with w.
func deviation[F float32 | float64](p rnn.Problem, g Tensor, values []F, w Tensor) (Deviation, error) {
	rows, batch, distinct := w.Rows, 1, 1 // rows of the expected answer; sequences in it and in w
	first, later := g.First, g.Later      // steps of it before and after those of g
	if w.PerSequence {
		if first, later = first-w.First, later-w.Later; first < 0 || later < 0 {
			return Deviation{}, fmt.Errorf("rnn: the answer has steps of %s that are not expected", w.Name)
		}
		rows, batch = (first+later)*p.Batch+g.Rows, p.Batch
		if distinct = batch; w.Rows != rows && rows > 0 {
			distinct = w.Rows * batch / rows
		}
	}
	if g.Name != w.Name || g.Cols != w.Cols || (first+later)*batch+g.Rows != rows || rows/batch*distinct != w.Rows {
		return Deviation{}, fmt.Errorf("rnn: the answer is %s of %d×%d, not %s of %d×%d", g.Name, g.Rows, g.Cols, w.Name, w.Rows, w.Cols)
	}
	d := Deviation{Tensor: w.Name, Tolerance: w.tolerance(p, g.UnitError)}
	skip := first * batch
	found := make([]difference, g.Rows)
	var lengths []int
	if w.PerSequence && first > 0 {
		lengths = rnn.SequenceLengths(p)
	}
	parallel.For(g.Rows, func(row int) {
		t, b := (skip+row)/batch, (skip+row)%batch
		if lengths != nil {
			t = lengths[b] - 1
		}
		from := t*distinct + b%distinct
		found[row] = differ(values[row*w.Cols:(row+1)*w.Cols], w.Values[from*w.Cols:(from+1)*w.Cols])
	})
	var all difference
	for row, f := range found {
		f.at += row * w.Cols
		all.merge(f)
	}
	all.scale = max(all.scale, w.Spread)
	if w.size > 0 {
		all.scale = w.size
	}
	d.MaxAbs, d.Row, d.Col = all.most, skip+all.at/max(1, w.Cols), all.at%max(1, w.Cols)
	d.Error = d.relative(all.scale)
	e, _ := expect(w.data, w.Name, g.UnitError)
	return d.orMean(all, e), nil
}

// orMean is d, unless many errors, none of which is too large, are too large in the mean.
func (d Deviation) orMean(all difference, e expectation) Deviation {
	if all.n < enough || e.mean == 0 || !d.OK() {
		return d
	}
	mean := Deviation{Tensor: d.Tensor, MaxAbs: math.Sqrt(all.square / float64(all.n)), Tolerance: e.mean, Mean: true}
	mean.Error = mean.relative(all.scale)
	if mean.OK() {
		return d
	}
	return mean
}

// tolerance is what an answer's error may be, relative to the scale of w.
func (w Tensor) tolerance(p rnn.Problem, unit float64) float64 {
	if w.alone && !w.Gradient {
		p.Layers, p.OneHot = 1, false
	}
	most := Tolerance(p, w.Gradient, unit)
	if e, ok := expect(w.data, w.Name, unit); ok {
		e.error = max(e.error, e.sides)
		if e.jumps { // which the formula knows nothing of
			return e.tolerance()
		}
		if measured := e.tolerance(); measured < most { // it is no number where the measured values overflow
			return measured
		}
	}
	return most
}

// A difference is how far values are from others.
type difference struct {
	most   float64 // largest difference, absolute; infinite where a value is not finite
	at     int     // where that is
	scale  float64 // largest finite value that is expected
	square float64 // sum of all differences' squares
	n      int     // of the differences
}

func differ[F float32 | float64](have []F, want []float64) (d difference) {
	for i, w := range want {
		d.add(float64(have[i]), w, i)
	}
	return d
}

// add compares a value with what is expected. True values are finite. So a value that is not is
// infinitely far off, even where the same is expected: that was then computed from other such values.
func (d *difference) add(have, want float64, at int) {
	diff := math.Abs(have - want)
	switch {
	case finite(have) && finite(want):
		d.scale = max(d.scale, math.Abs(want))
	case finite(want):
		d.scale, diff = max(d.scale, math.Abs(want)), math.Inf(1)
	default:
		diff = math.Inf(1)
	}
	d.n, d.square = d.n+1, d.square+diff*diff
	if diff > d.most {
		d.most, d.at = diff, at
	}
}

func finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

func (d *difference) merge(e difference) {
	d.scale, d.n, d.square = max(d.scale, e.scale), d.n+e.n, d.square+e.square
	if e.most > d.most {
		d.most, d.at = e.most, e.at
	}
}

// Tolerance bounds the error, relative to the largest value of its tensor, that
// rounding may cause in an answer for p. What is compared with the reference has
// the tolerance of its measure, where that is less. Each product is a sum of K terms whose
// rounding errors add like a random walk, ε·√K; the T·L cells that a signal
// passes add theirs in the same way; gradients pass the network twice and end
// in sums over T·B terms. The factor 8 covers the activations' errors (a few
// units in the last place) and the walk's tail over millions of values. Where
// point-wise functions are stated to be less exact than that, the unit error of
// each cell is a step of the walk.
//
// Where operands of products are rounded to fewer bits, u each, a sum of any length is off by u
// relative to its size. NewData's weights have a spectral radius of about 0.6, so a cell forgets
// such an error within a few steps. It does not grow with T, but adds up over the two products of
// each layer. For gradients it adds up over four times as many: they pass the network twice, and
// are relative to sums in which more cancels.
func Tolerance(p rnn.Problem, gradient bool, unit float64) float64 {
	k := float64(p.Cell.Window*max(p.Input, p.Out())) + float64(p.HeadUnits())
	if p.OneHot && p.Layers == 1 {
		k = 1 + float64(p.HeadUnits())
	}
	cells := float64(p.Frames()) * float64(p.Layers)
	if p.Projection > 0 {
		k += float64(p.Hidden)
	}
	walk := k * cells
	rounded := 2 * float64(p.Layers)
	if p.Projection > 0 {
		rounded = 3 * float64(p.Layers)
	}
	if gradient {
		cells *= 4
		walk = 4*walk + float64(p.Frames())*float64(p.Batch) + float64(p.Output)
		rounded *= 4
	}
	tolerance := 8 * math.Hypot(rnn.FP32.Epsilon()*math.Sqrt(walk+1), unit*math.Sqrt(cells))
	if p.Precision != rnn.FP32 {
		tolerance += 8 * p.Precision.Epsilon() * math.Sqrt(rounded)
	}
	return tolerance
}
