package rnn

import (
	"math"

	"rnnbench/rnn/cell"
)

// Kinks counts the units of a network at which ReLU's gradient is 0 or 1 by rounding alone: its
// input lies within rounding of 0. Both gradients are right there.
//
// A unit is counted once for each layer, step and distinct sequence.
type Kinks struct {
	Units int // looked at
	Near  int // whose input lies within rounding of 0
	Other int // of these, granted the gradient that the reference does not have
}

// mostNear is the largest share of units within rounding of 0. Above it no unit is granted the
// other gradient: the check would then say little.
const mostNear = 0.05

// TooMany reports whether more units lie within rounding of 0 than mostNear and, in a small
// network, chance allow.
func (k Kinks) TooMany() bool {
	most := mostNear * float64(k.Units)
	return float64(k.Near) > 1+most+3*math.Sqrt(most)
}

func (k *Kinks) add(of Kinks) {
	k.Units, k.Near, k.Other = k.Units+of.Units, k.Near+of.Near, k.Other+of.Other
}

// deviations is how far ReLU's input may be from 0 for either gradient to be right, in standard
// deviations of its rounding errors. See variances.
const deviations = 3

// FindKinks counts the units of d's problem that lie within rounding of 0. It finds none where the
// cell has no kink or the pass no gradient.
func FindKinks(d *Data) Kinks {
	if !d.Problem.kinked() {
		return Kinks{}
	}
	r := newReference(d)
	r.forward()
	return r.findKinks()
}

// kinked reports whether two right answers to p may have different gradients.
func (p Problem) kinked() bool {
	_, found := p.Cell.Kink()
	return p.Pass == Train && found
}

// ReferenceNear is Reference with the benefit of the doubt for kinks: where the input of ReLU lies
// within rounding of 0, a unit counts as on the answer's side.
//
// The side is that of the answer's state, where the answer shows it. Where gradients still differ,
// search.run looks for sides by which they agree. An answer need not show the states of inner
// layers, nor need its gradients follow from the states that it shows. Whatever side is taken, the
// gradients are the reference's own.
func ReferenceNear(d *Data, answer []Tensor) ([]Tensor, Kinks) {
	if !d.Problem.kinked() {
		return Reference(d), Kinks{}
	}
	r := newReference(d)
	r.forward()
	found := r.findKinks()
	above := r.above()
	if found.TooMany() {
		r.backwardFrom(above)
		return r.expected(), found
	}
	r.takeSides(answer)
	r.backwardFrom(above)
	(&search{reference: r, above: above, answer: answer}).run()
	for l := range r.layers {
		y := &r.layers[l]
		for _, i := range y.near {
			if (y.side[i] > 0) != (r.sideValue(y, i) > 0) {
				found.Other++
			}
		}
	}
	return r.expected(), found
}

// kinks says where the gradients of a layer's units may be either of two. Values are per step,
// distinct sequence and unit.
type kinks struct {
	at    cell.Ref  // the value that side replaces in the backward pass
	near  []int     // units within rounding of 0
	side  []float64 // values of at for the backward pass; nil: at itself
	reach []float64 // the kinked gate's gradient above the kink minus that below it
}

// reaches records the gradients of the states of units [from, to) of a row, if sides are asked for.
func (y *refLayer) reaches(row, sequence, h, from, to int, carry [][]float64, dout []float64) {
	if y.side == nil {
		return
	}
	if y.at.Kind != cell.Next {
		return // see jumps
	}
	for u := from; u < to; u++ {
		y.reach[row*h+u] = dout[row*h+u] + carry[0][sequence*h+u]
	}
}

// findKinks lists the units of each layer that lie within rounding of 0.
func (r *reference) findKinks() Kinks {
	k := Kinks{Units: int(StepsBeyond(r.p, -r.p.History)) * r.Distinct / r.p.Batch * r.p.Hidden * r.p.Reads()}
	var below []float64
	var level [][]float64 // variances of the states of the present level's layers
	for l := range r.layers {
		y := &r.layers[l]
		var all, states []float64
		if r.p.Cell.Rectifier() {
			all, states = r.variances(y, below)
		} else {
			all, states = r.gateVariances(y, below)
		}
		if level = append(level, states); len(level) == r.p.Ways() {
			below, level = beside(level, r.p.Hidden), nil
		}
		for i, v := range all {
			if !y.exists(i / r.p.Hidden) {
				continue
			}
			if math.Abs(r.input(y, i)) <= deviations*math.Sqrt(v) {
				y.near = append(y.near, i)
			}
		}
		kink, _ := r.p.Cell.Kink()
		y.at, y.side = kink.At, make([]float64, len(all))
		for i := range y.side {
			y.side[i] = r.sideValue(y, i)
		}
		y.reach = make([]float64, len(y.side))
		k.Near += len(y.near)
	}
	return k
}

// input is the input of ReLU of unit i of the layer.
func (r *reference) input(y *refLayer, i int) float64 {
	h, gates, recurrent := r.p.Hidden, len(r.p.Cell.Gates), r.p.Cell.Recurrent
	kink, _ := r.p.Cell.Kink()
	row, u := i/h, i%h
	z := y.pre[(row*gates+kink.Gate)*h+u] + float64(y.biasX[kink.Gate*h+u])
	if kink.Gate < recurrent {
		z += y.rec[(row*recurrent+kink.Gate)*h+u] + float64(y.biasR[kink.Gate*h+u])
	}
	return z
}

// sideValue is the value whose sign says on which side of the kink the reference has a unit.
func (r *reference) sideValue(y *refLayer, i int) float64 {
	if r.p.Cell.Rectifier() {
		return y.state[0][y.after*r.p.Hidden+i]
	}
	return r.input(y, i)
}

// variances returns the variances of the rounding errors of ReLU's inputs in a layer, and of its
// states. below holds those of the layer's input; nil: that is exact.
//
// An input of ReLU is z = Σ w·v + b, over the inputs and states v of a unit. Let u be the
// unit roundoff of the operands of products and ε that of single precision.
//
//   - Each operand may be stored with an error of up to u of itself: u²·w²·v² for the
//     weight, and as much for v, for each of the K terms.
//   - The sum is formed in single precision. Each addition errs by up to ε of the partial sum,
//     whose square is at most Σ w²·v² where terms are independent: K·ε²·Σ w²·v² in all.
//   - The product of the inputs, that of the states, the biases and z itself may be stored,
//     each with an error of up to u of itself.
//   - A state carries the error that its own z had: Σ w²·variance(v). Where z is below 0 by more than
//     rounding, the state is 0 and carries none.
//
// Errors add like a random walk, so their squares do. Each term takes the largest rounding
// error as its standard deviation, which is √3 times the true one at least. So three of these
// deviations are more than five true ones. One unit in a million is further off.
func (r *reference) variances(y *refLayer, below []float64) (inputs, states []float64) {
	p, b, h := r.p, r.Distinct, r.p.Hidden
	width := 1
	if y.in != nil {
		width = len(y.in) / r.rows
	}
	each := ofTerm(p.Precision, width+h)
	of := func(values, variance []float64) []float64 {
		out := make([]float64, len(values))
		for i, v := range values {
			if out[i] = each * v * v; variance != nil {
				out[i] += variance[i]
			}
		}
		return out
	}
	out, states := make([]float64, r.rows*h), make([]float64, r.rows*h)
	if y.in != nil {
		mulTransposed(out, of(y.in, below), squares(y.weightX), r.rows, h, width)
	} else {
		for i, x := range y.pre { // a one-hot input: the product is a weight
			out[i] = each * x * x
		}
	}
	weights, sums := squares(y.weightR), make([]float64, b*h)
	var before []float64
	for k := range p.Frames() {
		at := y.step(k) * b * h
		mulTransposed(sums, of(y.prior(0, at, at+b*h, h), y.begun(before, at/h, h)), weights, b, h, h)
		y.carryOver(states, before, at/(b*h), h)
		before = states[at : at+b*h]
		for i := range sums {
			k := i % h
			out[at+i] += sums[i] + ofSums(p.Precision, y.pre[at+i], y.rec[at+i], float64(y.biasX[k]), float64(y.biasR[k]))
			if r.input(y, at+i) >= -deviations*math.Sqrt(out[at+i]) {
				states[at+i] = out[at+i]
			}
		}
	}
	return out, states
}

// ofTerm is the variance of a term's rounding errors, relative to the term's square, in a sum of so many terms.
func ofTerm(p Precision, terms int) float64 {
	u, ε := p.Epsilon(), FP32.Epsilon()
	return 2*u*u + float64(terms)*ε*ε
}

// ofSums is the variance of storing the two products, the biases and their sum.
func ofSums(p Precision, x, r, bx, br float64) float64 {
	u, z := p.Epsilon(), x+r+bx+br
	return u * u * (x*x + r*r + bx*bx + br*br + z*z)
}

func squares(w []float32) []float32 {
	out := make([]float32, len(w))
	for i, v := range w {
		out[i] = v * v
	}
	return out
}

// takeSides puts units within rounding of 0 on the side of the answer's states, where it shows them.
func (r *reference) takeSides(answer []Tensor) {
	if !r.p.Cell.Rectifier() {
		return // no state shows the side
	}
	lengths := SequenceLengths(r.p)
	for l := range r.layers {
		name := r.p.Named(r.p.Cell.States[0], l)
		for _, t := range answer {
			if t.Name != name {
				continue
			}
			steps := r.p.Frames() - t.First - t.Later
			batch := t.Rows / steps
			for _, i := range r.layers[l].near {
				row, unit := i/r.p.Hidden, i%r.p.Hidden
				step := row/r.Distinct - t.First
				if lengths != nil && t.First > 0 { // the only step is the sequence's last
					step = row/r.Distinct - lengths[row%r.Distinct] + 1
				}
				if step >= 0 && step < steps {
					r.layers[l].setSide(i, t.Values[(step*batch+row%r.Distinct)*r.p.Hidden+unit] > 0)
				}
			}
		}
	}
}

// setSide sets whether unit i of a layer lets its gradient pass.
func (y *refLayer) setSide(i int, yes bool) {
	const above = 0x1p-1000 // only its sign is ever used
	switch {
	case !yes:
		y.side[i] = 0
	case y.side[i] <= 0:
		y.side[i] = above
	}
}
