// Package newton runs nonlinear recurrences in parallel over time, by Newton's method for all steps at
// once. Each iteration replaces the steps by their tangents at the states of the iteration before, and
// a scan solves the linear recurrence of the tangents. The products of the inputs are those of package
// scan. The gradient is linear, so a single scan computes it, or iterations if it ties several states.
//
// The tangents of a cell with recurrent products would tie all units. There the products of the guess
// count as known, and the cell's own recurrence follows its states from step to step. That is a tangent
// without its slope through the products, as in quasi-DEER, so more iterations are needed.
//
// The answer is right once two iterations agree, which takes few iterations where the recurrence
// contracts and may never happen where it does not. So iterates are kept for the caller to compare:
// see rnn.Plan.Iterates.
//
// References: Lim, Zhu, Selfridge, Kasim. Parallelizing non-linear sequential models over the sequence
// length. 2024. arXiv:2309.12252. Danieli and others. ParaRNN. 2025. arXiv:2510.21450.
package newton

import (
	"fmt"
	"slices"

	"rnnbench/impl/scan"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the newton technique.
type Technique struct{}

func (Technique) Name() string { return "newton" }
func (Technique) Doc() string {
	return "nonlinear recurrences in parallel over time, by Newton's method (Lim et al. 2024)"
}

// withIterations adds the knob of iterations to those of blocks. A tuner does not turn it: how many are
// needed depends on the data.
func withIterations(blocks []knob.Knob) []knob.Knob {
	all := []knob.Knob{{Name: iterations, Doc: "iterations of Newton's method; 0: the fewest that converge, which verifying finds", Values: []int{0}, Min: 0, Max: 1024}}
	for _, k := range blocks {
		if !k.Internal { // package scan's knob alone times scans, which are not those of an iteration
			all = append(all, k)
		}
	}
	return all
}

// Knobs implements rnn.Technique.
func (Technique) Knobs(p rnn.Problem) []knob.Knob {
	return withIterations(scan.Technique{}.Knobs(p))
}

// LaunchedKnobs implements rnn.Launcher.
func (Technique) LaunchedKnobs(p rnn.Problem) []knob.Knob {
	return withIterations(scan.Technique{}.LaunchedKnobs(p))
}

// NormalisesBatch implements rnn.BatchNormaliser.
func (Technique) NormalisesBatch() {}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, k knob.Params) error {
	c := p.Cell
	switch {
	case c.Recurrent == 0 && c.Newton == nil || c.Surrogate != nil:
		return fmt.Errorf("%w: %v is a linear recurrence, which a single scan computes: use scan", schedule.ErrCell, c)
	case c.Newton == nil && (c.Inner > 0 || c.Recurrence == nil):
		return fmt.Errorf("%w: with its recurrent products known, %v is no linear recurrence", schedule.ErrCell, c)
	case p.Projection > 0:
		return fmt.Errorf("%w: its guesses are of states that are not projected", schedule.ErrProjection)
	case p.Calls > 0:
		return fmt.Errorf("%w: only verifying each call would tell how many iterations it takes", schedule.ErrCalls)
	case p.Pass == rnn.Train && c.Newton == nil:
		return fmt.Errorf("%w: the gradient of %v has products at each step, which no scan computes", schedule.ErrCell, c)
	case p.Pass == rnn.Train && c.Newton.Back == nil:
		return fmt.Errorf("%w: the gradient of %v is no linear recurrence", schedule.ErrCell, c)
	}
	if p.Iterations = k[iterations]; p.Iterations == 0 {
		p.Iterations = fewest(p.Problem)
	}
	r := &recurrence{Plan: p, step: c, guessed: []int{c.Through}, layers: make([]layer, p.Reads())}
	if c.Newton != nil {
		r.step, r.guessed = c.Newton.Step, nil
		for i := range c.States {
			r.guessed = append(r.guessed, i)
		}
	}
	return scan.LayOut(p, k, r)
}

// A recurrence runs the steps of layers by Newton's method.
type recurrence struct {
	*rnn.Plan
	step    *cell.Cell // of an iteration
	guessed []int      // the states that an iteration reads of the one before
	layers  []layer
}

// A layer has matrices of its own.
type layer struct {
	iterates [4]*schedule.Matrix // iterates that are not the answer, and then those of the gradient: (F+1)·B × guessed states·H
	carry    *schedule.Matrix    // of an iteration of the gradient: B × states·H
	blocks   []rnn.Block         // of the recurrent weights
	weights  []*schedule.Matrix  // packed, by block
	products *schedule.Matrix    // of the guess and the recurrent weights: F·B × recurrent gates·H
}

// An iterate holds the states of a layer before a block's first step and after each of its steps.
type iterate struct {
	guess schedule.View   // the guessed states, side by side
	state []schedule.View // all states
}

// Forward implements scan.Recurrence. Iterates alternate between two places, so that an iteration reads
// one and writes the other. The last is the answer, in a place of its own if several states are guessed.
func (r *recurrence) Forward(l int, s schedule.Sequence) {
	batch, last, begun := s.Batch(), r.Iterations, r.layers[l].iterates[0] != nil
	if s.Train {
		last++ // the cell itself, which keeps what the gradient reads
	}
	answer := iterate{state: s.State}
	places := [2]iterate{answer, r.place(l, 0, s)} // of iterates an even and an odd number before the last
	if len(r.guessed) == 1 {
		places[0].guess = s.State[r.guessed[0]]
	} else {
		places[0] = r.place(l, 1, s)
	}
	at := func(i int) iterate {
		if i == last {
			return answer
		}
		return places[(last-i)%2]
	}
	for i := max(0, last-2); i < last; i++ {
		r.begin(at(i), s)
	}
	r.Do(0, schedule.Map{Op: cell.Zero, Out: at(0).guess.Band(batch, s.Steps*batch)})
	for i := range r.Iterations {
		step := s
		step.Cell, step.Train, step.Saved, step.State = r.step, false, schedule.View{}, at(i+1).state
		r.Do(0, schedule.Scan{Sequence: step, R: r.known(l, s, at(i).guess.Band(0, s.Steps*batch))})
	}
	if s.Train {
		r.evaluate(s, at(last-1).state)
	}
	if !begun {
		r.compare(answer, at(last-1))
	}
}

// known is what an iteration knows of the states before the steps of s: their guess or, of a cell with
// recurrent products, the products of the guess.
func (r *recurrence) known(l int, s schedule.Sequence, guess schedule.View) schedule.View {
	if r.Cell.Recurrent == 0 {
		return guess
	}
	y := &r.layers[l]
	if y.products == nil {
		y.blocks = r.AllBlocks(true)
		for _, b := range y.blocks {
			w := b.Weights(r.Layer[l].R.All())
			packed := r.Packed(w.String()+"ᵀ", w.Cols, w.Rows)
			r.Do(0, schedule.Pack{Src: w, Dst: packed.All(), Trans: true})
			y.weights = append(y.weights, packed)
		}
		y.products = r.Matrix(fmt.Sprintf("h·R of layer %d", l), s.X.M.Rows, r.Cell.Recurrent*r.Hidden)
	}
	out := y.products.Band(0, guess.Rows)
	for i, b := range y.blocks {
		r.Do(0, schedule.Gemm{A: b.State(guess), B: y.weights[i].All(), C: b.Of(out)})
	}
	return out
}

// compare has the guessed states of all steps in two iterates of a layer compared.
func (r *recurrence) compare(last, before iterate) {
	all := func(v schedule.View) schedule.View {
		return v.M.Band(r.Batch, r.Batches.Before(r.Steps)).Columns(v.Col, v.Cols)
	}
	for _, k := range r.guessed {
		r.Iterates = append(r.Iterates, [2]schedule.View{all(last.state[k]), all(before.state[k])})
	}
}

// place returns one of layer l's places of iterates, for the steps of s.
func (r *recurrence) place(l, which int, s schedule.Sequence) iterate {
	m, first := r.layers[l].iterates[which], s.State[0]
	if m == nil {
		m = r.Matrix(fmt.Sprintf("iterate%d of %s", which, first.M.Name), first.M.Rows, len(r.guessed)*r.Hidden)
		r.layers[l].iterates[which] = m
	}
	place := iterate{guess: m.Band(first.Row, first.Rows), state: slices.Clone(s.State)}
	for i, k := range r.guessed {
		place.state[k] = place.guess.Columns(i*r.Hidden, r.Hidden)
	}
	return place
}

// begin copies the states before the first step of s to a place where they are not.
func (r *recurrence) begin(place iterate, s schedule.Sequence) {
	for _, k := range r.guessed {
		if from := s.State[k]; place.state[k].M != from.M {
			r.Do(0, schedule.Map{Op: cell.Copy, Out: place.state[k].Band(0, s.Batch()), A: from.Band(0, s.Batch())})
		}
	}
}

// evaluate runs the cell once for all steps of s, each from the state before it.
func (r *recurrence) evaluate(s schedule.Sequence, before []schedule.View) {
	rows := s.Steps * s.Batch()
	step := schedule.Cell{Cell: r.Cell, Train: true, X: s.X, BX: s.BX, Peep: s.Peep, Saved: s.Saved}
	if !s.Keep.Empty() {
		step.Keep = s.Keep.Band(0, rows)
	}
	for k, v := range s.State {
		step.Prev = append(step.Prev, before[k].Band(0, rows))
		step.Next = append(step.Next, v.Band(s.Batch(), rows))
	}
	r.Do(0, step)
}

// Backward implements scan.Recurrence.
func (r *recurrence) Backward(l int, s schedule.Sequence, g schedule.SequenceGrad) {
	if r.Cell.Newton.StepBack != nil {
		s, g = r.iterateBack(l, s, g)
	}
	s.Cell = r.Cell.Newton.Back
	r.Do(0, schedule.ScanBackward{Sequence: s, SequenceGrad: g})
}

// iterateBack runs all iterations of the gradient but the last, which writes the gradients of the products as
// well. It returns what the last one reads: behind the states their gradients, as the one before left them.
//
// They are as many as those of the states. The recurrence of the gradient is the transpose of the tangents',
// so the one converges as fast as the other.
func (r *recurrence) iterateBack(l int, s schedule.Sequence, g schedule.SequenceGrad) (schedule.Sequence, schedule.SequenceGrad) {
	y, states, batch, carry := &r.layers[l], s.State, s.Batch(), g.Carry
	begun := y.carry != nil
	if !begun {
		y.carry = r.Matrix(fmt.Sprintf("carry of the gradient of %s", states[0].M.Name), r.Batch, len(states)*r.Hidden)
	}
	at := func(i int) iterate { return r.place(l, 2+i%2, s) }
	from := func(i int) schedule.Sequence { // iteration i
		step := s
		step.Cell, step.State = r.Cell.Newton.StepBack, slices.Concat(states, at(i).state)
		return step
	}
	steps := func(v schedule.View) schedule.View { return v.Band(batch, s.Steps*batch) }
	r.Do(0, schedule.Map{Op: cell.Zero, Out: steps(at(0).guess)})
	for i := range r.Iterations {
		step := schedule.SequenceGrad{DOut: g.DOut, DX: steps(at(i + 1).guess)}
		for k, v := range carry {
			step.Carry = append(step.Carry, y.carry.Band(0, batch).Columns(k*r.Hidden, r.Hidden))
			r.Do(0, schedule.Map{Op: cell.Copy, Out: step.Carry[k], A: v})
		}
		step.Carry = slices.Concat(step.Carry, step.Carry)
		r.Do(0, schedule.ScanBackward{Sequence: from(i), SequenceGrad: step})
	}
	if !begun {
		r.compare(at(r.Iterations), at(r.Iterations-1))
	}
	g.Carry = slices.Concat(carry, carry)
	return from(r.Iterations), g
}
