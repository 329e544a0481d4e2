package oracle

import (
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// sideValue is the value whose sign says on which side of the kink the reference has a unit: above 0 its
// gradient passes.
func (r *reference) sideValue(y *refLayer, i int) float64 {
	if r.p.Cell.Rectifier() && math.IsInf(r.p.Cell.Clip(), 1) {
		return y.state[0][y.after*r.p.Hidden+i]
	}
	return passing(r.p.Cell, r.input(y, i))
}

// passing is a sum or output of c, or 0 where it is clipped.
func passing(c *cell.Cell, v float64) float64 {
	if v >= c.Clip() {
		return 0
	}
	return v
}

// sidesAt has layer l of r compute gradients with the sides that other, which may be r, has there.
func sidesAt(r *reference, l int, other *reference) {
	y := &r.layers[l]
	kink, _ := r.p.Cell.Kink()
	y.at, y.rectifier, y.side = kink.At, r.p.Cell.Rectifier(), make([]float64, r.rows*r.p.Hidden)
	for i := range y.side {
		y.side[i] = other.sideValue(&other.layers[l], i)
	}
	y.reach = make([]float64, len(y.side))
}

// takeSides puts units within rounding of a kink on the side of the answer's states, where it shows them.
// It returns how many these are. If settled says so, no search may change their sides any more. Then a unit
// also stays on the reference's side if it is further from the kink than its state may be off.
func (r *reference) takeSides(answer []Tensor, settled bool) (shown int) {
	if !r.p.Cell.Rectifier() {
		return 0 // no state shows the side
	}
	lengths := rnn.SequenceLengths(r.p)
	for l := range r.layers {
		k := slices.IndexFunc(answer, func(t Tensor) bool { return t.Name == r.p.Named(r.p.Cell.States[0], l) })
		if k < 0 {
			continue
		}
		y, t := &r.layers[l], answer[k]
		most := math.Inf(1)
		if settled {
			most = stateError(r, l, t.UnitError)
		}
		steps := r.p.Frames() - t.First - t.Later
		var open []int
		for _, i := range y.near {
			row, unit := i/r.p.Hidden, i%r.p.Hidden
			step := row/r.Distinct - t.First
			if lengths != nil && t.First > 0 { // the only step is the sequence's last
				step = row/r.Distinct - lengths[row%r.Distinct] + 1
			}
			if step < 0 || step >= steps {
				open = append(open, i)
				continue
			}
			state := t.Values[(step*(t.Rows/steps)+row%r.Distinct)*r.p.Hidden+unit]
			if state >= r.p.Cell.Clip() { // it may be rounded to that
				open = append(open, i)
			}
			if toKink(r.p.Cell, r.input(y, i)) <= most {
				y.setSide(i, passing(r.p.Cell, state) > 0)
			}
		}
		if shown += len(y.near) - len(open); settled {
			y.open = open
		}
	}
	return shown
}

// stateError is the tolerance of the states of layer l.
func stateError(r *reference, l int, unit float64) float64 {
	largest := 0.0
	for _, v := range r.layers[l].later(0, r.p.Hidden) {
		largest = max(largest, math.Abs(v))
	}
	return largest * Tensor{Name: r.p.Named(r.p.Cell.States[0], l), data: r.Data, alone: r.run != nil}.tolerance(r.p, unit)
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
