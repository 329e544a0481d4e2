package rnn

import (
	"slices"
	"strings"

	"rnnbench/rnn/schedule"
)

// A Descent is training in double precision by the reference, with which training on devices is
// compared. The network reads parameters that are rounded to single precision.
type Descent struct {
	Optimizer Optimizer
	Data      *Data // of the next iteration

	// Fault, unless nil, changes gradients before they are used, given the parameter's name: tests
	// plant faults.
	Fault func(name string, grad []float64)

	kept       *keptSteps // nil: each minibatch begins anew
	iterations int
	params     map[string][]float64
	moments    map[string][][]float64
}

// NewDescent begins with the parameters of d, which it leaves as they are.
func NewDescent(d *Data, o Optimizer) *Descent {
	s := &Descent{Optimizer: o, Data: dataOf(d.Problem, d.Distinct), params: map[string][]float64{}, moments: map[string][][]float64{}}
	for _, t := range d.tensors {
		t.values = slices.Clone(t.values)
		s.Data.tensors = append(s.Data.tensors, t)
	}
	if o.Carry {
		s.kept = s.Data.nothingKept()
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
		s.Data.shift()
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
			loss = s.Data.meanLoss(t.Values)
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
	i := slices.IndexFunc(s.Data.tensors, func(t tensor) bool { return t.name == name })
	return i >= 0 && !s.Data.tensors[i].perSequence
}

func (s *Descent) change(op schedule.Update, rates []float64, scale float64, name string, grad []float64) {
	used := s.Data.Get(name)
	if s.params[name] == nil {
		s.params[name] = widen(used)
		for range s.Optimizer.moments() {
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

// ClearStates sets the states before the first step to 0.
func (d *Data) ClearStates() {
	for _, t := range d.tensors {
		for _, s := range d.Problem.Cell.States {
			if t.perSequence && strings.HasPrefix(t.name, s+"0_l") {
				clear(t.values)
			}
		}
	}
}
