package oracle

import (
	"fmt"
	"runtime"

	"rnnbench/internal/parallel"
	"rnnbench/rnn/cell"
)

// cellFLOPs is roughly the work of a cell's programs for one unit, in operations of products.
const cellFLOPs = 500

// unitsAlone reports whether a unit's next state depends on its own states alone: the layer has no
// recurrent product and no projection.
func (y *refLayer) unitsAlone() bool { return len(y.weightR) == 0 && y.projection == nil }

// units runs f on ranges of units, for all distinct sequences, in parallel where a step has enough work.
func (r *reference) units(f func(j, from, to int)) {
	const few = 64 // fewer units are not worth another task
	unitRanges(r, few, 1, f)
}

// lanes is units for a function that runs all steps.
func (r *reference) lanes(f func(j, from, to int)) {
	const few = 8 // a cache line
	unitRanges(r, few, r.p.Frames(), f)
}

// unitRanges runs f, which runs so many steps, on ranges of at least few units, if there are as many.
func unitRanges(r *reference, few, steps int, f func(j, from, to int)) {
	h := r.p.Hidden
	parts := min((runtime.NumCPU()+r.Distinct-1)/r.Distinct, (h+few-1)/few)
	parallel.Share(r.Distinct*parts, cellFLOPs*float64(steps)*float64(r.Distinct*h), func(task int) {
		part := task % parts
		f(task/parts, part*h/parts, (part+1)*h/parts)
	})
}

// An evaluator runs the cell of a layer for one unit of one row after another.
type evaluator struct {
	*reference
	y    *refLayer
	dout []float64 // gradient of the layer's output; nil: forward

	row, unit int  // where programs find their values
	reset     bool // the row's sequence begins anew

	at                       func(cell.Ref) *float64
	x, rec, peep, prev, next []float64
	temps                    []float64
	constant                 [2]float64
	none                     float64
}

// newEvaluator returns an evaluator for one task. dout is for the backward program.
func newEvaluator(r *reference, y *refLayer, dout []float64) *evaluator {
	c := r.p.Cell
	v := &evaluator{reference: r, y: y, dout: dout, temps: make([]float64, max(c.Forward.Temps(), c.Inference.Temps(), c.Backward.Temps()))}
	v.at = v.value
	if dout == nil {
		v.x, v.rec, v.peep = make([]float64, len(c.Gates)), make([]float64, c.Recurrent), make([]float64, len(c.Peeps))
		v.prev, v.next = make([]float64, len(c.States)), make([]float64, len(c.States))
	}
	return v
}

// forward advances units [from, to) of distinct sequence j by step t, by the equations. Where
// training, it also runs the forward program, for the values that the backward pass needs.
func (v *evaluator) forward(t, j, from, to int) {
	c, h, y := v.p.Cell, v.p.Hidden, v.y
	row := t*v.Distinct + j
	if !y.exists(row) {
		y.keepStates(row, from, to, h)
		return
	}
	v.row, v.reset = row, y.restarts(row)
	for u := from; u < to; u++ {
		v.unit = u
		if v.reference.lossy != nil {
			v.reference.lossy.forward(v)
			continue
		}
		v.read()
		if y.saved != nil {
			c.Forward.Eval(v.at)
		}
		c.Equations(v.x, v.rec, v.peep, v.prev, v.next)
		for s := range v.next {
			y.state[s][(row+y.after)*h+u] = v.next[s]
		}
	}
}

// read sets what equations take to that of the present unit and row.
func (v *evaluator) read() {
	c, h, y, row, u := v.p.Cell, v.p.Hidden, v.y, v.row, v.unit
	for g := range c.Gates {
		v.x[g] = y.pre[(row*len(c.Gates)+g)*h+u] + float64(y.biasX[g*h+u])
	}
	for g := range v.rec {
		v.rec[g] = y.rec[(row*c.Recurrent+g)*h+u] + float64(y.biasR[g*h+u])
	}
	for k := range v.peep {
		v.peep[k] = float64(y.peep[k*h+u])
	}
	for s := range v.prev {
		if v.prev[s] = y.state[s][(row+y.before)*h+u]; v.reset {
			v.prev[s] = 0
		}
	}
}

// backward runs a backward program for units [from, to) of distinct sequence j at step t.
func (v *evaluator) backward(p cell.Program, t, j, from, to int) {
	row := t*v.Distinct + j
	if !v.y.exists(row) {
		return
	}
	v.row, v.reset = row, v.y.restarts(row)
	v.y.reaches(row, j, v.p.Hidden, from, to, v.y.dState, v.dout)
	v.jumps(from, to)
	for u := from; u < to; u++ {
		v.unit = u
		if v.reference.lossy != nil {
			v.reference.lossy.backward(v, p)
			continue
		}
		p.Eval(v.at)
	}
}

// value is where a program finds a value of the present unit and row.
func (v *evaluator) value(ref cell.Ref) *float64 {
	c, h, y, row, u, i := v.p.Cell, v.p.Hidden, v.y, v.row, v.unit, ref.Index
	if y.side != nil && v.dout != nil && ref == y.at {
		return &y.side[row*h+u]
	}
	switch ref.Kind {
	case cell.X:
		return &y.pre[(row*len(c.Gates)+i)*h+u]
	case cell.R:
		return &y.rec[(row*c.Recurrent+i)*h+u]
	case cell.BX:
		v.constant[0] = float64(y.biasX[i*h+u])
		return &v.constant[0]
	case cell.BR:
		v.constant[1] = float64(y.biasR[i*h+u])
		return &v.constant[1]
	case cell.Peep:
		v.constant[1] = float64(y.peep[i*h+u])
		return &v.constant[1]
	case cell.Prev:
		if v.reset {
			v.none = 0
			return &v.none
		}
		return &y.state[i][(row+y.before)*h+u]
	case cell.Next:
		return &y.state[i][(row+y.after)*h+u]
	case cell.Saved:
		return &y.saved[(row*c.Saved+i)*h+u]
	case cell.Temp:
		return &v.temps[i]
	case cell.DOut:
		return &v.dout[row*h+u]
	case cell.DNext, cell.DPrev:
		return &y.dState[i][row%v.Distinct*h+u]
	case cell.DX:
		return &y.dPre[(row*len(c.Gates)+i)*h+u]
	case cell.DR:
		return &y.dRec[(row*c.Recurrent+i)*h+u]
	case cell.Inner:
		return &y.inner[row*h+u]
	case cell.DInner:
		return &y.dInner[row%v.Distinct*h+u]
	case cell.DPassed:
		return &y.dPassed[(row%v.Distinct*c.Passed()+i)*h+u]
	case cell.DPeep:
		return &y.dP[(row%v.Distinct*len(c.Peeps)+i)*h+u] // per sequence; summed with its copies at the end
	}
	panic(fmt.Sprintf("rnn: no vector %v", ref))
}
