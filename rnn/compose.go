package rnn

import (
	"errors"
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Director is a technique that lays out layers of some directions itself, or declines them. All
// other techniques lay out only layers that read from the first step: see compose.
type Director interface {
	Technique
	Directs(Direction) bool
}

// composed reports whether t lays out p stack by stack.
func composed(t Technique, p Problem) bool {
	d, some := t.(Director)
	return p.Direction != FromFirst && !(some && d.Directs(p.Direction))
}

// canTurn declines p if t cannot be composed for its direction.
func canTurn(t Technique, p Problem) error {
	if composed(t, p) && p.Batch > MaxSymbols {
		return fmt.Errorf("%w: direction %v orders at most %d sequences, not %d", schedule.ErrDirection, p.Direction, MaxSymbols, p.Batch)
	}
	return nil
}

// canCarry declines what programs with their own data cannot do. They draw no resets. States carry
// over from run to run only if layers begin at the first step and all sequences have all steps.
func canCarry(p Problem, carry bool) error {
	if p.Resets > 0 {
		return fmt.Errorf("rnn: %w: resets are %d%%, but a program that trains or runs on its own data has none: set resets to none", schedule.ErrResets, p.Resets)
	}
	if carry && p.Direction != FromFirst {
		return fmt.Errorf("rnn: %w: direction %v begins at the last step, so no states can go on from one minibatch to the next", schedule.ErrDirection, p.Direction)
	}
	if carry && p.Lengths != "" {
		return fmt.Errorf("rnn: %w: lengths are %.60v, so no states can go on from one minibatch to the next: set lengths to full", schedule.ErrLengths, p.Lengths)
	}
	return nil
}

// A stack is consecutive layers that read the same way. Its plan is that of a network of its own,
// which reads from the first step.
type stack struct {
	*Plan
	number        int // of its first layer, of Problem.Reads
	backwards     bool
	column        int // of its output, beside the other stacks of its level
	stream, among int // its own streams: see schedule.Builder.Within

	forward, backward int // sections
}

// within makes the operations and matrices that follow part of the stack.
func (s *stack) within() {
	s.Within(s.stream, s.among, fmt.Sprintf(" of stack %d", s.number))
}

// A composer makes a network of stacks. A level is the stacks that lie side by side.
type composer struct {
	*Plan
	levels [][]*stack // from the bottom
	order  []int      // of sections
}

// compose lays out each run of layers that read the same way as a network of its own, by t. Rows
// that pass between stacks of opposite ways are flipped: put in the opposite order of steps. A flip
// is a look-up of rows by a constant index. It is its own inverse, so its gradient is a flip too.
//
// All stacks' forward passes come first, then the output layer, then the backward passes from the
// top. A technique appends both passes of a stack at once, so the sections are rearranged in the
// end.
func compose(p *Plan, t Technique, k knob.Params) error {
	c := &composer{Plan: p}
	c.layout()
	for i, level := range c.levels {
		for _, s := range level {
			c.section(func() { c.input(i, s) })
		}
		for _, s := range level {
			if err := c.stack(s, t, k); err != nil {
				return err
			}
		}
	}
	c.section(c.output)
	forward := len(c.order)
	if p.Pass == Train {
		for i := len(c.levels) - 1; i >= 0; i-- {
			for _, s := range c.levels[i] {
				c.section(func() { c.above(i, s) })
			}
			for _, s := range c.levels[i] {
				c.order = append(c.order, s.backward)
			}
		}
		if p.DX != nil {
			c.section(c.below)
		}
	}
	p.Within(0, 0, "")
	p.Arrange(c.order, forward)
	return nil
}

// layout makes the stacks, with the matrices between them.
func (c *composer) layout() {
	rows, h := c.Batches.Before(c.Steps), Emits(c.Problem)
	flips := rows
	if c.Batches.Even() {
		flips = flipSteps(c.Steps, c.Batch, MaxSymbols) * c.Batch
	}
	c.flip = c.Matrix("flip", flips, 1)
	layers := 1
	if c.Direction == FromLast {
		layers = c.Layers
	}
	ways, streams := c.Ways(), c.Streams()
	for l := 0; l < c.Layers; l += layers {
		var level []*stack
		for w := range ways {
			s := c.stackOf(l*ways+w, layers)
			s.column, s.among = w*h, streams
			if ways > 1 && streams > 1 {
				half := (streams + 1) / 2
				s.stream, s.among = w*half, []int{half, streams - half}[w]
			}
			level = append(level, s)
		}
		c.levels = append(c.levels, level)
	}
	for i, level := range c.levels {
		for _, s := range level {
			s.within()
			c.between(i, s)
		}
	}
	c.Within(0, 0, "")
	if !c.plain(c.levels[len(c.levels)-1]) {
		c.Y = c.Matrix("y", rows, c.Out()).All()
	}
}

// stackOf makes a stack of the given number of layers. number is its first layer, counted as in Problem.Reads.
func (c *composer) stackOf(number, layers int) *stack {
	q := c.Problem
	q.Direction, q.Layers = FromFirst, layers
	q.Output, q.Groups, q.Weighted, q.Symbols, q.Embedding = 0, 0, false, 0, 0
	if number >= c.Ways() {
		q.Input, q.OneHot = c.Out(), false
	}
	ways := c.Ways()
	plan := &Plan{Matrices: Matrices{Problem: q, Batches: c.Batches, uneven: c.uneven, resets: c.resets, turned: c.Backwards(number)}, Builder: c.Builder, hosted: c.hosted}
	for l := range layers {
		plan.Layer = append(plan.Layer, c.Layer[number+l*ways])
	}
	return &stack{Plan: plan, number: number, backwards: c.Backwards(number)}
}

// plain reports whether a level's outputs, and their gradients, need no flip and no join.
func (c *composer) plain(level []*stack) bool { return len(level) == 1 && !level[0].backwards }

// between makes the matrices that a stack of level i reads, and those of its gradients.
func (c *composer) between(i int, s *stack) {
	rows, train := c.Batches.Before(c.Steps), c.Pass == Train
	s.X = c.X
	if i > 0 || s.backwards {
		s.X = c.Matrix("x", rows, s.Problem.Given())
	}
	s.Given = s.X
	if !train {
		return
	}
	if !s.OneHot {
		s.DX = c.Matrix("dx", rows, s.Input)
	}
	if s.DY = c.Top(); i < len(c.levels)-1 || !c.plain(c.levels[i]) {
		s.DY = c.Matrix("dy", rows, Emits(c.Problem))
	}
}

// section appends a section by f, and puts it next in order.
func (c *composer) section(f func()) {
	c.order = append(c.order, c.Cut())
	f()
}

// bring copies from's rows to to's, flipped or as they are.
func (c *composer) bring(to, from schedule.View, flipped bool) {
	if !flipped {
		c.Do(0, schedule.Map{Op: cell.Copy, Out: to, A: from})
		return
	}
	most := c.flip.Rows
	for at := 0; at < to.Rows; at += most {
		n := min(most, to.Rows-at)
		c.Do(0, schedule.Gather{Index: c.flip.Band(most-n, n), Table: from.Band(to.Rows-at-n, n), Out: to.Band(at, n)})
	}
}

// flipSteps is the number of steps, at most steps, that one look-up flips. Its index is a float32,
// which counts exactly only up to most. More steps are flipped part by part, each from the band of
// the table that holds its rows. The last rows of the index flip fewer steps.
func flipSteps(steps, batch, most int) int { return min(steps, most/batch) }

// flipIndex maps each row to that of the same sequence at the opposite step.
func flipIndex(steps, batch int) []float32 {
	index := make([]float32, steps*batch)
	for row := range index {
		index[row] = float32((steps-1-row/batch)*batch + row%batch)
	}
	return index
}

// input forms the input of a stack of level i.
func (c *composer) input(i int, s *stack) {
	s.within()
	switch {
	case i > 0:
		for _, q := range c.levels[i-1] {
			c.bring(s.X.All().Columns(q.column, Emits(c.Problem)), q.Outputs(0, c.Steps), q.backwards != s.backwards)
		}
	case s.backwards:
		c.bring(s.X.All(), c.X.All(), true)
	}
}

// stack lays s out by t.
func (c *composer) stack(s *stack, t Technique, k knob.Params) error {
	s.within()
	s.forward = c.Cut()
	s.backward = s.forward + 1
	if err := t.Plan(s.Plan, k); err != nil {
		return err
	}
	passes := 1
	if c.Pass == Train {
		passes = 2
	}
	switch {
	case c.Sections()-s.forward != passes:
		return fmt.Errorf("%w: direction %v takes a technique that lays out layers one by one", schedule.ErrDirection, c.Direction)
	case s.Part:
		return fmt.Errorf("%w: part of a pass is timed alone only where all layers read from the first step, not in direction %v", schedule.ErrKnob, c.Direction)
	}
	for l, y := range s.Layer { // with the matrices that the technique has replaced or added
		c.Layer[s.number+l*c.Ways()] = y
	}
	c.UnitError = max(c.UnitError, s.UnitError)
	c.Iterations, c.Iterates = s.Iterations, append(c.Iterates, s.Iterates...)
	c.order = append(c.order, s.forward)
	return nil
}

// output joins the outputs of the last level and runs the output layer.
func (c *composer) output() {
	top := c.levels[len(c.levels)-1]
	if c.plain(top) {
		c.Y = top[0].Outputs(0, c.Steps)
	} else {
		for _, s := range top {
			s.within()
			c.bring(c.Y.Columns(s.column, Emits(c.Problem)), s.Outputs(0, c.Steps), s.backwards)
		}
	}
	c.Within(0, 0, "")
	if c.Head == nil {
		return
	}
	c.OutputLayer(0)
	if c.Pass == Train {
		c.OutputGradient(0)
	}
}

// above forms the gradient of the output of a stack of level i: the sum over the stacks that read it.
func (c *composer) above(i int, s *stack) {
	s.within()
	if i == len(c.levels)-1 {
		if !c.plain(c.levels[i]) {
			c.bring(s.DY.All(), c.Top().All().Columns(s.column, Emits(c.Problem)), s.backwards)
		}
		return
	}
	readers := c.levels[i+1]
	c.sum(s.DY.All(), readers, s.backwards, func(r *stack) schedule.View { return r.DX.All().Columns(s.column, Emits(c.Problem)) })
}

// below sums the gradients of the input.
func (c *composer) below() {
	c.Within(0, 0, "")
	c.sum(c.DX.All(), c.levels[0], false, func(r *stack) schedule.View { return r.DX.All() })
}

// sum adds up a view of each stack of from into to; of selects the view. backwards is the order of
// to's rows. Stacks of the opposite way come first, since a flip cannot add.
func (c *composer) sum(to schedule.View, from []*stack, backwards bool, of func(*stack) schedule.View) {
	begun := false
	for _, flipped := range []bool{true, false} {
		for _, s := range from {
			switch {
			case (s.backwards != backwards) != flipped:
			case begun:
				c.Do(0, schedule.Map{Op: cell.Add, Out: to, A: to, B: of(s)})
			default:
				c.bring(to, of(s), flipped)
				begun = true
			}
		}
	}
}

// WriteConstants writes the constants that the plan's operations read. These are the index by which
// rows are put in the opposite order of steps, others where sequences have lengths of their own, and
// zeros where changes of iterations are kept. Plan.Write calls it.
func WriteConstants(p *Plan, mem Memory) error {
	write := func(m *schedule.Matrix, values func() []float32) error {
		if m == nil {
			return nil
		}
		return mem.Write(m, values())
	}
	err := write(p.flip, func() []float32 {
		if p.Batches.Even() {
			return flipIndex(p.flip.Rows/p.Batch, p.Batch)
		}
		return p.Batches.flip()
	})
	err = errors.Join(err, write(p.changes, func() []float32 { return make([]float32, p.changes.Elements()) }))
	if u := p.uneven; u != nil {
		err = errors.Join(err, write(u.priors, p.Batches.priors), write(u.weight, p.Batches.weights))
	}
	return err
}

// reverseBlocks puts blocks of so many values in the opposite order.
func reverseBlocks[F float32 | float64](values []F, block int) {
	for i, j := 0, len(values)-block; i < j; i, j = i+block, j-block {
		for k := range block {
			values[i+k], values[j+k] = values[j+k], values[i+k]
		}
	}
}
