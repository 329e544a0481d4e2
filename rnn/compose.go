package rnn

import (
	"cmp"
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

// A Bypasser is a technique that lays out shortcuts, convolutions, transcripts and fully connected layers
// itself, or declines them. All others lay out only layers without them: see compose.
type Bypasser interface {
	Technique
	Bypasses()
}

// directs reports whether t lays out the direction of p itself.
func directs(t Technique, p Problem) bool {
	d, some := t.(Director)
	return p.Direction == FromFirst || some && d.Directs(p.Direction)
}

// composed reports whether t lays out p stack by stack.
func composed(t Technique, p Problem) bool {
	_, bypasses := t.(Bypasser)
	return !directs(t, p) || (p.Skip > 0 || p.Lookahead > 0 || p.Transcript > 0 || p.Dense > 0 || p.Conv != "") && !bypasses
}

// canTurn declines p if t cannot be composed for its direction.
func canTurn(t Technique, p Problem) error {
	if !directs(t, p) && p.Batch > MaxSymbols {
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
	if carry && p.Lookahead > 0 {
		return fmt.Errorf("rnn: %w: lookahead is %d steps, but those after a minibatch are not known yet, so no states can go on to the next: set lookahead to none", schedule.ErrLookahead, p.Lookahead)
	}
	if carry && p.Conv != "" {
		return fmt.Errorf("rnn: %w: convolutions read steps after a minibatch, which are not known yet, so no states can go on to the next: set conv to none", schedule.ErrInput)
	}
	if carry && p.Lengths != "" {
		return fmt.Errorf("rnn: %w: lengths are %.60v, so no states can go on from one minibatch to the next: set lengths to full", schedule.ErrLengths, p.Lengths)
	}
	return nil
}

// A stack is consecutive layers that read the same way. Its plan is that of a network of its own,
// which reads from the first step. Where the technique directs both ways itself, a stack has both.
type stack struct {
	*Plan
	number        int // of its first layer, of Problem.Reads
	backwards     bool
	column, width int // of its output, beside the other stacks of its level
	stream, among int // its own streams: see schedule.Builder.Within

	forward, backward int // sections
}

// within makes the operations and matrices that follow part of the stack.
func (s *stack) within() {
	s.Within(s.stream, s.among, fmt.Sprintf(" of stack %d", s.number))
}

// of narrows the output of a level, or its gradient, to that of the stack.
func (s *stack) of(v schedule.View) schedule.View { return v.Columns(s.column, s.width) }

// A level is the stacks of the same layers, which lie side by side.
type level struct {
	stacks []*stack

	// y is what the level gives to the one above, T·B × Out in the order of steps: outputs side by side,
	// with what a shortcut adds. dy is its gradient. Without a y, others read the outputs of the stacks.
	y, dy *schedule.Matrix

	ahead *RowConvolution // behind the level, within its shortcut; nil: none

	from int // the lowest level that the shortcut passes by which ends here; -1: none ends here
	to   int // the highest level that the shortcut passes by which begins below; -1: none begins there
}

// plain reports whether the outputs of a level, and their gradients, need no flip and no join.
func (v *level) plain() bool { return len(v.stacks) == 1 && !v.stacks[0].backwards }

// A composer makes a network of stacks.
type composer struct {
	*Plan
	side   int      // stacks of a level
	levels []*level // from the bottom
	order  []int    // of sections
}

// compose lays out consecutive layers as a network of its own, by t, if they read the same way and no
// shortcut begins or ends between them. Rows that pass between stacks of opposite ways are flipped: put
// in the opposite order of steps. A flip is a look-up of rows by a constant index. It is its own inverse,
// so its gradient is a flip too.
//
// All stacks' forward passes come first, then the output layer, then the backward passes from the
// top. A technique appends both passes of a stack at once, so the sections are rearranged in the
// end.
func compose(p *Plan, t Technique, k knob.Params) error {
	c := &composer{Plan: p, side: p.Ways()}
	turns := !directs(t, p.Problem)
	if !turns {
		c.side = 1
	}
	c.layout(turns)
	for i, v := range c.levels {
		for _, s := range v.stacks {
			c.section(func() { c.input(i, s) })
		}
		for _, s := range v.stacks {
			if err := c.stack(s, t, k); err != nil {
				return err
			}
		}
		if v.y != nil {
			c.section(func() { c.join(v) })
		}
	}
	c.section(c.output)
	forward := len(c.order)
	if p.Pass == Train {
		c.back()
	}
	p.Within(0, 0, "")
	p.Arrange(c.order, forward)
	return nil
}

// back lays out the backward passes.
func (c *composer) back() {
	for i := len(c.levels) - 1; i >= 0; i-- {
		v := c.levels[i]
		if v.dy != nil && v.dy != c.Top() {
			c.section(func() {
				c.Within(0, 0, "")
				c.sum(v.dy.All(), false, c.gradients(i+1))
			})
		}
		for _, s := range v.stacks {
			c.section(func() { c.above(i, s) })
		}
		for _, s := range v.stacks {
			c.order = append(c.order, s.backward)
		}
	}
	if c.DX != nil && c.DX != c.levels[0].stacks[0].DX {
		c.section(func() {
			c.Within(0, 0, "")
			c.sum(c.DX.All(), false, c.gradients(0))
		})
	}
}

// layout makes the stacks, with the matrices between them. turns says that they may read opposite ways.
func (c *composer) layout(turns bool) {
	rows := c.Batches.Before(c.Steps)
	if turns {
		flips := rows
		if c.Batches.Even() {
			flips = flipSteps(c.Steps, c.Batch, MaxSymbols) * c.Batch
		}
		c.flip = c.Matrix("flip", flips, 1)
	}
	single := turns && c.Direction != FromLast // each layer reads another way than the one below
	begins := map[int]int{}                    // the level of each layer that is the lowest of one
	streams := c.Streams()
	for l := 0; l < c.Layers; {
		layers := c.Layers - l
		if single {
			layers = 1
		}
		if c.Skip > 0 {
			layers = min(layers, c.Skip-l%c.Skip)
		}
		v := &level{from: -1, to: -1}
		for w := range c.side {
			s := c.stackOf(l*c.Ways()+w, layers, turns)
			s.width = c.Out() / c.side
			s.column, s.among = w*s.width, streams
			if c.side > 1 && streams > 1 {
				half := (streams + 1) / 2
				s.stream, s.among = w*half, []int{half, streams - half}[w]
			}
			v.stacks = append(v.stacks, s)
		}
		begins[l] = len(c.levels)
		c.levels = append(c.levels, v)
		l += layers
		v.ahead = c.Layer[l*c.Ways()-1].Ahead
		if first, ok := ShortcutTo(c.Problem, l-1); ok {
			v.from = begins[first]
			c.levels[v.from].to = len(c.levels) - 1
		}
	}
	for i, v := range c.levels {
		for _, s := range v.stacks {
			s.within()
			c.between(i, s)
		}
		c.Within(0, 0, "")
		c.joint(i)
		for _, s := range v.stacks {
			s.within()
			c.gradientOf(i, s)
		}
	}
	c.Within(0, 0, "")
}

// stackOf makes a stack of the given number of layers. number is its first layer, counted as in Problem.Reads.
func (c *composer) stackOf(number, layers int, turns bool) *stack {
	q := c.Problem
	q.Layers, q.Skip, q.Lookahead = layers, 0, 0
	if turns {
		q.Direction = FromFirst
	}
	q.Output, q.Groups, q.Weighted, q.Transcript, q.Dense, q.Symbols, q.Embedding = 0, 0, false, 0, 0, 0, 0
	if number >= c.Ways() {
		q.Input, q.OneHot = c.Out(), false
	} else {
		q.Input = c.Width(0)
	}
	q.Conv = ""
	backwards := turns && c.Backwards(number)
	plan := &Plan{Matrices: Matrices{Problem: q, Batches: c.Batches, uneven: c.uneven, resets: c.resets, turned: backwards}, Builder: c.Builder, hosted: c.hosted}
	for i := range q.Reads() {
		plan.Layer = append(plan.Layer, c.Layer[number+i*c.side])
	}
	return &stack{Plan: plan, number: number, backwards: backwards}
}

// between makes the matrices that a stack of level i reads, and that of its input's gradient.
func (c *composer) between(i int, s *stack) {
	rows := c.Batches.Before(c.Steps)
	switch {
	case i == 0 && !s.backwards:
		s.X = c.X
	case i > 0 && !s.backwards && c.levels[i-1].y != nil:
		s.X = c.levels[i-1].y
	default:
		s.X = c.Matrix("x", rows, s.Problem.Given())
	}
	s.Given = s.X
	switch {
	case c.Pass != Train || s.OneHot:
	case i == 0 && c.levels[0].plain() && c.levels[0].to < 0:
		s.DX = c.DX
	default:
		s.DX = c.Matrix("dx", rows, s.Input)
	}
}

// joint makes the output of level i and its gradient, where they do not lie in the stacks alone.
func (c *composer) joint(i int) {
	v, top, rows := c.levels[i], i == len(c.levels)-1, c.Batches.Before(c.Steps)
	switch {
	case top && v.plain() && v.from < 0 && v.ahead == nil:
		return
	case top:
		v.y, v.dy = c.Matrix("y", rows, c.Out()), c.Top()
	case v.from >= 0 || v.ahead != nil || c.levels[i+1].to >= 0:
		v.y = c.Matrix(fmt.Sprintf("y of level %d", i), rows, c.Out())
		v.dy = matrixIf(c.Plan, c.Pass == Train, fmt.Sprintf("dy of level %d", i), rows, c.Out())
	}
}

// gradientOf makes that of the output of a stack of level i.
func (c *composer) gradientOf(i int, s *stack) {
	v := c.levels[i]
	switch {
	case c.Pass != Train:
	case v.ahead != nil:
		s.DY = c.Matrix("dy", c.Batches.Before(c.Steps), s.width)
	case v.plain() && v.dy != nil:
		s.DY = v.dy
	case v.plain() && i == len(c.levels)-1:
		s.DY = c.Top()
	default:
		s.DY = c.Matrix("dy", c.Batches.Before(c.Steps), s.width)
	}
}

// section appends a section by f, and puts it next in order.
func (c *composer) section(f func()) {
	c.order = append(c.order, c.Cut())
	f()
}

// all appends operations to the present section.
func (c *composer) all(ops []schedule.Op) {
	for _, op := range ops {
		c.Do(0, op)
	}
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
	case i == 0 || c.levels[i-1].y != nil:
		if s.backwards {
			c.bring(s.X.All(), c.reads(i), true)
		}
	default:
		for _, q := range c.levels[i-1].stacks {
			c.bring(q.of(s.X.All()), q.Outputs(0, c.Steps), q.backwards != s.backwards)
		}
	}
}

// reads is what level i reads, in the order of steps. The level below has a y.
func (c *composer) reads(i int) schedule.View {
	if i == 0 {
		return c.X.All()
	}
	return c.levels[i-1].y.All()
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
		return fmt.Errorf("%w: direction %v, skip=%d, lookahead=%d, transcript=%d, dense=%d and conv=%s take a technique that lays out layers one by one", schedule.ErrDirection, c.Direction, c.Skip, c.Lookahead, c.Transcript, c.Dense, cmp.Or(c.Conv, "none"))
	case s.Part:
		return fmt.Errorf("%w: part of a pass is timed alone only where all layers read from the first step, without shortcuts, row convolutions, convolutions, transcripts and a fully connected layer, not in direction %v with skip=%d, lookahead=%d, transcript=%d, dense=%d and conv=%s", schedule.ErrKnob, c.Direction, c.Skip, c.Lookahead, c.Transcript, c.Dense, cmp.Or(c.Conv, "none"))
	}
	for l, y := range s.Layer { // with the matrices that the technique has replaced or added
		c.Layer[s.number+l*c.side] = y
	}
	c.UnitError = max(c.UnitError, s.UnitError)
	c.Iterations, c.Iterates = s.Iterations, append(c.Iterates, s.Iterates...)
	c.order = append(c.order, s.forward)
	return nil
}

// join forms y of a level: the outputs of its stacks, or their row convolution, and what the shortcut adds
// that ends there.
func (c *composer) join(v *level) {
	for _, s := range v.stacks {
		s.within()
		to, out := s.of(v.y.All()), s.Outputs(0, c.Steps)
		if v.ahead != nil {
			c.all(v.ahead.Forward(to, out))
			out = to
		} else if v.from < 0 || s.backwards { // a flip cannot add
			c.bring(to, out, s.backwards)
			out = to
		}
		if v.from >= 0 {
			c.Do(0, schedule.Map{Op: cell.Add, Out: to, A: out, B: s.of(c.reads(v.from))})
		}
	}
}

// output runs the output layer.
func (c *composer) output() {
	if top := c.levels[len(c.levels)-1]; top.y != nil {
		c.Y = top.y.All()
	} else {
		c.Y = top.stacks[0].Outputs(0, c.Steps)
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

// A summand is one of the matrices whose sum is a gradient.
type summand struct {
	view      schedule.View
	backwards bool // the last step comes first
}

// gradients lists the parts of the gradient of what level i reads: one for each of its stacks, and one
// for the shortcut that begins there.
func (c *composer) gradients(i int) []summand {
	v := c.levels[i]
	var parts []summand
	for _, s := range v.stacks {
		parts = append(parts, summand{s.DX.All(), s.backwards})
	}
	if v.to >= 0 {
		parts = append(parts, summand{c.levels[v.to].dy.All(), false})
	}
	return parts
}

// above forms the gradient of the output of a stack of level i.
func (c *composer) above(i int, s *stack) {
	s.within()
	switch v := c.levels[i]; {
	case v.ahead != nil:
		c.all(v.ahead.Backward(s.DY.All(), v.dy.All()))
	case v.dy != nil:
		if s.DY != v.dy {
			c.bring(s.DY.All(), s.of(v.dy.All()), s.backwards)
		}
	case i < len(c.levels)-1:
		parts := c.gradients(i + 1)
		for k := range parts {
			parts[k].view = s.of(parts[k].view)
		}
		c.sum(s.DY.All(), s.backwards, parts)
	}
}

// sum adds up parts into to. backwards is the order of to's rows. Parts of the opposite order come
// first, since a flip cannot add.
func (c *composer) sum(to schedule.View, backwards bool, parts []summand) {
	var all []schedule.View
	for _, p := range parts {
		if p.backwards != backwards {
			c.bring(to, p.view, true)
			all = append(all, to)
		}
	}
	for _, p := range parts {
		if p.backwards == backwards {
			all = append(all, p.view)
		}
	}
	if len(all) == 1 && all[0] != to {
		c.bring(to, all[0], false)
	}
	for _, v := range all[1:] {
		c.Do(0, schedule.Map{Op: cell.Add, Out: to, A: all[0], B: v})
		all[0] = to
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
