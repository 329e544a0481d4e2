package cell

import (
	"fmt"
	"slices"
)

// A step of a cell with inner gates has two recurrent products, and the second multiplies a value
// that depends on the first: R·(r∘h). So its program is cut in two halves, with the second product
// between them. Each half is a cell, and devices run it as they run any other.
//
// The first half computes the inner value and nothing else. What it computes and the second half
// reads is passed. Both halves have the gates and peepholes of the whole, and its states, with the
// passed values behind them. Each uses only some of its states. In the first half, Next 0 is the
// inner value, and DOut its gradient; DNext of a state before the step is its gradient as the second
// half left it. A passed value is Next in the first half and Prev in the second.
//
// In programs of the whole, passed values are saved ones. They follow those that the first half
// saves for itself.

// Outer is the number of gates, the first ones, whose recurrent product multiplies the state Through.
func (c *Cell) Outer() int { return c.Recurrent - c.Inner }

// Multiplied is the number of gates that have rows in R.
func (c *Cell) Multiplied() int {
	if c.Normalised {
		return c.Outer()
	}
	return c.Recurrent
}

// Passed is the number of values that the first half of c passes to the second.
func (c *Cell) Passed() int {
	if c.First == nil {
		return 0
	}
	return len(c.First.States) - len(c.States)
}

// ForwardParts cuts a forward program of c, training or not, where the inner value is known. The
// second part is empty where there are no inner gates.
func (c *Cell) ForwardParts(p Program) (first, second Program) {
	if c.First == nil {
		return p, nil
	}
	n := len(c.First.Forward)
	return p[:n], p[n:]
}

// BackwardParts cuts the backward program of c where the gradient of the inner value must be known.
// The second part is empty where there are no inner gates.
func (c *Cell) BackwardParts() (first, second Program) {
	if c.Second == nil {
		return c.Backward, nil
	}
	n := len(c.Second.Backward)
	return c.Backward[:n], c.Backward[n:]
}

// Uses reports whether c's programs read or write r.
func (c *Cell) Uses(r Ref) bool {
	uses := func(in Instr) bool { return in.Out == r || slices.Contains(in.Args(), r) }
	return slices.ContainsFunc(c.Forward, uses) || slices.ContainsFunc(c.Backward, uses)
}

// renamed returns p with other names of its values.
func (p Program) renamed(name func(Ref) Ref) Program {
	out := slices.Clone(p)
	for i := range out {
		in := &out[i]
		in.Out, in.A, in.B = name(in.Out), name(in.A), name(in.B)
	}
	return out
}

// A division is the forward program of a cell with inner gates, cut in two.
type division struct {
	first, second Program
	own           int // values that the first half saves for itself
	passed        int // those that it passes, which are saved next
	saved         int // all
}

// divide cuts p, the forward program of c, in which each value is named once.
func divide(c *Cell, p Program) (d division) {
	first, passed := map[Ref]bool{}, map[Ref]bool{} // values
	for _, in := range p.slice(Ref{Inner, 0}) {
		first[in.Out] = true
		passed[in.Out] = in.Out.Kind == Next // the second half writes all states
	}
	for _, in := range p {
		for _, a := range in.Args() {
			passed[a] = passed[a] || first[a] && !first[in.Out]
		}
	}
	place := map[Ref]Ref{}
	save := func(where func(Ref) bool) (n int) {
		for _, in := range p {
			if where(in.Out) {
				place[in.Out] = Ref{Saved, len(place)}
				n++
			}
		}
		return n
	}
	d.own = save(func(v Ref) bool { return v.Kind == Saved && first[v] && !passed[v] })
	d.passed = save(func(v Ref) bool { return passed[v] })
	d.saved = d.own + d.passed + save(func(v Ref) bool { return v.Kind == Saved && !first[v] })
	name := func(v Ref) Ref {
		if to, ok := place[v]; ok {
			return to
		}
		return v
	}
	var states Program
	for _, in := range p {
		q := in
		q.Out, q.A, q.B = name(in.Out), name(in.A), name(in.B)
		switch {
		case !first[in.Out]:
			d.second = append(d.second, q)
		case in.Out.Kind == Inner:
			q.Out = in.Out
			if d.first = append(d.first, q); passed[in.Out] {
				d.first = append(d.first, Instr{Op: Copy, Out: name(in.Out), A: in.Out})
			}
		default:
			if d.first = append(d.first, q); in.Out.Kind == Next {
				states = append(states, Instr{Op: Copy, Out: in.Out, A: q.Out})
			}
		}
	}
	d.second = append(d.second, states...)
	d.check(c)
	return d
}

// check panics where the halves of c cannot run one after the other.
func (d division) check(c *Cell) {
	if len(d.first) == 0 || c.Inner > c.Recurrent {
		panic(fmt.Sprintf("cell: %s has %d inner gates: it needs as many recurrent gates, and an inner value", c.Name, c.Inner))
	}
	for _, in := range d.second {
		if in.Out.Kind == Next && in.Op == Copy && slices.Contains(c.Fixed, in.Out.Index) {
			panic(fmt.Sprintf("cell: the inner value of %s depends on the fixed state %s", c.Name, c.States[in.Out.Index]))
		}
	}
	reads, _ := d.first.Vectors()
	again, _ := d.second.Vectors()
	for _, r := range reads {
		switch r.Kind {
		case R, BR:
			if r.Index >= c.Outer() {
				panic(fmt.Sprintf("cell: the inner value of %s depends on its own product", c.Name))
			}
			fallthrough
		case X, BX:
			if slices.Contains(again, r) {
				panic(fmt.Sprintf("cell: %s reads %v both before and after its inner value", c.Name, r))
			}
		}
	}
}

// completeInner completes a cell with inner gates from its forward program.
func completeInner(c *Cell, p Program) {
	d := divide(c, p)
	whole := slices.Concat(d.first, d.second)
	c.Saved, c.Forward, c.Inference = d.saved, whole.compact(), whole.inference().compact()
	n := len(c.States)
	pass := func(kind Kind) func(Ref) Ref {
		return func(r Ref) Ref {
			switch {
			case r.Kind == Inner:
				return Ref{Next, 0}
			case r.Kind == Saved && r.Index >= d.own+d.passed:
				r.Index -= d.own + d.passed
			case r.Kind == Saved && r.Index >= d.own:
				return Ref{kind, n + r.Index - d.own}
			}
			return r
		}
	}
	half := func(name string, recurrent, saved int) *Cell {
		h := &Cell{
			Name: c.Name + " " + name, Half: true, Normalised: c.Normalised, Doc: "part of " + c.Name, Text: c.Text, Gates: c.Gates, Window: c.Window, Recurrent: recurrent, Through: c.Through,
			States: slices.Clone(c.States), Fixed: c.Fixed, Peeps: c.Peeps, Saved: saved, sums: true,
		}
		for i := range d.passed {
			h.States = append(h.States, fmt.Sprintf("passed %d", i))
		}
		return h
	}
	c.First, c.Second = half("before", c.Outer(), d.own), half("after", c.Recurrent, d.saved-d.own-d.passed)
	c.First.whole = n
	first, second := d.first.renamed(pass(Next)), d.second.renamed(pass(Prev))
	for {
		c.Second.derive(second)
		c.First.carried = nil
		for s := range c.Second.States {
			if c.Second.DirectPrev(s) {
				c.First.carried = append(c.First.carried, s)
			}
		}
		c.First.derive(first)
		if c.SplitGrad = c.First.SplitGrad || c.Second.SplitGrad; c.First.SplitGrad == c.Second.SplitGrad {
			break
		}
		c.First.SplitGrad, c.Second.SplitGrad = true, true // then both must
	}
	c.Backward = append(c.Second.Backward.renamed(func(r Ref) Ref {
		switch {
		case r.Kind == Saved:
			r.Index += d.own + d.passed
		case r.Kind == Prev && r.Index >= n:
			return Ref{Saved, r.Index - n + d.own}
		case r.Kind == DPrev && r.Index >= n:
			return Ref{DPassed, r.Index - n}
		}
		return r
	}), c.First.Backward.renamed(func(r Ref) Ref {
		switch {
		case r.Kind == DOut:
			return Ref{DInner, 0}
		case r.Kind == Next && r.Index >= n:
			return Ref{Saved, r.Index - n + d.own}
		case r.Kind == Next:
			return Ref{Inner, 0}
		case r.Kind == DNext && r.Index >= n:
			return Ref{DPassed, r.Index - n}
		case r.Kind == DNext: // as the second half left it
			return Ref{DPrev, r.Index}
		}
		return r
	})...)
}
