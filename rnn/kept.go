package rnn

import "fmt"

// keptSteps holds the steps that a minibatch leaves to the next: each layer's states, with those
// before the first step in front, and what its cell saved.
type keptSteps struct {
	state [][][]float64 // per layer and state, (history+1)·distinct × hidden
	saved [][]float64   // per layer, history·distinct × saved·hidden
}

// recall copies layer l's kept steps to y, and returns the first step to compute.
func (r *reference) recall(y *refLayer, l int) int {
	if r.kept == nil {
		return 0
	}
	for s, v := range r.kept.state[l] {
		copy(y.state[s], v)
	}
	copy(y.saved, r.kept.saved[l])
	return r.p.History
}

// keep returns the last steps of this minibatch, from which the next one continues.
func (r *reference) keep() *keptSteps {
	k, from, n := &keptSteps{}, r.p.Steps*r.Distinct, r.p.History*r.Distinct
	for _, y := range r.layers {
		var states [][]float64
		for _, v := range y.state {
			states = append(states, v[from*r.p.Hidden:(from+n+r.Distinct)*r.p.Hidden])
		}
		wide := r.p.Cell.Saved * r.p.Hidden
		k.state, k.saved = append(k.state, states), append(k.saved, y.saved[from*wide:(from+n)*wide])
	}
	return k
}

// nothingKept is what the first minibatch finds: steps of zeros after the initial states.
func (d *Data) nothingKept() *keptSteps {
	k, p := &keptSteps{}, d.Problem
	for l := range p.Layers {
		var states [][]float64
		for _, s := range p.Cell.States {
			first := widen(d.Get(fmt.Sprintf("%s0_l%d", s, l)))
			states = append(states, append(first, make([]float64, p.History*d.Distinct*p.Hidden)...))
		}
		k.state, k.saved = append(k.state, states), append(k.saved, make([]float64, p.History*d.Distinct*p.Cell.Saved*p.Hidden))
	}
	return k
}

// shift moves the last steps of the inputs to the place of the history.
func (d *Data) shift() {
	x, n := d.Get("x"), d.Problem.History*d.Distinct
	if wide := len(x) / (d.Problem.Frames() * d.Distinct); n > 0 {
		copy(x[:n*wide], x[d.Problem.Steps*d.Distinct*wide:])
	}
}
