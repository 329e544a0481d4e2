package rnn

import (
	"math"
	"slices"

	"rnnbench/rnn/cell"
)

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
		for i, x := range y.pre { // a one-hot input: the product is a weight
			sums[i] = each * x * x
		}
	} else {
		width := len(y.in) / r.rows
		each, of := ofTerm(p.Precision, width), make([]float64, len(y.in))
		for i, v := range y.in {
			if of[i] = each * v * v; below != nil {
				of[i] += below[i]
			}
		}
		mulTransposed(sums, of, squares(y.weightX), r.rows, gates*h, width)
	}
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
	parallel(b*h, func(k int) {
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
				if prev[s] = y.state[s][(row+y.before)*h+u]; y.anew(row) {
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
			if y.anew(row) { // nor do states of 0
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
	if y.side == nil || y.at.Kind == cell.Next {
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
		d := make([]float64, r.rows*r.p.Hidden)
		r.addParameters(d, y, e, l)
		if dx := e.direction("dx", -1); l < r.p.Ways() && dx != nil {
			product := make([]float64, len(d))
			mulTransposed(product, dx, r.gateWeights(y, l), r.rows, r.p.Hidden, r.p.FanIn(0))
			for i, v := range product {
				d[i] += v
			}
		}
		all[l] = d
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
		for row := range r.rows {
			own := r.ownMark(y, e, l, row)
			for u := range h {
				d[row*h+u] = own
			}
		}
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
