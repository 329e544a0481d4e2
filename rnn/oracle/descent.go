package oracle

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A Descent is training in double precision by the reference, with which training on devices is
// compared. The network reads parameters that are rounded to single precision.
type Descent struct {
	Optimizer rnn.Optimizer
	Data      *rnn.Data // of the next iteration

	// Fault, unless nil, changes gradients before they are used, given the parameter's name: tests
	// plant faults.
	Fault func(name string, grad []float64)

	kept       *keptSteps // nil: each minibatch begins anew
	iterations int
	params     map[string][]float64
	moments    map[string][][]float64
}

// NewDescent begins with the parameters of d, which it leaves as they are.
func NewDescent(d *rnn.Data, o rnn.Optimizer) *Descent {
	s := &Descent{Optimizer: o, Data: rnn.DataFor(d.Problem, d.Distinct), params: map[string][]float64{}, moments: map[string][][]float64{}}
	for _, t := range d.Tensors {
		t.Values = slices.Clone(t.Values)
		s.Data.Tensors = append(s.Data.Tensors, t)
	}
	if o.Carry {
		s.kept = nothingKept(s.Data)
	}
	return s
}

// See computes a minibatch without changing parameters.
func (s *Descent) See() { s.answer() }

// answer computes the minibatch's answer, and keeps the steps that the next one continues.
func (s *Descent) answer() []Tensor {
	r := newReference(s.Data)
	r.kept = s.kept
	r.forward()
	r.backward()
	out := r.answer()
	if s.kept != nil {
		s.kept = r.keep()
		shift(s.Data)
	}
	return out
}

// Step computes a minibatch and changes the parameters; rate and limit are those of
// Optimizer.Rates. It returns the mean loss, 0 without an output layer.
func (s *Descent) Step(rate, limit float64) float64 {
	answer, o := s.answer(), s.Optimizer
	o.LossScale = 0 // double precision has room
	s.iterations++
	var rates []float64
	for _, v := range o.Rates(s.iterations, rate, limit) {
		rates = append(rates, float64(v))
	}
	loss, sum := 0.0, 0.0
	for _, t := range answer {
		if t.Name == "loss" {
			loss = meanLoss(s.Data, t.Values)
		}
		if s.trains(t.Name) {
			if s.Fault != nil {
				s.Fault(strings.TrimPrefix(t.Name, "grad_"), t.Values)
			}
			for _, g := range t.Values {
				sum += g * g
			}
		}
	}
	op := schedule.Update{
		Rule: s.Optimizer.Rule, Beta1: float32(s.Optimizer.Beta1), Beta2: float32(s.Optimizer.Beta2), Epsilon: float32(s.Optimizer.Epsilon),
		Nesterov: s.Optimizer.Nesterov,
	}
	if s.Optimizer.Norm { // Scale only asks whether there is a view
		op.Squares = schedule.View{M: &schedule.Matrix{}}
	}
	scale := op.Scale(rates, sum)
	for _, t := range answer {
		if s.trains(t.Name) && scale != 0 {
			s.change(op, rates, scale, strings.TrimPrefix(t.Name, "grad_"), t.Values)
		}
	}
	return loss
}

// trains reports whether a part of the answer is the gradient of a parameter.
func (s *Descent) trains(name string) bool {
	name, ok := strings.CutPrefix(name, "grad_")
	if !ok {
		return false
	}
	i := slices.IndexFunc(s.Data.Tensors, func(t rnn.Tensor) bool { return t.Name == name })
	return i >= 0 && !s.Data.Tensors[i].PerSequence
}

func (s *Descent) change(op schedule.Update, rates []float64, scale float64, name string, grad []float64) {
	used := s.Data.Get(name)
	if s.params[name] == nil {
		s.params[name] = widen(used)
		for range s.Optimizer.Moments() {
			s.moments[name] = append(s.moments[name], make([]float64, len(used)))
		}
	}
	param, moments := s.params[name], s.moments[name]
	moment := make([]float64, len(moments))
	for i, g := range grad {
		for k := range moments {
			moment[k] = moments[k][i]
		}
		param[i] = op.Step(rates, param[i], scale*g, moment)
		for k := range moments {
			moments[k][i] = moment[k]
		}
		used[i] = float32(param[i])
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// keptSteps holds the steps that a minibatch leaves to the next: each layer's states, with those
// before the first step in front, and what its cell saved.
type keptSteps struct {
	state [][][]float64 // per layer and state, (history+1)·distinct × hidden
	saved [][]float64   // per layer, history·distinct × saved·hidden
	inner [][]float64   // per layer, history·distinct × hidden, where the cell has inner gates
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
	copy(y.inner, r.kept.inner[l])
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
		wide, inner := r.p.Cell.Saved*r.p.Hidden, min(1, r.p.Cell.Inner)*r.p.Hidden
		k.state, k.saved = append(k.state, states), append(k.saved, y.saved[from*wide:(from+n)*wide])
		k.inner = append(k.inner, y.inner[from*inner:(from+n)*inner])
	}
	return k
}

// nothingKept is what the first minibatch finds: steps of zeros after the initial states.
func nothingKept(d *rnn.Data) *keptSteps {
	k, p := &keptSteps{}, d.Problem
	for l := range p.Layers {
		var states [][]float64
		for _, s := range p.Cell.States {
			first := widen(d.Get(fmt.Sprintf("%s0_l%d", s, l)))
			states = append(states, append(first, make([]float64, p.History*d.Distinct*p.Hidden)...))
		}
		kept := p.History * d.Distinct * p.Hidden
		k.state, k.saved = append(k.state, states), append(k.saved, make([]float64, kept*p.Cell.Saved))
		k.inner = append(k.inner, make([]float64, kept*min(1, p.Cell.Inner)))
	}
	return k
}

// shift moves the last steps of the inputs to the place of the history.
func shift(d *rnn.Data) {
	x, n := d.Get("x"), d.Problem.History*d.Distinct
	if wide := len(x) / (d.Problem.Frames() * d.Distinct); n > 0 {
		copy(x[:n*wide], x[d.Problem.Steps*d.Distinct*wide:])
	}
}
