package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// A Whole holds the states of a network that is run as one operation, which
// shows the outputs of the last layer at all steps, and of all states those
// before the first and after the last step. Row l·B+b of these belongs to
// sequence b in layer l.
type Whole struct {
	Y     *schedule.Matrix   // T·B × H: outputs of the last layer
	First []*schedule.Matrix // per state L·B × H: before the first step
	Last  []*schedule.Matrix // after the last step
	Grad  []*schedule.Matrix // where training, gradients of First
}

// AsWhole replaces the states of the layers, which no operation may touch yet,
// by those of a Whole.
func (p *Plan) AsWhole() *Whole {
	for l := range p.Layer {
		y := &p.Layer[l]
		for _, m := range append(append(y.State, y.Grad.State...), y.Saved) {
			if m != nil {
				p.Remove(m)
			}
		}
		y.State, y.Grad.State, y.Saved = nil, nil, nil
	}
	w := &Whole{Y: p.Matrix("y", p.Steps*p.Batch, p.Hidden)}
	for _, s := range p.Cell.States {
		w.First = append(w.First, p.Matrix(s+"0", p.Layers*p.Batch, p.Hidden))
		w.Last = append(w.Last, p.Matrix(fmt.Sprintf("%s%d", s, p.Steps), p.Layers*p.Batch, p.Hidden))
		if p.Pass == Train {
			w.Grad = append(w.Grad, p.Matrix("d"+s+"0", p.Layers*p.Batch, p.Hidden))
		}
	}
	p.Whole = w
	return w
}

// states views where the plan keeps state s of layer l: before the first step,
// from step from on, and, where training, the gradient of that before the first.
func (p *Matrices) states(l, s int) (first, after schedule.View, from int, grad schedule.View) {
	if w := p.Whole; w != nil {
		band := func(m *schedule.Matrix) schedule.View { return m.Band(l*p.Batch, p.Batch) }
		first, after, from = band(w.First[s]), band(w.Last[s]), p.Steps-1
		if s == 0 && l == p.Layers-1 {
			after, from = w.Y.All(), 0
		}
		if p.Pass == Train {
			grad = band(w.Grad[s])
		}
		return first, after, from, grad
	}
	y := p.Layer[l]
	first, after = p.Rows(y.State[s], 0, 1), p.Rows(y.State[s], 1, p.Frames())
	if p.Pass == Train {
		grad = y.Grad.State[s].All()
	}
	return first, after, 0, grad
}
