package rnn

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// An Optimizer says how training changes parameters.
type Optimizer struct {
	Rule schedule.Rule

	// Beta1 is SGD's momentum (0: none) or Adam's β₁. Beta2 and Epsilon are Adam's β₂ and ε.
	Beta1, Beta2, Epsilon float64

	// Nesterov has SGD with momentum follow the gradient and, ahead, the new moment: see schedule.SGD.
	Nesterov bool

	// Norm forms the norm of all gradients. It limits them (see Rates), and if it is not finite
	// nothing changes.
	Norm bool

	// LossScale multiplies the loss, so that 16 bits can hold small gradients; 0 is 1. Parameters
	// change as if it were 1.
	LossScale float64

	// Carry begins each run with the states after the last step of the run before:
	// truncated backpropagation through time.
	Carry bool

	// Replicas, unless 0, is how many devices train together. Each has a part of a minibatch of
	// Whole sequences, and the gradients are summed over all: see schedule.AllReduce.
	Replicas, Whole int
}

// Check reports the first invalid value.
func (o Optimizer) Check() error {
	switch {
	case o.Rule < 0 || int(o.Rule) >= len(schedule.Rules()):
		return fmt.Errorf("rnn: there is no optimiser number %d", o.Rule)
	case !(o.Beta1 >= 0 && o.Beta1 < 1):
		return fmt.Errorf("rnn: beta1, or momentum, is %g: it must be at least 0 and below 1", o.Beta1)
	case o.Nesterov && (o.Rule != schedule.SGD || o.Beta1 == 0):
		return errors.New("rnn: Nesterov's momentum is that of sgd: it takes a momentum above 0")
	case o.Rule == schedule.Adam && !(o.Beta2 >= 0 && o.Beta2 < 1):
		return fmt.Errorf("rnn: beta2 is %g: it must be at least 0 and below 1", o.Beta2)
	case o.Rule == schedule.Adam && !(o.Epsilon > 0 && o.Epsilon <= 1):
		return fmt.Errorf("rnn: epsilon is %g: it must be above 0 and at most 1", o.Epsilon)
	case !(o.LossScale >= 0 && o.LossScale <= 1<<30):
		return fmt.Errorf("rnn: the loss's scale is %g: it must be at most 2³⁰, or 0 for none", o.LossScale)
	case o.Replicas < 0 || o.Replicas > schedule.MaxReplicas || o.Replicas > 0 && o.Whole < o.Replicas:
		return fmt.Errorf("rnn: %d replicas cannot share a minibatch of %d: each needs at least one sequence", o.Replicas, o.Whole)
	}
	return nil
}

func (o Optimizer) scale() float64 {
	if o.LossScale == 0 {
		return 1
	}
	return o.LossScale
}

// moments is the number of values kept for each parameter.
func (o Optimizer) Moments() int {
	switch {
	case o.Rule == schedule.Adam:
		return 2
	case o.Beta1 > 0:
		return 1
	}
	return 0
}

// A Trained is a parameter that training changes.
type Trained struct {
	Name   string             // as in Data
	Param  *schedule.Matrix   // in single precision
	Used   *schedule.Matrix   // what the network multiplies; Param itself where that is in single precision too
	Grad   *schedule.Matrix   // its gradient
	Moment []*schedule.Matrix // see schedule.Update
}

// Updates holds what an optimiser keeps between runs.
type Updates struct {
	Rates   *schedule.Matrix // 1 × schedule.RateColumns, written before a run
	Squares *schedule.Matrix // 1 × bands of all gradients, whose sum is their squared norm; nil: no norm
	Trained []Trained
}

// LayoutTraining is Layout of a training iteration: each run ends with o changing the parameters.
// Techniques know nothing of it.
func LayoutTraining(t Technique, p Problem, k knob.Params, o Optimizer) (*Plan, *schedule.Schedule, error) {
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	if p.Pass != Train {
		return nil, nil, errors.New("rnn: only training changes parameters")
	}
	if p.History > 0 && !o.Carry {
		return nil, nil, fmt.Errorf("rnn: %w: history is %d, but no minibatch continues the one before", schedule.ErrHistory, p.History)
	}
	if p.History > 0 && o.Replicas > 1 {
		return nil, nil, fmt.Errorf("rnn: %w: a history of %d steps and %d replicas do not go together yet", schedule.ErrHistory, p.History, o.Replicas)
	}
	if p.History > 0 && p.Embedding > 0 {
		return nil, nil, fmt.Errorf("rnn: %w: a history of %d steps and an embedding do not go together yet", schedule.ErrHistory, p.History)
	}
	if p.Norm == NormBatch && o.Replicas > 1 {
		return nil, nil, fmt.Errorf("rnn: %w: norm=%s has statistics of the whole minibatch, which %d replicas do not share: set norm to none", schedule.ErrNorm, NormBatch, o.Replicas)
	}
	if p.Lengths != "" && o.Replicas > 1 {
		return nil, nil, fmt.Errorf("rnn: %w: lengths are %.60v, which %d replicas cannot share yet: set lengths to full", schedule.ErrLengths, p.Lengths, o.Replicas)
	}
	if err := cmp.Or(canCarry(p, o.Carry), needsVerifying(t, p, k)); err != nil {
		return nil, nil, err
	}
	plan, err := planned(t, p, k, kind{continues: p.History > 0})
	if err != nil {
		return nil, nil, err
	}
	plan.PrepareInRuns()
	keepChanges(plan)
	part := 1.0
	if o.Replicas > 0 {
		if !p.Weighted { // losses are means over the whole minibatch; weights already say so
			part = float64(p.Batch) / float64(o.Whole)
		}
		plan.AllReduce(plan.gradients(), o.Replicas)
	}
	plan.ScaleLosses(float32(o.scale() * part))
	plan.update(o)
	if o.Carry {
		carryOn(plan)
	}
	s, err := plan.Schedule()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return plan, s, nil
}

// LayoutForward is Layout of forward passes. With carry, each run begins with the states after the last step
// of the previous run.
func LayoutForward(t Technique, p Problem, k knob.Params, carry bool) (*Plan, *schedule.Schedule, error) {
	if err := cmp.Or(canCarry(p, carry), needsVerifying(t, p, k)); err != nil {
		return nil, nil, err
	}
	plan, err := planned(t, p, k, kind{})
	if err != nil {
		return nil, nil, err
	}
	keepChanges(plan)
	if carry {
		carryOn(plan)
	}
	s, err := plan.Schedule()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.Name(), err)
	}
	return plan, s, nil
}

// A parameter is one parameter's matrix with its gradient, and its name in Data.
type parameter struct {
	name        string
	value, grad *schedule.Matrix
}

// parameters lists what training changes, layer after layer.
func (p *Matrices) parameters() []parameter {
	var all []parameter
	add := func(name string, value, grad *schedule.Matrix) {
		if value != nil && grad != nil {
			all = append(all, parameter{name, value, grad})
		}
	}
	if e := p.Embed; e != nil {
		add("embedding", e.Table, e.Grad)
	}
	for i, y := range p.Convolutions {
		add(fmt.Sprintf("weight_conv%d", i), y.W, y.DW)
		add(fmt.Sprintf("bias_conv%d", i), y.B, y.DB)
	}
	for l, y := range p.Layer {
		name := func(s string) string { return p.Named(s, l) }
		add(name("weight_ih"), y.W, y.Grad.W)
		add(name("weight_hh"), y.R, y.Grad.R)
		add(name("bias_ih"), y.BX, y.Grad.BX)
		add(name("bias_hh"), y.BR, y.Grad.BR)
		add(name("peephole"), y.Peep, y.Grad.Peep)
		if j := y.Projection; j != nil {
			add(name("weight_hr"), j.W, j.DW)
		}
		if m := y.Norm; m != nil {
			add(name("gain_ih"), m.X, m.DX)
			add(name("gain_hh"), m.R, m.DR)
		}
		if m := y.BatchNorm; m != nil {
			add(name("gain_ih"), m.Gain, m.DGain)
		}
		if m := y.Ahead; m != nil {
			add(name("weight_ahead"), m.W, m.DW)
		}
	}
	if h := p.Head; h != nil {
		if d := h.Dense; d != nil {
			add("weight_dense", d.W, d.DW)
			add("bias_dense", d.B, d.DB)
		}
		add("weight_out", h.W, h.DW)
		add("bias_out", h.B, h.DB)
	}
	return all
}

// gradients groups the gradients of parameters by layers, from the top: the order in which the
// backward pass completes them.
func (p *Matrices) gradients() [][]*schedule.Matrix {
	var groups [][]*schedule.Matrix
	layer := ""
	for _, v := range p.parameters() {
		if of := v.name[strings.LastIndex(v.name, "_")+1:]; of != layer || groups == nil {
			groups, layer = append(groups, nil), of
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], v.grad)
	}
	slices.Reverse(groups)
	return groups
}

// Squares of all gradients are summed in about mostBands bands, each of bandElements or more. As
// many blocks of a GPU share the work, and each block of an update adds as many sums.
const (
	mostBands    = 1024
	bandElements = 4096
)

// bands returns the number of bands in which each gradient's squares are summed, and their sum.
func bands(params []parameter) (each []int, sum int) {
	total := 0
	for _, v := range params {
		total += v.grad.Elements()
	}
	long := max(bandElements, (total+mostBands-1)/mostBands)
	for _, v := range params {
		n := min(v.grad.Rows, (v.grad.Elements()+long-1)/long)
		each, sum = append(each, n), sum+n
	}
	return each, sum
}

// update appends the operations that change the parameters.
func (p *Plan) update(o Optimizer) {
	u := &Updates{Rates: p.Matrix("rates", 1, schedule.RateColumns)}
	params := p.parameters()
	var squares schedule.View
	if o.Norm {
		parts, all := bands(params)
		u.Squares = p.Matrix("squares", 1, all)
		squares = u.Squares.All()
		at := 0
		for i, v := range params {
			n := parts[i]
			p.Do(0, schedule.Squares{A: v.grad.All(), Out: squares.Columns(at, n), Rows: o.tableRows(p, v.value)})
			at += n
		}
	}
	for _, v := range params {
		one := Trained{Name: v.name, Param: v.value, Used: v.value, Grad: v.grad}
		op := schedule.Update{
			Rule: o.Rule, Grad: v.grad.All(), Rates: u.Rates.All(), Squares: squares, Rows: o.tableRows(p, v.value),
			Beta1: float32(o.Beta1), Beta2: float32(o.Beta2), Epsilon: float32(o.Epsilon), Nesterov: o.Nesterov,
		}
		if p.Precision == BF16 || p.Precision == FP16 {
			one.Param = p.Matrix(v.value.Name+" fp32", v.value.Rows, v.value.Cols)
			op.Copy = v.value.All()
		}
		for i := range o.Moments() {
			m := p.Matrix(fmt.Sprintf("%s moment %d", v.value.Name, i+1), v.value.Rows, v.value.Cols)
			one.Moment, op.Moment = append(one.Moment, m), append(op.Moment, m.All())
		}
		op.Param = one.Param.All()
		p.Do(0, op)
		u.Trained = append(u.Trained, one)
	}
	p.Updates = u
}

// tableRows returns the symbols of the run if param is their table: in all other rows the gradient
// is 0. It is empty for other parameters, and where the sum includes other replicas' gradients.
func (o Optimizer) tableRows(p *Plan, param *schedule.Matrix) (symbols schedule.View) {
	if p.OneHot && len(p.Layer) > 0 && param == p.Layer[0].W && p.X.Rows <= param.Rows && o.Replicas <= 1 {
		return p.X.All()
	}
	return schedule.View{}
}

// Rates returns the row of Updates.Rates for iteration t, which counts from 1. rate is the learning
// rate, and limit the largest norm of the gradients, 0 for no limit.
func (o Optimizer) Rates(t int, rate, limit float64) []float32 {
	out := make([]float32, schedule.RateColumns)
	out[schedule.Rate], out[schedule.Unscale], out[schedule.Limit] = float32(rate), float32(1/o.scale()), float32(limit)
	if o.Rule == schedule.Adam {
		// By the betas of Update: 1 − float32(0.999) is 1.3e-5 less than 0.001.
		beta1, beta2 := float64(float32(o.Beta1)), float64(float32(o.Beta2))
		out[schedule.Rate] = float32(rate / (1 - math.Pow(beta1, float64(t))))
		out[schedule.Root] = float32(1 / math.Sqrt(1-math.Pow(beta2, float64(t))))
	}
	return out
}

// feedNew has each run begin by copying the inputs of new steps behind those of the history. Only
// the new steps then need to be written.
func feedNew(p *Plan) {
	p.XN = p.Matrix("new x", p.Steps*p.Batch, p.X.Cols)
	p.Do(0, schedule.Map{Op: cell.Copy, Out: p.Rows(p.X, p.History, p.Steps), A: p.XN.All()})
}

// Runs is the number of runs until all steps of the history come from minibatches.
func (p Problem) Runs() int { return (p.History + p.Steps - 1) / p.Steps }

// carryOn appends copies for the next run: the last states go to the place of the first ones. In a
// plan that continues runs, the last steps of what it keeps go to the place of the history.
func carryOn(p *Plan) {
	if p.Continues {
		for _, k := range p.kept {
			for at := 0; at < k.Lead+p.History; at += p.Steps { // a copy's ends do not overlap
				n := min(p.Steps, k.Lead+p.History-at)
				p.Do(0, schedule.Map{Op: cell.Copy, Out: p.Rows(k.Matrix, at, n), A: p.Rows(k.Matrix, at+p.Steps, n)})
			}
		}
		return
	}
	if w := p.Whole; w != nil {
		for s := range w.First {
			p.Do(0, schedule.Map{Op: cell.Copy, Out: w.First[s].All(), A: w.Last[s].All()})
		}
		return
	}
	for _, y := range p.Layer {
		if e := y.Ends; e != nil {
			for s := range e.First {
				p.Do(0, schedule.Map{Op: cell.Copy, Out: e.First[s], A: e.Last[s]})
			}
		}
		for s := range y.State {
			m := y.shown(s)
			p.Do(0, schedule.Map{Op: cell.Copy, Out: p.Rows(m, 0, 1), A: p.Rows(m, p.Frames(), 1)})
		}
	}
}

// Begin writes the parameters of d in single precision to where training keeps them, and zeros to
// the moments. Plan.Write does neither.
func (u *Updates) Begin(mem Memory, d *Data) error {
	for _, t := range u.Trained {
		if err := mem.Write(t.Param, d.Get(t.Name)); err != nil {
			return err
		}
		for _, m := range t.Moment {
			if err := mem.Write(m, make([]float32, m.Elements())); err != nil {
				return err
			}
		}
	}
	return nil
}

// FirstStates maps each state's name to the matrix whose first rows are the state before the first step.
func (p *Plan) FirstStates() map[string]*schedule.Matrix {
	out := map[string]*schedule.Matrix{}
	if w := p.Whole; w != nil {
		for i, s := range p.Cell.States {
			out[s+"0"] = w.First[i]
		}
		return out
	}
	for l, y := range p.Layer {
		for i, s := range p.Cell.States {
			switch name := p.Named(s+"0", l); {
			case y.Ends == nil:
				out[name] = y.shown(i)
			case y.Ends.First[i].Row == 0: // otherwise it lies in the matrix of a layer below
				out[name] = y.Ends.First[i].M
			}
		}
	}
	return out
}
