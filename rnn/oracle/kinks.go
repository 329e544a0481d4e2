package oracle

import (
	"math"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// Kinks counts the units of a network at which ReLU's gradient is 0 or 1 by rounding alone: its
// input lies within rounding of 0, or of a clip. Both gradients are right there.
//
// A unit is counted once for each layer, step and distinct sequence.
type Kinks struct {
	Units int // looked at
	Near  int // whose input lies within rounding of 0
	Shown int // of these, whose side the answer shows by an output
	Other int // of these near, granted the gradient that the reference does not have
}

// mostNear is the largest share of units within rounding of 0 whose side no output shows. Above it none
// of these is granted the other gradient: the check would then say little.
const mostNear = 0.05

// TooMany reports whether more units lie within rounding of 0, on a side that the answer does not show,
// than mostNear and, in a small network, chance allow. Those whose side it shows may be many, since
// what shows it is compared, too.
func (k Kinks) TooMany() bool {
	most := mostNear * float64(k.Units)
	return float64(k.Near-k.Shown) > 1+most+3*math.Sqrt(most)
}

func (k *Kinks) add(of Kinks) {
	k.Units, k.Near, k.Shown, k.Other = k.Units+of.Units, k.Near+of.Near, k.Shown+of.Shown, k.Other+of.Other
}

// deviations is how far ReLU's input may be from 0 for either gradient to be right, in standard
// deviations of its rounding errors. See variances.
const deviations = 3

// FindKinks counts the units of d's problem that lie within rounding of 0. It finds none where neither the
// cell nor a fully connected layer or convolution has a kink, or the pass no gradient.
func FindKinks(d *rnn.Data) Kinks {
	if !rnn.Kinked(d.Problem) {
		return Kinks{}
	}
	r := newReference(d)
	r.forward()
	found := clippedKinks(r, nil)
	if kinked(d.Problem) {
		found.add(r.findKinks())
	}
	return found
}

// kinked reports whether two right answers to p may have different gradients of layers, and where is known.
func kinked(p rnn.Problem) bool {
	_, found := p.Cell.Kink()
	return p.Pass == rnn.Train && found
}

// ReferenceNear is Reference with the benefit of the doubt for kinks: where the input of ReLU lies
// within rounding of 0, a unit counts as on the answer's side.
//
// The side is that of the answer's state, where the answer shows it. Where gradients still differ,
// search.run looks for sides by which they agree. An answer need not show the states of inner
// layers, nor need its gradients follow from the states that it shows. Where too many units are near
// for a search among all, it looks among those whose side no state shows. Whatever side is taken, the
// gradients are the reference's own.
func ReferenceNear(d *rnn.Data, answer []Tensor) ([]Tensor, Kinks) {
	return near(newReference(d), answer)
}

// near is ReferenceNear for r, which has computed nothing yet.
func near(r *reference, answer []Tensor) ([]Tensor, Kinks) {
	if !rnn.Kinked(r.p) {
		return answerOf(r), Kinks{}
	}
	r.forward()
	found := clippedKinks(r, answer)
	above := r.above()
	if !kinked(r.p) {
		r.backwardFrom(above)
		return r.expected(), found
	}
	of := r.findKinks()
	many := of.TooMany()
	of.Shown = r.takeSides(answer, many)
	r.backwardFrom(above)
	if !of.TooMany() {
		(&search{reference: r, above: above, answer: answer}).run()
	}
	for l := range r.layers {
		y := &r.layers[l]
		for _, i := range y.near {
			if (y.side[i] > 0) != (r.sideValue(y, i) > 0) {
				of.Other++
			}
		}
	}
	found.add(of)
	return r.expected(), found
}

// kinks says where the gradients of a layer's units may be either of two. Values are per step,
// distinct sequence and unit.
type kinks struct {
	at    cell.Ref  // the value that side replaces in the backward pass
	near  []int     // units within rounding of a kink
	open  []int     // those of them whose side a search may change
	side  []float64 // values of at for the backward pass; nil: at itself
	reach []float64 // the kinked gate's gradient above the kink minus that below it

	rectifier bool // the cell is one
}

// reaches records the gradients of the states of units [from, to) of a row, if sides are asked for.
func (y *refLayer) reaches(row, sequence, h, from, to int, carry [][]float64, dout []float64) {
	if y.side == nil {
		return
	}
	if !y.rectifier {
		return // see jumps
	}
	for u := from; u < to; u++ {
		y.reach[row*h+u] = dout[row*h+u] + carry[0][sequence*h+u]
	}
}

// findKinks lists the units of each layer that lie within rounding of 0.
func (r *reference) findKinks() Kinks {
	k := Kinks{Units: int(rnn.StepsBeyond(r.p, -r.p.History)) * r.Distinct / r.p.Batch * r.p.Hidden * r.p.Reads()}
	below := convolvedErrors(r) // other input is exact
	pass := &bypass{p: r.p, ahead: aheadBy(r, squares)}
	var level [][]float64 // variances of the states of the present level's layers
	for l := range r.layers {
		y := &r.layers[l]
		var all, states []float64
		if r.p.Cell.Rectifier() {
			all, states = r.variances(y, below)
		} else {
			all, states = r.gateVariances(y, below)
		}
		if y.left != nil { // other layers read what has no errors
			states = nil
		}
		if level = append(level, states); len(level) == r.p.Ways() {
			below, level = pass.next(l/r.p.Ways(), joinColumns(level, r.p.Hidden)), nil
		}
		for i, v := range all {
			if !y.exists(i / r.p.Hidden) {
				continue
			}
			if toKink(r.p.Cell, r.input(y, i)) <= deviations*math.Sqrt(v) {
				y.near = append(y.near, i)
			}
		}
		y.open = y.near
		sidesAt(r, l, r)
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

// toKink is how far a sum is from the nearest kink.
func toKink(c *cell.Cell, sum float64) float64 {
	return min(math.Abs(sum), math.Abs(sum-c.Clip()))
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
//     rounding, or above a clip, the state is a constant and carries none.
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
		mulTransposed(out, inputErrors(r, y, width+h, below), squares(y.weightX), r.rows, h, width)
	} else {
		for i := range y.pre { // a one-hot input: the product is a weight
			x := y.batchNorm.product(y.pre, i)
			out[i] = each * x * x
		}
	}
	y.batchNorm.errors(r, out)
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
			if z, most := r.input(y, at+i), deviations*math.Sqrt(out[at+i]); z >= -most && z <= p.Cell.Clip()+most {
				states[at+i] = out[at+i]
			}
		}
	}
	return out, states
}

// inputErrors returns the variances of the rounding errors of the terms of y's input products, in sums of so
// many terms, each over the square of its weight. below has those of the inputs; nil: none.
func inputErrors(r *reference, y *refLayer, terms int, below []float64) []float64 {
	each, u := ofTerm(r.p.Precision, terms), r.p.Precision.Epsilon()
	out := make([]float64, len(y.in))
	for i, v := range y.in {
		if out[i] = each * v * v; below != nil {
			out[i] += below[i]
		}
	}
	if y.batchNorm != nil { // the error of a weight moves the mean, too
		for i, v := range centred(r, y.in, len(y.in)/r.rows) {
			out[i] += u * u * (v*v - y.in[i]*y.in[i])
		}
	}
	return out
}

// ofTerm is the variance of a term's rounding errors, relative to the term's square, in a sum of so many terms.
func ofTerm(p rnn.Precision, terms int) float64 {
	u, ε := p.Epsilon(), rnn.FP32.Epsilon()
	return 2*u*u + float64(terms)*ε*ε
}

// ofSums is the variance of storing the two products, the biases and their sum.
func ofSums(p rnn.Precision, x, r, bx, br float64) float64 {
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

// A cell may have its kink at the sum of a gate that reads the input alone, as mingru has at g. The
// side changes no state and nothing at other steps, so an answer shows it only by its gradients.

// gateVariances is variances for such a gate. Those of the states follow from those of all gates
// and of the states before, by the slopes of the cell's equations.
func (r *reference) gateVariances(y *refLayer, below []float64) (inputs, states []float64) {
	p, h, gates := r.p, r.p.Hidden, len(r.p.Cell.Gates)
	kink, _ := p.Cell.Kink()
	sums := make([]float64, r.rows*gates*h)
	if y.in == nil {
		each := ofTerm(p.Precision, 1)
		for i := range y.pre { // a one-hot input: the product is a weight
			x := y.batchNorm.product(y.pre, i)
			sums[i] = each * x * x
		}
	} else {
		width := len(y.in) / r.rows
		mulTransposed(sums, inputErrors(r, y, width, below), squares(y.weightX), r.rows, gates*h, width)
	}
	y.batchNorm.errors(r, sums)
	for i := range sums {
		sums[i] += ofSums(p.Precision, y.pre[i], 0, float64(y.biasX[i%(gates*h)]), 0)
	}
	inputs = make([]float64, r.rows*h)
	for i := range inputs {
		inputs[i] = sums[(i/h*gates+kink.Gate)*h+i%h]
	}
	return inputs, r.stateVariances(y, sums)
}

// stateVariances returns the variances of the rounding errors of state 0, given those of all gates.
func (r *reference) stateVariances(y *refLayer, sums []float64) []float64 {
	c, h, b, gates := r.p.Cell, r.p.Hidden, r.Distinct, len(r.p.Cell.Gates)
	all := make([][]float64, len(c.States))
	for s := range all {
		all[s] = make([]float64, (r.rows+b)*h)
	}
	parallel.For(b*h, func(k int) {
		j, u := k/h, k%h
		x, prev, peep := make([]float64, gates), make([]float64, len(c.States)), make([]float64, len(c.Peeps))
		for i := range peep {
			peep[i] = float64(y.peep[i*h+u])
		}
		for k := range r.p.Frames() {
			row := y.step(k)*b + j
			if !y.exists(row) { // the states before the first step have no errors
				continue
			}
			for g := range x {
				x[g] = y.pre[(row*gates+g)*h+u] + float64(y.biasX[g*h+u])
			}
			for s := range prev {
				if prev[s] = y.state[s][(row+y.before)*h+u]; y.restarts(row) {
					prev[s] = 0
				}
			}
			add := func(of *float64, variance float64) {
				for s, slope := range slopes(c, x, peep, prev, of) {
					all[s][(row+y.after)*h+u] += slope * slope * variance
				}
			}
			for g := range x {
				add(&x[g], sums[(row*gates+g)*h+u])
			}
			if y.restarts(row) { // nor do states of 0
				continue
			}
			for s := range prev {
				add(&prev[s], all[s][(row+y.before)*h+u])
			}
		}
	})
	return all[0][y.after*h:][:r.rows*h]
}

// slopes returns the derivatives of all states by one operand of c's equations.
func slopes(c *cell.Cell, x, peep, prev []float64, of *float64) []float64 {
	const step = 1e-4
	up, down, at := make([]float64, len(prev)), make([]float64, len(prev)), *of
	*of = at + step
	c.Equations(x, nil, peep, prev, up)
	*of = at - step
	c.Equations(x, nil, peep, prev, down)
	*of = at
	for s := range up {
		up[s] = (up[s] - down[s]) / (2 * step)
	}
	return up
}

// aboveKink and belowKink are values of a kinked sum on either side, so small that they change only the slope.
const (
	aboveKink = 0x1p-1000
	belowKink = 0
)

// jumps records by how much the kinked gate's gradient is larger above the kink than below it. It
// does so for units [from, to) of the present row that lie within rounding of the kink.
func (v *evaluator) jumps(from, to int) {
	y, h := v.y, v.p.Hidden
	if y.side == nil || y.rectifier {
		return
	}
	kink, _ := v.p.Cell.Kink()
	first, _ := slices.BinarySearch(y.near, v.row*h+from)
	for _, i := range y.near[first:] {
		if i >= v.row*h+to {
			break
		}
		v.unit = i % h
		y.reach[i] = gateGradient(v.p.Cell, kink, v.at, aboveKink) - gateGradient(v.p.Cell, kink, v.at, belowKink)
	}
}

// gateGradient is the gradient of the kinked gate if its sum were sum. It runs the backward program
// on copies of all values.
func gateGradient(c *cell.Cell, kink cell.Kink, at func(cell.Ref) *float64, sum float64) float64 {
	made := map[cell.Ref]*float64{kink.At: &sum}
	c.Backward.Eval(func(ref cell.Ref) *float64 {
		if made[ref] == nil {
			v := *at(ref)
			made[ref] = &v
		}
		return made[ref]
	})
	return *made[cell.Ref{Kind: cell.DX, Index: kink.Gate}]
}

// alongGate is along for such a gate: the changes of its sums with the layer's own parameters and,
// in the first layer, with the input. It leaves out changes in the layers below.
func (r *search) alongGate(e *residual) [][]float64 {
	all := make([][]float64, r.p.Reads())
	for l := range r.layers {
		y := &r.layers[l]
		var dx []float64
		if l < r.p.Ways() {
			dx = e.direction("dx", -1)
		}
		all[l] = r.alongProducts(y, e, l, dx)
		r.addParameters(all[l], y, e, l)
	}
	return all
}

// gateWeights returns the input weights of the kinked gate.
func (r *reference) gateWeights(y *refLayer, l int) []float32 {
	kink, _ := r.p.Cell.Kink()
	n := r.p.Hidden * r.p.FanIn(l/r.p.Ways())
	return y.weightX[kink.Gate*n : (kink.Gate+1)*n]
}

// gateMarks is marks for the changes that alongGate includes.
func (r *search) gateMarks(e *residual) [][]float64 {
	h := r.p.Hidden
	all := make([][]float64, r.p.Reads())
	for l := range r.layers {
		y := &r.layers[l]
		d := make([]float64, r.rows*h)
		weight := e.weight("dx", -1)
		if l < r.p.Ways() && weight > 0 {
			w, width := r.gateWeights(y, l), r.p.FanIn(0)
			for u := range h {
				sum := 0.0
				for _, v := range w[u*width : (u+1)*width] {
					sum += float64(v) * float64(v)
				}
				for row := range r.rows {
					d[row*h+u] += weight * sum
				}
			}
		}
		r.markProducts(d, y, e, l)
		for row := range r.rows {
			own := r.ownMark(y, e, l, row)
			for u := range h {
				d[row*h+u] += own
			}
		}
		all[l] = d
	}
	return all
}

// nearGate counts the unit, and reports whether the sum of its kinked gate lies within rounding of
// 0 and either side may count.
func (v *laneValues) nearGate(c *stepper, kink cell.Kink, l, row int) bool {
	y, unit := v.layer, v.lane.unit
	bias := float64(y.biasX[kink.Gate*v.h+unit])
	x := v.x[kink.Gate]
	sum, terms := x*x, 1 // a one-hot input: the product is a weight
	if !y.oneHot {
		terms = y.fan
		sum = dotSquares(y.weightX[(kink.Gate*v.h+unit)*y.width:], y.in[row*y.width:(row+1)*y.width])
	}
	found := &v.lane.kinks
	found.Units++
	if math.Abs(x+bias) > deviations*math.Sqrt(ofTerm(c.Precision, terms)*sum+ofSums(c.Precision, x, 0, bias, 0)) {
		return false
	}
	found.Near++
	return !c.strict
}

// takeSide puts the sum of the kinked gate on the side whose gradient is nearer to run, the run's.
func (v *laneValues) takeSide(k *cell.Cell, kink cell.Kink, run float64) {
	up, down := gateGradient(k, kink, v.at, aboveKink), gateGradient(k, kink, v.at, belowKink)
	side := &v.saved[kink.At.Index]
	above := math.Abs(run-up) < math.Abs(run-down)
	if above != (*side > 0) {
		v.lane.kinks.Other++
		if *side = belowKink; above {
			*side = aboveKink
		}
	}
}
