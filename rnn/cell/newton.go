package cell

import "slices"

// Newton is how a cell without recurrent products runs in parallel over its steps, though its
// recurrence is not linear. All states are guessed, each step is replaced by its tangent at the guess,
// and the linear recurrence of the tangents gives the next guess. This is Newton's method for all steps
// at once, and DEER of Lim et al. (2024, arXiv:2309.12252).
//
// Of several states each is linearised in itself alone, as in quasi-DEER of Gonzalez et al. (2024,
// arXiv:2407.19115). A fixed point is then the same, but the iterations may need more turns to reach it.
type Newton struct {
	// Step is an iteration: a cell with a linear recurrence. R of state s is the guess of that state
	// before the step. It has no training pass.
	Step *Cell

	// Back is the cell whose gradient is scanned: its backward pass composes, and writes the gradients
	// of per-unit weights for each step. nil: no scan computes the gradient.
	Back *Cell

	// StepBack is an iteration of the gradient, if it ties several states; else nil. It is linear, so
	// its tangents are itself: each state's gradient before a step follows from its own after it, and
	// from the guess of the others'. Back does the same, as the last iteration. Both have states more
	// behind the cell's own: the guess of each state's gradient, which is where a state is after the
	// step. DX of StepBack is the next guess.
	StepBack *Cell
}

// newton returns how c runs by Newton's method, or nil where its steps have recurrent products or
// compose anyway. p is c's forward program, each value named once.
func newton(c *Cell, p Program) *Newton {
	if c.Recurrent > 0 || c.Inner > 0 || c.Recurrence != nil || c.Scanned != nil || c.Serial == nil || len(c.Fixed) > 0 {
		return nil
	}
	step := &Cell{
		Name: c.Name + " newton", Doc: "an iteration of Newton's method for " + c.Name, Text: c.Text, Window: 1,
		Gates: c.Gates, Recurrent: len(c.States), States: c.States, Peeps: c.Peeps,
	}
	step.Inference = tangents(p, len(c.States)).compact()
	carried := c.Serial.Carried
	compose, ok := step.Inference.compose(Prev, Next, carried)
	if !ok {
		return nil
	}
	step.Recurrence = &Recurrence{Carried: carried, Inference: step.Inference.inPlace(carried), Compose: compose}
	n := &Newton{Step: step}
	n.backward(c, p)
	return n
}

// backward sets how the gradient of c runs, if scans compute it.
func (n *Newton) backward(c *Cell, p Program) {
	back := complete(Cell{
		Name: c.Name + " gradient", Doc: "part of " + c.Name, Text: c.Text, Gates: c.Gates, Window: c.Window, States: c.States, Peeps: c.Peeps,
	}, func(b *builder) { b.p = p })
	if back.scanBack() {
		n.Back = back
		return
	}
	names := slices.Clone(c.States)
	for _, s := range c.States {
		names = append(names, "gradient of "+s)
	}
	whole := back.Backward
	step := *back
	step.Name, step.Doc, step.Gates, step.guesses = c.Name+" gradient step", "an iteration of the gradient of "+c.Name, c.States, true
	step.States, step.Backward = names, append(gradients(len(c.States)), whole.apart(len(c.States))...).compact()
	back.States, back.Backward = names, append(whole.results(), whole.apart(len(c.States))...).compact()
	if back.scanBack() && step.scanBack() {
		n.Back, n.StepBack = back, &step
	}
}

// scanBack sets the recurrence of c, by which its gradient is scanned. It reports false where the steps
// of the gradient do not compose.
func (c *Cell) scanBack() bool {
	r := inPlace(c)
	compose, ok := c.Backward.compose(DNext, DPrev, r.Carried)
	if ok {
		r.ComposeBackward, c.Recurrence = compose, r
	}
	return ok
}

// gradients copies the gradient of each of so many states after a step to DX.
func gradients(states int) (p Program) {
	for s := range states {
		p = append(p, Instr{Op: Copy, Out: Ref{DX, s}, A: Ref{DNext, s}})
	}
	return p
}

// results returns the part of backward program p that computes all but the gradients of states before the
// step. It leaves those after the step as they are.
func (p Program) results() Program {
	_, writes := p.Vectors()
	temps := p.Temps()
	return p.slice(slices.DeleteFunc(writes, func(r Ref) bool { return r.Kind == DPrev })...).renamed(func(r Ref) Ref {
		if r.Kind == DPrev {
			return Ref{Temp, temps + r.Index}
		}
		return r
	})
}

// apart returns the part of backward program p of a cell of so many states that computes the gradients of
// states before the step. Each state's follows from its own after the step, and from the guess of others'.
func (p Program) apart(states int) (out Program) {
	temps := p.Temps()
	for s := range states {
		result, place := Ref{DPrev, s}, map[Ref]Ref{} // of each value of this state's part
		for i := range states {
			if i != s {
				place[Ref{DNext, i}] = Ref{Next, states + i}
			}
		}
		part := p.slice(result)
		for i, in := range part {
			args := in.Args()
			for k, a := range args {
				if v, ok := place[a]; ok {
					args[k] = v
				}
			}
			in = with(in, args)
			if i < len(part)-1 {
				place[in.Out] = Ref{Temp, temps}
				in.Out = place[in.Out]
				temps++
			}
			out = append(out, in)
		}
	}
	return out
}

// tangents turns the forward program p of a cell of so many states into one that computes its tangent
// at a guess: each next state is f + f'·(h - g), where g is the guess of that state before the step, f
// its new value there, f' its derivative by that state, and h the state before the step.
func tangents(p Program, states int) Program {
	d := linearizer{value: map[Ref]Ref{}, ones: none}
	for s := range states {
		d.value[Ref{Prev, s}] = Ref{R, s}
	}
	for _, in := range p {
		args := in.Args()
		for i, a := range args {
			if v, ok := d.value[a]; ok {
				args[i] = v
			}
		}
		d.value[in.Out] = d.do(with(in, args))
	}
	for s := range states {
		f, slope := d.value[Ref{Next, s}], d.derivative(p, s)
		if slope == none {
			d.p = append(d.p, Instr{Op: Copy, Out: Ref{Next, s}, A: f})
			continue
		}
		apart := d.do(Instr{Op: Sub, A: Ref{Prev, s}, B: Ref{R, s}})
		moved := d.do(Instr{Op: Mul, A: slope, B: apart})
		d.p = append(d.p, Instr{Op: Add, Out: Ref{Next, s}, A: f, B: moved})
	}
	return d.p
}

// A linearizer differentiates a program in forward mode.
type linearizer struct {
	p     Program
	temps int
	value map[Ref]Ref // where each value of the program is
	slope map[Ref]Ref // the derivative of each value that depends on the state; one: 1
	ones  Ref         // a vector of ones, once it is needed
}

// none stands for a derivative of 0, and one for a derivative of 1. No vector holds them.
var none, one = Ref{kinds, 0}, Ref{kinds, 1}

func (d *linearizer) do(in Instr) Ref {
	in.Out = Ref{Temp, d.temps}
	d.temps++
	d.p = append(d.p, in)
	return in.Out
}

// derivative returns the derivative of state s after the step by the same state before it.
func (d *linearizer) derivative(p Program, s int) Ref {
	d.slope = map[Ref]Ref{{Prev, s}: one}
	for _, in := range p.slice(Ref{Next, s}) {
		if slope := d.differentiate(in); slope != none {
			d.slope[in.Out] = slope
		}
	}
	return d.vector(d.of(Ref{Next, s}))
}

// of returns the derivative of a value of the program.
func (d *linearizer) of(v Ref) Ref {
	if slope, ok := d.slope[v]; ok {
		return slope
	}
	return none
}

// vector returns slope as a vector that programs can read.
func (d *linearizer) vector(slope Ref) Ref {
	if slope != one {
		return slope
	}
	if d.ones == none {
		d.ones = d.do(Instr{Op: Const, Value: 1})
	}
	return d.ones
}

// times returns a slope times a value.
func (d *linearizer) times(slope, value Ref) Ref {
	switch slope {
	case none:
		return none
	case one:
		return value
	}
	return d.do(Instr{Op: Mul, A: slope, B: value})
}

// sum returns the sum of two slopes, or their difference.
func (d *linearizer) sum(a, b Ref, op Op) Ref {
	switch {
	case b == none:
		return a
	case a == none && op == Sub:
		return d.do(Instr{Op: Neg, A: d.vector(b)})
	case a == none:
		return b
	}
	return d.do(Instr{Op: op, A: d.vector(a), B: d.vector(b)})
}

// differentiate returns the derivative of what in computes, or none.
func (d *linearizer) differentiate(in Instr) Ref {
	slopes, values := [2]Ref{none, none}, [2]Ref{}
	for i, a := range in.Args() {
		slopes[i], values[i] = d.of(a), a
		if v, ok := d.value[a]; ok {
			values[i] = v
		}
	}
	out := d.value[in.Out]
	if slopes == [2]Ref{none, none} {
		return none
	}
	through := func(gradient Op) Ref { return d.do(Instr{Op: gradient, A: d.vector(slopes[0]), B: out}) }
	switch in.Op {
	case Copy:
		return slopes[0]
	case Neg, OneMinus:
		return d.do(Instr{Op: Neg, A: d.vector(slopes[0])})
	case Add, Sub:
		return d.sum(slopes[0], slopes[1], in.Op)
	case Mul:
		return d.sum(d.times(slopes[0], values[1]), d.times(slopes[1], values[0]), Add)
	case Div:
		above := d.sum(slopes[0], d.times(slopes[1], out), Sub)
		return d.do(Instr{Op: Div, A: d.vector(above), B: values[1]})
	case Exp:
		return d.times(slopes[0], out)
	case Sigmoid:
		return through(SigmoidGrad)
	case Tanh:
		return through(TanhGrad)
	case ReLU:
		return through(ReLUGrad)
	case ReLUGrad: // in.A is chosen, or not, by in.B
		if slopes[0] == none {
			return none
		}
		return d.do(Instr{Op: ReLUGrad, A: d.vector(slopes[0]), B: values[1]})
	case Softplus:
		return through(SoftplusGrad)
	case Sqrt:
		return through(SqrtGrad)
	}
	panic("cell: no derivative of " + in.Op.String())
}

// parts lists the cells of n that schedules can hold.
func (n *Newton) parts() []*Cell {
	return slices.DeleteFunc([]*Cell{n.Step, n.Back, n.StepBack}, func(c *Cell) bool { return c == nil })
}
