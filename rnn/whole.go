package rnn

import (
	"fmt"
	"slices"

	"rnnbench/rnn/schedule"
)

// A Whole holds the states of a network that runs as one operation. It shows the last layer's
// outputs at all steps, and all states before the first and after the last step. Row i·B+b of a
// state belongs to sequence b in number i of Problem.Reads.
type Whole struct {
	Y     *schedule.Matrix   // T·B × Out, or of the steps that sequences have: outputs of the last layer
	First []*schedule.Matrix // per state Reads·B × its StateWidth: before the first step that is read
	Last  []*schedule.Matrix // after the last step that is read
	Grad  []*schedule.Matrix // where training, gradients of First
}

// Ends are the states of one layer that a Whole shows.
type Ends struct {
	First, Last, Grad []schedule.View // per state B × its StateWidth; Grad where training
	Outputs           schedule.View   // T·B × Emits: the first state after each step; empty: it is not shown
	InOrder           bool            // Outputs are in the order of steps, though the layer may read from the last one
}

// AsWhole replaces the states of the layers by a Whole, which shows them after any projection. No
// operation may use them yet.
func (p *Plan) AsWhole() *Whole {
	for l := range p.Layer {
		y := &p.Layer[l]
		gone := slices.Concat(y.State, y.Grad.State, []*schedule.Matrix{y.Saved})
		if j := y.Projection; j != nil {
			gone = append(gone, j.H, j.D, j.DM)
			y.Projection = &Projection{W: j.W, DW: j.DW}
		}
		if n := y.Inner; n != nil {
			gone = append(gone, n.value, n.grad, n.passed)
			y.Inner = nil
		}
		for _, m := range gone {
			if m != nil {
				p.Remove(m)
			}
		}
		y.State, y.Grad.State, y.Saved = nil, nil, nil
	}
	w, rows := &Whole{Y: p.Matrix("y", p.Batches.Before(p.Steps), p.Out())}, p.Reads()*p.Batch
	for i, s := range p.Cell.States {
		cols := StateWidth(p.Problem, i)
		w.First = append(w.First, p.Matrix(s+"0", rows, cols))
		w.Last = append(w.Last, p.Matrix(fmt.Sprintf("%s%d", s, p.Steps), rows, cols))
		if p.Pass == Train {
			w.Grad = append(w.Grad, p.Matrix("d"+s+"0", rows, cols))
		}
	}
	if p.Whole = w; p.Direction != FromFirst {
		p.Y = w.Y.All()
	}
	for i := range p.Layer {
		p.Layer[i].Ends = w.ends(p.Problem, i)
	}
	return w
}

// ends returns the ends of layer i of Problem.Reads.
func (w *Whole) ends(p Problem, i int) *Ends {
	bands := func(ms []*schedule.Matrix) (views []schedule.View) {
		for _, m := range ms {
			views = append(views, m.Band(i*p.Batch, p.Batch))
		}
		return views
	}
	e := &Ends{First: bands(w.First), Last: bands(w.Last), Grad: bands(w.Grad), InOrder: p.Direction != FromFirst}
	if top := i - (p.Reads() - p.Ways()); top >= 0 {
		e.Outputs = w.Y.All().Columns(top*Emits(p), Emits(p))
	}
	return e
}

// A shown state is where a plan keeps one state of a layer.
type shown struct {
	before  schedule.View // before the first step that is read
	after   schedule.View // after each step, or after the last one that is read
	grad    schedule.View // of before, where training
	all     bool          // after has all steps
	flipped bool          // rows of after begin with the last step
}

// shows says where the plan keeps state s of number i of Problem.Reads.
func (p *Matrices) shows(i, s int) (v shown) {
	y := p.Layer[i]
	e := y.Ends
	switch {
	case e == nil:
		v = shown{before: y.shown(s).Band(0, p.Batch), after: p.stateAfter(y.shown(s), 0, p.Frames()), all: true, flipped: p.Backwards(i)}
		if p.Pass == Train {
			v.grad = y.shownGrad(s, p.Batch)
		}
		return v
	case s == 0 && !e.Outputs.Empty():
		v = shown{before: e.First[s], after: e.Outputs, all: true, flipped: p.Backwards(i) && !e.InOrder}
	default:
		v = shown{before: e.First[s], after: e.Last[s], all: p.Steps == 1}
	}
	if p.Pass == Train {
		v.grad = e.Grad[s]
	}
	return v
}

// FirstRows is the number of rows of a matrix of Plan.FirstStates that are states before the first
// step: one for each sequence or, in layers that run as one operation, for each sequence and layer.
func FirstRows(p *Plan, m *schedule.Matrix) int {
	if p.Layer[0].Ends != nil {
		return m.Rows
	}
	return p.Batch
}
