package rnn

import "math"

// near counts a unit. It reports whether its input of ReLU, at row, lies within rounding of 0 and
// the run has it on the other side. The step is computed from the states that the run left, so
// these carry no error but that of being stored.
func (v *laneValues) near(c *stepper, l, row int) bool {
	y, h, unit := v.layer, v.h, v.lane.unit
	bx, br := float64(y.biasX[unit]), float64(y.biasR[unit])
	z := v.x[0] + v.r[0] + bx + br
	terms := y.fan + h
	sum := v.x[0] * v.x[0] // a one-hot input: the product is a weight
	if y.oneHot {
		terms = 1 + h
	} else {
		sum = dotSquares(y.weightX[unit*y.width:], y.in[row*y.width:(row+1)*y.width])
	}
	sum += dotSquares(y.weightR[unit*h:], c.before(y, 0, row))
	variance := ofTerm(c.Precision, terms)*sum + ofSums(c.Precision, v.x[0], v.r[0], bx, br)
	found := &v.lane.kinks
	found.Units++
	if math.Abs(z) > deviations*math.Sqrt(variance) {
		return false
	}
	found.Near++
	if c.strict || (z > 0) == (y.state[0][row*h+unit] > 0) {
		return false // the reference's own side
	}
	found.Other++
	return true
}

// dotSquares is dot of squared weights and values.
func dotSquares(w []float32, x []float64) (sum float64) {
	for i, v := range x {
		p := v * float64(w[i])
		sum += p * p
	}
	return sum
}
