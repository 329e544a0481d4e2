package rnn

import (
	"cmp"
	"math"
	"slices"
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
	caution := 0
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
		for _, i := range y.near {
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
	problem Problem
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
