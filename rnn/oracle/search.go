package oracle

import (
	"cmp"
	"math"
	"slices"

	"rnnbench/rnn"
)

// searchRounds bounds the number of times that sides are changed. Each round costs about as much as
// Reference.
const searchRounds = 32

// A flip is a unit near the kink of ReLU that seems to be on the other side.
type flip struct {
	layer, unit int
	gain        float64 // how much nearer it brings the gradients to the answer's
}

// A search looks for the sides of units near the kink of ReLU by which the reference's gradients
// agree with an answer's.
type search struct {
	*reference
	above  []float64 // gradient of the last layer's output
	answer []Tensor
}

// run changes the side of units near the kink of ReLU until the gradients agree with the answer's.
// It gives up when no more units are found that bring them nearer. It only ever changes those
// units, so a wrong answer stays wrong.
//
// Let the residual be the answer's gradients less the reference's, each tensor in units of its
// largest value. A unit on the wrong side leaves its mark there: the gradient that reached it,
// times what that changes in all gradients. The product of mark and residual, over the
// mark's square, is then about 1, and else about 0. Units beyond 1/2 change sides. The products
// of all units come from one forward pass along the residual: see along. The squares
// come from another: see marks.
//
// The mark of one unit may look like that of another, so fewer units change sides where many
// at once bring the gradients no nearer.
func (r *search) run() {
	left := r.residual()
	var flips []flip
	caution, moves := 0, searchRounds
	for range searchRounds {
		if left.within() {
			break
		}
		if flips == nil {
			if r.p.Cell.Rectifier() {
				flips = r.flips(r.along(left), r.marks(left))
			} else {
				flips = r.flips(r.alongGate(left), r.gateMarks(left))
			}
		}
		some := r.choose(flips, caution)
		if len(some) == 0 {
			if next := r.move(left, &moves); next != nil {
				left, flips, caution = next, nil, 0
				continue
			}
			break
		}
		r.flip(some)
		r.backwardFrom(r.above)
		if next := r.residual(); next.square() < left.square() {
			left, flips, caution = next, nil, max(0, min(caution, single)-1)
			continue
		}
		r.flip(some) // back again
		caution++
	}
	r.backwardFrom(r.above)
}

// move has a unit change sides at another step than it does now, where that brings the gradients
// nearer, and returns what is left. The marks of a unit at several steps are alike, so the search may
// have taken the wrong one, though no single change betters it. nil: no move is better. Each try takes
// one of tries.
func (r *search) move(left *residual, tries *int) (best *residual) {
	square := left.square()
	var found []flip
	for l := range r.layers {
		y := &r.layers[l]
		changed := func(i int) bool { return (y.side[i] > 0) != (r.sideValue(y, i) > 0) }
		for _, from := range y.open {
			for _, to := range y.open {
				if from%r.p.Hidden != to%r.p.Hidden || !changed(from) || changed(to) || *tries == 0 {
					continue
				}
				*tries--
				pair := []flip{{layer: l, unit: from}, {layer: l, unit: to}}
				r.flip(pair)
				r.backwardFrom(r.above)
				if next := r.residual(); next.square() < square {
					best, square, found = next, next.square(), pair
				}
				r.flip(pair) // back again
			}
		}
	}
	r.flip(found)
	return best
}

// single is the caution from which one unit at a time changes sides: each of the singles surest in
// turn.
const single, singles = 3, 8

// choose returns the flips to try: fewer with more caution.
func (r *search) choose(flips []flip, caution int) []flip {
	switch {
	case caution == 0:
		return flips
	case caution == 1:
		return r.apart(flips)
	case caution < single:
		some := r.apart(flips)
		return some[:(len(some)+7)/8]
	}
	if k := caution - single; k < min(singles, len(flips)) {
		return flips[k : k+1]
	}
	return nil
}

// apart returns flips whose marks hardly overlap: in each sequence, the surest within a few steps.
func (r *search) apart(flips []flip) (list []flip) {
	const steps = 4
	taken := map[int]bool{} // rows
	for _, f := range flips {
		row := f.unit / r.p.Hidden
		if taken[row] {
			continue
		}
		for t := -steps; t <= steps; t++ {
			taken[row+t*r.Distinct] = true
		}
		list = append(list, f)
	}
	return list
}

// flips returns the units near the kink that seem to be on the wrong side, the surest first.
func (r *search) flips(along, marks [][]float64) (list []flip) {
	for l := range r.layers {
		y := &r.layers[l]
		for _, i := range y.open {
			d := y.reach[i]
			product, square := d*along[l][i], d*d*marks[l][i]
			if y.side[i] > 0 {
				product = -product
			}
			if product > square/2 {
				list = append(list, flip{l, i, 2*product - square})
			}
		}
	}
	slices.SortFunc(list, func(a, b flip) int { return cmp.Compare(b.gain, a.gain) })
	return list
}

func (r *search) flip(list []flip) {
	for _, f := range list {
		y := &r.layers[f.layer]
		y.setSide(f.unit, y.side[f.unit] <= 0)
	}
}

// A residual is the part of an answer's gradients that the reference does not explain.
type residual struct {
	parts   map[string][]float64 // by tensor, of distinct sequences, over its scale
	scale   map[string]float64   // of each tensor: its largest value
	limits  map[string]float64   // its tolerance
	problem rnn.Problem
}

// residual is the residual with the sides as they are now.
func (r *search) residual() *residual {
	out := &residual{parts: map[string][]float64{}, scale: map[string]float64{}, limits: map[string]float64{}, problem: r.p}
	for _, want := range r.reference.answer() {
		i := slices.IndexFunc(r.answer, func(t Tensor) bool { return t.Name == want.Name })
		if !want.Gradient || i < 0 {
			continue
		}
		want.data = r.Data
		out.limits[want.Name] = want.tolerance(r.p, r.answer[i].UnitError)
		scale := 0.0
		for _, v := range want.Values {
			scale = max(scale, math.Abs(v))
		}
		if scale = max(scale, vanishing); scale == vanishing {
			scale = 1 // as good as zero
		}
		have := r.answer[i].Values
		part := make([]float64, len(want.Values))
		for k := range part {
			at := k
			if want.PerSequence { // the answer's rows are steps × batch
				row := k / want.Cols
				at = (row/r.Distinct*(r.answer[i].Rows*r.Distinct/want.Rows)+row%r.Distinct)*want.Cols + k%want.Cols
			}
			part[k] = (have[at] - want.Values[k]) / scale
		}
		out.parts[want.Name], out.scale[want.Name] = part, scale
	}
	return out
}

// within reports whether the gradients agree within the tolerance.
func (e *residual) within() bool {
	for name, part := range e.parts {
		for _, v := range part {
			if !(math.Abs(v) <= e.limits[name]) {
				return false
			}
		}
	}
	return true
}

func (e *residual) square() (sum float64) {
	for _, part := range e.parts {
		for _, v := range part {
			sum += v * v
		}
	}
	return sum
}

// direction is the residual of a tensor, divided by its scale again: its product with a change of
// that tensor is then in units of the scale. It is nil where there is no such tensor.
func (e *residual) direction(name string, layer int) []float64 {
	name = e.layerName(name, layer)
	part := e.parts[name]
	if part == nil {
		return nil
	}
	out := make([]float64, len(part))
	for i, v := range part {
		out[i] = v / e.scale[name]
	}
	return out
}

// weight is the factor for the square of a tensor's change: 1 over its scale squared.
func (e *residual) weight(name string, layer int) float64 {
	s := e.scale[e.layerName(name, layer)]
	if s == 0 {
		return 0
	}
	return 1 / (s * s)
}

func (e *residual) layerName(name string, layer int) string {
	if layer < 0 {
		return name
	}
	return e.problem.Named(name, layer)
}

// along is how the inputs of ReLU change, in each layer, if inputs and parameters move along the
// residual. The product of the residual with all gradients is the loss's change by that move. A
// unit's part in it is the gradient that reaches it, times the change of its input.
func (r *search) along(e *residual) [][]float64 {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	all := make([][]float64, p.Reads())
	below := e.direction("dx", -1)
	pass := &bypass{p: p, from: below, ahead: r.alongAhead(e)}
	var level [][]float64 // of the present level's layers
	for l := range r.layers {
		y := &r.layers[l]
		d := r.alongProducts(y, e, l, below)
		r.addParameters(d, y, e, l)
		before, sums := e.direction("grad_"+p.Cell.States[0]+"0", l), make([]float64, b*h)
		own := make([]float64, len(d))
		for k := range p.Frames() {
			at := y.step(k) * b * h
			if before != nil {
				mulTransposed(sums, y.begun(before, at/h, h), y.weightR, b, h, h)
			}
			for i := range sums {
				d[at+i] += sums[i]
				if y.side[at+i] > 0 {
					own[at+i] = d[at+i]
				}
			}
			y.carryOver(own, before, at/(b*h), h)
			before = own[at : at+b*h]
		}
		if level = append(level, own); len(level) == p.Ways() {
			below, level = pass.next(l/p.Ways(), joinColumns(level, h)), nil
		}
		all[l] = d
	}
	return all
}

// alongProducts is how what ReLU reads of a layer's input products changes, with their weights and with the
// input, which changes by below; nil: not at all. A parameter's gradient is a sum over the batch, which
// repeats each distinct sequence.
func (r *search) alongProducts(y *refLayer, e *residual, l int, below []float64) []float64 {
	h, width := r.p.Hidden, r.p.FanIn(l/r.p.Ways())
	kink, _ := r.p.Cell.Kink()
	gate := kink.Gate * h // the first of its rows of weights
	d, product := make([]float64, r.rows*h), make([]float64, r.rows*h)
	w := e.direction("grad_weight_ih", l)
	switch {
	case w == nil:
	case y.in == nil:
		r.lookUp(y.way, func(row, at int) { copy(d[row*h:(row+1)*h], w[at+gate:at+gate+h]) })
	default:
		mulTransposed(d, y.in, narrow(w[gate*width:(gate+h)*width]), r.rows, h, width)
	}
	if below != nil {
		mulTransposed(product, below, r.gateWeights(y, l), r.rows, h, width)
	}
	for i, v := range product {
		d[i] = d[i]*r.Copies(i/h%r.Distinct) + v
	}
	y.batchNorm.along(r, d, e.direction("grad_gain_ih", l), kink.Gate)
	return d
}

// alongAhead is how outputs of row convolutions change, with what they read and with their weights.
func (r *search) alongAhead(e *residual) func(l int, out []float64) []float64 {
	exact := aheadBy(r.reference, asTheyAre)
	return func(l int, out []float64) []float64 {
		sum := exact(l, out)
		if w := e.direction("grad_weight_ahead", l); w != nil {
			for i, v := range convolve(r.outputs(l), w, r.Distinct*r.p.Out(), r.p.Out()) {
				sum[i] += v * r.Copies(i/r.p.Out()%r.Distinct)
			}
		}
		return sum
	}
}

// addParameters adds to d the change of ReLU's inputs with a layer's other parameters.
func (r *search) addParameters(d []float64, y *refLayer, e *residual, l int) {
	h, b := r.p.Hidden, r.Distinct
	kink, _ := r.p.Cell.Kink()
	gate := kink.Gate * h // the first of its rows of weights
	product := make([]float64, len(d))
	add := func() {
		for i, v := range product {
			d[i] += v * r.Copies(i/h%b)
		}
		clear(product)
	}
	if w := e.direction("grad_weight_hh", l); w != nil {
		mulTransposed(product, y.prior(0, 0, len(d), h), narrow(wholeR(r.p, w)), r.rows, h, h)
		add()
	}
	for _, name := range []string{"grad_bias_ih", "grad_bias_hh"} {
		if w := e.direction(name, l); w != nil {
			for i := range product {
				product[i] = w[gate+i%h]
			}
			add()
		}
	}
}

func narrow(v []float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(x)
	}
	return out
}

// marks returns, for each layer, the squares of what a gradient of 1 at the input of ReLU changes
// in all gradients. Changes in different places count as independent, as the weights between them
// are.
func (r *search) marks(e *residual) [][]float64 {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	all := make([][]float64, p.Reads())
	var below []float64
	pass := &bypass{p: p, ahead: aheadBy(r.reference, squares)}
	var level [][]float64
	for l := range r.layers {
		y, width := &r.layers[l], p.FanIn(l/p.Ways())
		d := make([]float64, r.rows*h)
		if y.in != nil {
			if below == nil {
				below = make([]float64, r.rows*width)
				for i := range below {
					below[i] = e.weight("dx", -1)
				}
				pass.from = below
			}
			mulTransposed(d, below, squares(y.weightX), r.rows, h, width)
		}
		r.markProducts(d, y, e, l)
		before, sums, weights := make([]float64, b*h), make([]float64, b*h), squares(y.weightR)
		for i := range before {
			before[i] = e.weight("grad_"+p.Cell.States[0]+"0", l)
		}
		passed := make([]float64, len(d))
		for k := range p.Frames() {
			at := y.step(k) * b
			mulTransposed(sums, y.begun(before, at, h), weights, b, h, h)
			for row := at; row < at+b; row++ {
				own := r.ownMark(y, e, l, row)
				for u := range h {
					i := row*h + u
					d[i] += sums[row%b*h+u] + own
					if y.side[i] > 0 {
						passed[i] = d[i]
					}
				}
			}
			y.carryOver(passed, before, at/b, h)
			before = passed[at*h : (at+b)*h]
		}
		if level = append(level, passed); len(level) == p.Ways() {
			below, level = pass.next(l/p.Ways(), joinColumns(level, h)), nil
		}
		all[l] = d
	}
	return all
}

// markProducts adds to d the marks in the gradients of the weights of a layer's input products. d has those
// in the gradient of the input.
func (r *search) markProducts(d []float64, y *refLayer, e *residual, l int) {
	h := r.p.Hidden
	kink, _ := r.p.Cell.Kink()
	inputs, width := y.in, len(y.in)/r.rows
	if y.batchNorm != nil { // the mean of the rows has no part in what is normalised
		inputs = centred(r.reference, y.in, width)
	}
	for row := range r.rows {
		n := r.Copies(row % r.Distinct)
		in := 1.0 // a one-hot input
		if inputs != nil {
			in = norm(inputs[row*width : (row+1)*width])
		}
		for u := range h {
			d[row*h+u] += n * n * in * e.weight("grad_weight_ih", l)
		}
	}
	y.batchNorm.mark(r, d, e.weight("grad_gain_ih", l), kink.Gate)
}

// ownMark is the part of a row's marks in the gradients of the layer's other parameters.
func (r *search) ownMark(y *refLayer, e *residual, l, row int) float64 {
	h, n := r.p.Hidden, r.Copies(row%r.Distinct)
	return n * n * (norm(y.prior(0, row*h, (row+1)*h, h))/float64(max(1, r.p.Heads))*e.weight("grad_weight_hh", l) +
		e.weight("grad_bias_ih", l) + e.weight("grad_bias_hh", l))
}

// norm is the sum of the squares.
func norm(v []float64) (sum float64) {
	for _, x := range v {
		sum += x * x
	}
	return sum
}
