package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// Stepwise checks a run whose whole reference would take too long. Each step is computed in double
// precision from what the run itself left of the step before. So no step depends on the others, and
// any step can be checked. All units are computed at some steps, the first and the last among them.
// Some units, drawn anew, are computed at all steps.
type Stepwise struct {
	Seed  uint64
	FLOPs float64 // what the check may take, roughly
}

// Covered says how much of a run was compared.
type Covered struct {
	Steps int     // at which something was compared in every layer
	Share float64 // values compared, over the values of all states
	Kinks Kinks   // among the units whose gradients were followed
}

// Stepwise tells whether the plan's schedule keeps what a stepwise check needs: the states of all
// steps and, where training, the gradients of all steps. Sequences with lengths of their own, or
// with resets, are not checked this way. Nor are cells with inner gates, layers with a norm, convolutions and
// fully connected layers: one unit of a step needs the inner value, or the products, of all units, or later steps.
func Steps(p *rnn.Plan) (states, gradients bool) {
	if p.Lengths != "" || p.Resets > 0 || p.Cell.Inner > 0 || p.Norm != "" || p.Lookahead > 0 || p.Dense > 0 || p.Conv != "" {
		return false, false
	}
	kept := p.Pass == rnn.Train && p.History == 0
	for _, y := range p.Layer {
		if y.Ends != nil {
			return false, false
		}
		kept = kept && y.Back != nil
	}
	return true, kept || p.Pass != rnn.Train
}

// StepwiseBytes estimates the memory that a stepwise check takes: the answer, which others are
// compared with later, and the values by which one layer's gradients are checked.
func StepwiseBytes(p rnn.Problem, distinct int) int64 {
	values := p.Reads()*(len(p.Cell.States)*p.Hidden+2*p.Projection) + p.Output
	if p.Transcript > 0 {
		values += 4*p.Output + 2*alignments(p) // logits, logarithms of probabilities, gradients and variables
	}
	if !p.OneHot {
		values += p.Input
	}
	if p.Pass == rnn.Train {
		values += p.Hidden*(len(p.Cell.Gates)+p.Cell.Recurrent+2) + p.Input
	}
	values += turnedValues(p)
	return 8 * int64(values) * int64(p.Frames()) * int64(min(distinct, p.Batch))
}

// AnswerBytes is the memory that the answer of all sequences takes in double precision, besides
// gradients of parameters.
func AnswerBytes(p rnn.Problem) int64 {
	values := p.Reads()*(len(p.Cell.States)*p.Hidden+p.Projection) + p.Dense
	if p.Pass == rnn.Train && !p.OneHot {
		values += p.Input
	}
	return 8 * int64(values) * int64(p.Frames()) * int64(p.Batch)
}

// LargestBytes is the memory of the largest matrix that a check reads.
func LargestBytes(p rnn.Problem) int64 {
	cols := max(p.Out(), p.Hidden, p.Output, p.Dense)
	if !p.OneHot {
		cols = max(cols, p.Input)
	}
	if p.Pass == rnn.Train {
		cols = max(cols, p.Hidden*len(p.Cell.Gates))
	}
	return 4 * int64(cols) * int64(p.Frames()) * int64(p.Batch)
}

// A stepper is one stepwise check.
type stepper struct {
	*rnn.Plan
	Stepwise
	mem      rnn.Memory
	data     *rnn.Data
	measured *rnn.Data // whose errors were measured
	distinct int
	got      []Tensor
	layers   []stepLayer // one for each of Problem.Reads
	outputs  []float64   // of the last layer, rows × Out
	buffer   []float32   // of what is read
	worst    Deviation
	looked   []int // per step, the number of layers and other parts in which something was compared
	parts    int
	values   float64 // compared
	found    Kinks
	strict   bool // no unit is granted the other gradient
}

// Check compares the run that got was read from with the reference, step by step. It checks
// gradients where the run keeps those of each step, and else the forward pass alone. Gradients of
// weights get the Spread that their sums have.
//
// A unit whose input of ReLU lies within rounding of 0 counts as on the side of the run's state,
// unless too many units do: see Kinks.
func (s Stepwise) Check(p *rnn.Plan, mem rnn.Memory, d *rnn.Data, got []Tensor) (Deviation, Covered, error) {
	return s.check(&stepper{Plan: p, Stepwise: s, mem: mem, data: d, measured: d, distinct: d.Distinct, got: got})
}

// check is the check that c has been set up for.
func (s Stepwise) check(c *stepper) (Deviation, Covered, error) {
	c.layout()
	dev, covered, err := s.run(c)
	if err == nil && covered.Kinks.TooMany() && covered.Kinks.Other > 0 {
		c.strict = true
		return s.run(c)
	}
	return dev, covered, err
}

func (s Stepwise) run(c *stepper) (Deviation, Covered, error) {
	c.worst, c.looked, c.parts, c.values, c.found = Deviation{Tolerance: 1}, make([]int, c.Frames()), 0, 0, Kinks{}
	p := c.Plan
	_, gradients := Steps(p)
	gradients = gradients && p.Pass == rnn.Train
	share := s.FLOPs / float64(p.Reads()+1) // the output layer counts as one
	if p.Output == 0 {
		share = s.FLOPs / float64(p.Reads())
	}
	if gradients {
		share /= 2
	}
	for _, t := range c.got {
		plausible(c, t)
	}
	for i := range p.Reads() {
		c.forward(i, share)
	}
	outputsChecked(c)
	above, err := c.output(share, gradients)
	if err == nil && gradients {
		err = c.backward(above, share)
	}
	covered := Covered{Share: c.values / (float64(p.Reads()*len(p.Cell.States)*p.Hidden*p.Frames()) * float64(c.distinct)), Kinks: c.found}
	for _, n := range c.looked {
		if n == c.parts {
			covered.Steps++
		}
	}
	return c.worst, covered, err
}

// tensor is the answer's tensor with that name; nil: there is none.
func (c *stepper) tensor(name string) *Tensor {
	for i := range c.got {
		if c.got[i].Name == name {
			return &c.got[i]
		}
	}
	return nil
}

// before is state s before the step of row.
func (c *stepper) before(y *stepLayer, s, row int) []float64 {
	h := c.Hidden
	if row < c.distinct {
		return y.initial[s][row*h : (row+1)*h]
	}
	row -= c.distinct
	return y.state[s][row*h : (row+1)*h]
}

// products sets x and r to the pre-activations of a unit of number i of Problem.Reads, without biases.
func (c *stepper) products(i, row, unit int, x, r []float64) {
	y, h := &c.layers[i], c.Hidden
	fan := y.fan
	for g := range x {
		x[g] = 0
		for k := range c.Cell.Window {
			from := row - k*c.distinct
			switch {
			case from < 0:
			case y.oneHot:
				x[g] += float64(y.weightX[(k*c.Input+int(y.in[from]))*len(x)*h+g*h+unit])
			default:
				x[g] += dot(y.weightX[(g*h+unit)*fan+k*y.width:], y.in[from*y.width:(from+1)*y.width])
			}
		}
	}
	if len(r) == 0 {
		return
	}
	through := throughBefore(c, y, row)
	for g := range r {
		r[g] = dot(y.weightR[(g*h+unit)*len(through):], through)
	}
}

// dot is the sum of the products of x with its weights.
func dot(w []float32, x []float64) float64 {
	w = w[:len(x)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += x[i] * float64(w[i])
		s1 += x[i+1] * float64(w[i+1])
		s2 += x[i+2] * float64(w[i+2])
		s3 += x[i+3] * float64(w[i+3])
	}
	for ; i < len(x); i++ {
		s0 += x[i] * float64(w[i])
	}
	return s0 + s1 + s2 + s3
}

// unitFLOPs is the number of operations of a unit of number i of Problem.Reads at one step, its cell included.
func (c *stepper) unitFLOPs(i int) float64 {
	n := c.Cell.Recurrent * rnn.Emits(c.Problem)
	if !c.layers[i].oneHot {
		n += len(c.Cell.Gates) * c.layers[i].fan
	}
	return 2*float64(n) + cellFLOPs
}

// forward checks the states of number n of Problem.Reads.
func (c *stepper) forward(n int, flops float64) {
	cell, h, y := c.Cell, c.Hidden, &c.layers[n]
	of := c.distinct * h
	plan := choose(c.Seed, c.Frames(), of, flops/c.unitFLOPs(n))
	found := make([][]difference, c.Frames())
	parallel.For(c.Frames(), func(k int) {
		t := y.step(k, c.Frames()) // the kth that is read
		rng := rand.New(rand.NewPCG(c.Seed, uint64(n)<<40|uint64(t)))
		x, r, peep := make([]float64, len(cell.Gates)), make([]float64, cell.Recurrent), make([]float64, len(cell.Peeps))
		prev, next := make([]float64, len(cell.States)), make([]float64, len(cell.States))
		found[t] = make([]difference, len(next))
		for i := range plan[t] {
			at := i
			if plan[t] < of {
				at = rng.IntN(of)
			}
			row, unit := k*c.distinct+at/h, at%h
			c.products(n, row, unit, x, r)
			for g := range x {
				x[g] += float64(y.biasX[g*h+unit])
			}
			for g := range r {
				r[g] += float64(y.biasR[g*h+unit])
			}
			for k := range peep {
				peep[k] = float64(y.peep[k*h+unit])
			}
			for s := range prev {
				prev[s] = c.before(y, s, row)[unit]
			}
			cell.Equations(x, r, peep, prev, next)
			for s, want := range next {
				found[t][s].add(y.state[s][row*h+unit], want, row*h+unit)
			}
		}
	})
	for s := range cell.States {
		c.judge(stateName(c, y, s, n), y.state[s], h, differences(found, s))
	}
	for _, some := range plan {
		c.values += float64(some * len(cell.States))
	}
	c.noteSteps(plan)
	projected(c, n, flops/4)
}

// noteSteps records at which steps a part was compared.
func (c *stepper) noteSteps(plan []int) {
	c.parts++
	for i, t := 0, c.Frames()-len(plan); i < len(plan); i, t = i+1, t+1 {
		if plan[i] > 0 {
			c.looked[t]++
		}
	}
	for t := range c.Frames() - len(plan) { // steps that the part does not have
		c.looked[t]++
	}
}

// choose returns, for each step, how many of its values are compared. A step has of values, and all
// may be compared in total. Half of the time goes into whole steps: the first, the last and others.
// Half goes into some values of every step.
func choose(seed uint64, steps, of int, all float64) []int {
	plan := make([]int, steps)
	whole := int(min(float64(steps), all/2/float64(of)))
	if whole = max(whole, min(2, steps)); float64(of)*float64(steps) <= all {
		whole = steps
	}
	some := all / 2 / float64(steps)
	every := 1
	if some < 1 {
		every = int(math.Ceil(1 / max(some, 1e-9)))
	}
	rng := rand.New(rand.NewPCG(seed, 1<<63)) // the same for all parts, so that they look at the same steps
	for t := rng.IntN(min(every, steps)); t < steps; t += every {
		plan[t] = int(min(float64(of), max(1, some)))
	}
	edge := max(1, whole/4)
	for i := range whole {
		switch {
		case whole == steps:
			plan[i] = of
		case i < edge:
			plan[i] = of
		case i < 2*edge:
			plan[steps-1-(i-edge)] = of
		default:
			plan[rng.IntN(steps)] = of
		}
	}
	return plan
}

// differences merges the i-th of each.
func differences(found [][]difference, i int) (d difference) {
	for _, f := range found {
		if f != nil {
			d.merge(f[i])
		}
	}
	return d
}

// farthest is how many times as large as the largest value of the reference's first steps a value
// of a run may be.
const farthest = 64

// judge compares a difference with the tolerance of its tensor, relative to the size that the
// reference expects of its values. All values of the run's tensor must be about as large at most:
// others are computed from them, so one that is far larger would hide errors.
func (c *stepper) judge(name string, values []float64, cols int, d difference) {
	e, ok := expect(c.measured, name, c.UnitError)
	if !ok {
		panic(fmt.Sprintf("rnn: nothing is expected of %q", name))
	}
	if e.size > 0 {
		d.scale = e.size
	}
	d.merge(beyond(values, farthest*d.scale))
	c.worse(name, cols, e, d)
}

// plausible judges the size of the values of a part of the answer, also of those that are compared
// nowhere. A sum over all rows may be as many times as large as there are rows.
func plausible(c *stepper, t Tensor) {
	e, _ := expect(c.measured, t.Name, c.UnitError)
	limit := farthest * e.size
	switch {
	case e.size == 0: // as where nothing reads the states before the first step
		limit = farthest
	case !t.PerSequence:
		limit *= 1 + float64(c.Frames()*c.Batch)
	}
	d := beyond(t.Values, limit)
	d.scale = e.size
	c.worse(t.Name, t.Cols, e, d)
}

// beyond is the largest of values, if it is beyond a limit or not finite.
func beyond(values []float64, limit float64) (d difference) {
	const chunk = 1 << 16
	far := make([]difference, (len(values)+chunk-1)/chunk)
	parallel.For(len(far), func(i int) {
		for k, v := range values[i*chunk : min((i+1)*chunk, len(values))] {
			if !(math.Abs(v) <= limit) {
				far[i].add(v, 0, i*chunk+k)
			}
		}
	})
	for _, f := range far {
		d.merge(f)
	}
	return d
}

// worse notes a difference in a tensor.
func (c *stepper) worse(name string, cols int, e expectation, d difference) {
	dev := Deviation{Tensor: name, MaxAbs: d.most, Tolerance: e.tolerance(), Row: d.at / cols, Col: d.at % cols}
	dev.Error = dev.relative(d.scale)
	c.worst = c.worst.OrWorse(dev.orMean(d, e))
}

// CheckEach is Check of each sequence of the batch by itself. Check assumes that copies of a
// sequence are equal. But where the order of a sum depends on a sequence's place in the batch,
// copies are rounded differently. At a kink of ReLU they may then be on different sides, each of
// them right. Gradients of weights are sums over the batch, so they are then not those of one copy
// times the number of copies.
//
// CheckEach forms the sums from what the run left of every sequence, and grants each sequence its
// own side of a kink. States of all copies are compared with those of the first. Tolerances are the
// same. It takes StepwiseBytes of all sequences.
func (s Stepwise) CheckEach(p *rnn.Plan, mem rnn.Memory, d *rnn.Data) (Deviation, Covered, error) {
	each := eachSequence(d)
	all, _, err := readDistinct(p, mem, each, d)
	if err != nil {
		return Deviation{}, Covered{}, err
	}
	dev, covered, err := s.check(&stepper{Plan: p, Stepwise: s, mem: mem, data: each, measured: d, distinct: each.Distinct, got: all})
	if err != nil {
		return dev, covered, err
	}
	apart, err := copiesApart(p.Problem, d, all)
	return dev.OrWorse(apart), covered, err
}

// each is d with every sequence of the batch written out.
func eachSequence(d *rnn.Data) *rnn.Data {
	out := rnn.DataFor(d.Problem, d.Problem.Batch)
	for _, t := range d.Tensors {
		if t.PerSequence {
			t.Values = rnn.Repeat(t.Values, t.Cols, d.Distinct, d.Problem.Batch)
			t.Rows = len(t.Values) / t.Cols
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}

// copiesApart is how far copies' states are from those of the first copy. all has every sequence of
// the batch.
func copiesApart(p rnn.Problem, d *rnn.Data, all []Tensor) (Deviation, error) {
	apart := Deviation{Tolerance: 1}
	for _, t := range all {
		if !t.PerSequence || t.Gradient {
			continue
		}
		first := t
		first.Values = nil
		for block := range slices.Chunk(t.Values, p.Batch*t.Cols) {
			first.Values = append(first.Values, block[:d.Distinct*t.Cols]...)
		}
		first.Rows = len(first.Values) / t.Cols
		first.data = d
		dev, err := deviation(p, t, t.Values, first.sized(t.UnitError))
		if err != nil {
			return apart, err
		}
		apart = apart.OrWorse(dev)
	}
	apart.Tolerance *= 2 // of two answers
	return apart, nil
}
