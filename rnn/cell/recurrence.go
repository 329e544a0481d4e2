package cell

import "slices"

// A Recurrence is how a cell's steps follow each other when nothing but its states ties them.
// Recurrent products count as inputs here. Whether they are known ahead is another question, which
// Surrogate answers.
//
// The programs work in place: Prev holds a state, and DNext its gradient, both before and after a
// step.
type Recurrence struct {
	Carried []int // the states that a step reads

	Inference, Forward, Backward Program

	// Compose and ComposeBackward reduce a chunk in Algorithm 1 of Martin and Cundy (2017, section
	// 2); nil: steps do not compose. They do where every state that a step reads becomes a∘h + b,
	// with a and b from the inputs alone. Then a chunk of time is one such step, and time can be
	// cut. They start from states 0 and factors 1. The steps done so far turn a state h before them
	// into Factor·h + Prev, and a gradient h after them into Factor·h + DNext.
	Compose, ComposeBackward Program
}

// Chain returns the cost of the longest chain of operations of p, one of r's programs, from a carried
// value before a step to one after it. A step cannot take less, however much runs side by side.
func (r *Recurrence) Chain(p Program, cost func(Op) float64) float64 {
	at := map[Ref]float64{} // values that depend on carried ones
	for _, s := range r.Carried {
		at[Ref{Prev, s}], at[Ref{DNext, s}] = 0, 0
	}
	for _, in := range p {
		depends, longest := false, 0.0
		for _, a := range in.Args() {
			if c, ok := at[a]; ok {
				depends, longest = true, max(longest, c)
			}
		}
		if delete(at, in.Out); depends {
			at[in.Out] = longest + cost(in.Op)
		}
	}
	most := 0.0
	for _, s := range r.Carried {
		most = max(most, at[Ref{Prev, s}], at[Ref{DNext, s}])
	}
	return most
}

// inPlace derives the programs by which c's steps run one after another.
func inPlace(c *Cell) *Recurrence {
	r := &Recurrence{}
	for s := range c.States {
		if slices.ContainsFunc(c.Forward, func(in Instr) bool { return slices.Contains(in.Args(), Ref{Prev, s}) }) {
			r.Carried = append(r.Carried, s)
		}
	}
	r.Inference, r.Forward = c.Inference.inPlace(r.Carried), c.Forward.inPlace(r.Carried)
	r.Backward = c.Backward.renamed(func(v Ref) Ref {
		if v.Kind == DPrev {
			v.Kind = DNext
		}
		return v
	})
	return r
}

// composed adds to r what composes the steps of c. It returns nil where they do not compose, or
// where gradients of peepholes are summed over time.
func composed(c *Cell, r *Recurrence) *Recurrence {
	if len(c.Peeps) > 0 && c.sums {
		return nil
	}
	compose, ok := c.Inference.compose(Prev, Next, r.Carried)
	back, okBack := c.Backward.compose(DNext, DPrev, r.Carried)
	if !ok || !okBack {
		return nil
	}
	r.Compose, r.ComposeBackward = compose, back
	return r
}

// inPlace makes forward program p also write each carried state to Prev, as soon as nothing reads
// the old one any more.
func (p Program) inPlace(carried []int) Program {
	after := map[int][]Instr{} // by instruction
	for _, s := range carried {
		at := 0
		for i, in := range p {
			if in.Out == (Ref{Next, s}) || slices.Contains(in.Args(), Ref{Prev, s}) {
				at = i
			}
		}
		after[at] = append(after[at], Instr{Op: Copy, Out: Ref{Prev, s}, A: Ref{Next, s}})
	}
	var out Program
	for i, in := range p {
		out = append(append(out, in), after[i]...)
	}
	return out
}

// slice returns the instructions of p that the given values need.
func (p Program) slice(values ...Ref) Program {
	need := map[Ref]bool{}
	for _, v := range values {
		need[v] = true
	}
	var out Program
	for _, in := range slices.Backward(p) {
		if !need[in.Out] {
			continue
		}
		delete(need, in.Out)
		for _, a := range in.Args() {
			need[a] = true
		}
		out = append(out, in)
	}
	slices.Reverse(out)
	return out
}

// A tangent is the derivative of a value with respect to a state, times that
// state's factor so far.
type tangent struct {
	state int
	value Ref
}

// compose derives the program that composes steps of p, by forward-mode differentiation by the
// carried states. It reports false where a state depends on another or not linearly on itself.
func (p Program) compose(before, after Kind, carried []int) (Program, bool) {
	var out Program
	temps := 0
	do := func(op Op, args ...Ref) Ref {
		in := with(Instr{Op: op, Out: Ref{Temp, temps}}, args)
		temps++
		out = append(out, in)
		return in.Out
	}
	value, tangents := map[Ref]Ref{}, map[Ref]tangent{}
	var results []Ref
	for _, s := range carried {
		tangents[Ref{before, s}] = tangent{s, Ref{Factor, s}}
		results = append(results, Ref{after, s})
	}
	for _, in := range p.slice(results...) {
		args := in.Args()
		var t []tangent // of the operands that have one
		var of []int    // and their positions
		for i, a := range args {
			if d, ok := tangents[a]; ok {
				t, of = append(t, d), append(of, i)
			}
			if v, ok := value[a]; ok {
				args[i] = v
			}
		}
		value[in.Out] = do(in.Op, args...)
		out[len(out)-1].Value = in.Value
		delete(tangents, in.Out)
		switch {
		case len(t) == 0:
			continue
		case len(t) == 2 && (in.Op != Add && in.Op != Sub || t[0].state != t[1].state):
			return nil, false
		}
		d := t[0]
		switch in.Op {
		case Copy:
		case Neg, OneMinus:
			d.value = do(Neg, d.value)
		case Add, Sub:
			if len(t) == 2 {
				d.value = do(in.Op, d.value, t[1].value)
			} else if in.Op == Sub && of[0] == 1 {
				d.value = do(Neg, d.value)
			}
		case Mul:
			d.value = do(Mul, d.value, args[1-of[0]])
		case SigmoidGrad, TanhGrad, ReLUGrad, SoftplusGrad, SqrtGrad: // linear in the gradient
			if of[0] != 0 {
				return nil, false
			}
			d.value = do(in.Op, d.value, args[1])
		default:
			return nil, false
		}
		tangents[in.Out] = d
	}
	for _, s := range carried {
		d, ok := tangents[Ref{after, s}]
		if !ok || d.state != s {
			return nil, false
		}
		out = append(out, Instr{Op: Copy, Out: Ref{before, s}, A: value[Ref{after, s}]}, Instr{Op: Copy, Out: Ref{Factor, s}, A: d.value})
	}
	return out.compact(), true
}

// split returns the two parts of a linear surrogate cell, or nil where the
// state that the recurrent product multiplies itself needs a product. p is c's
// forward program, each value named once.
func split(c *Cell, p Program) (surrogate, core *Cell) {
	if c.Recurrent == 0 {
		return nil, nil
	}
	through := p.slice(Ref{Next, c.Through})
	own := map[Ref]bool{{Prev, c.Through}: true} // what belongs to the surrogate
	for _, in := range through {
		own[in.Out] = true
		for _, a := range in.Args() {
			if a.Kind == R || a.Kind == BR || a.Kind == Prev && a.Index != c.Through || (a.Kind == X || a.Kind == BX) && a.Index < c.Recurrent {
				return nil, nil
			}
		}
	}
	var rest Program
	for _, in := range p {
		if own[in.Out] {
			continue
		}
		for _, a := range in.Args() {
			if own[a] || a.Kind == X && a.Index >= c.Recurrent {
				return nil, nil
			}
		}
		rest = append(rest, in)
	}
	part := func(name string, gates []string, recurrent int, states []string, p Program, move func(Ref) Ref) *Cell {
		return define(Cell{Name: c.Name + " " + name, Doc: "part of " + c.Name, Text: c.Text, Gates: gates, Recurrent: recurrent, States: states}, func(b *builder) {
			for _, in := range p {
				in.Out, in.A, in.B = move(in.Out), move(in.A), move(in.B)
				b.p = append(b.p, in)
			}
		})
	}
	surrogate = part("surrogate", c.Gates[c.Recurrent:], 0, c.States[c.Through:c.Through+1], through, func(r Ref) Ref {
		switch r.Kind {
		case X, BX:
			r.Index -= c.Recurrent
		case Prev, Next:
			r.Index = 0
		}
		return r
	})
	core = part("core", c.Gates[:c.Recurrent], c.Recurrent, slices.Delete(slices.Clone(c.States), c.Through, c.Through+1), rest, func(r Ref) Ref {
		if (r.Kind == Prev || r.Kind == Next) && r.Index > c.Through {
			r.Index--
		}
		return r
	})
	return surrogate, core
}

// scanned returns what a scan of c runs if c has peepholes. It returns nil where c has none or its
// steps do not compose. p is c's forward program.
func scanned(c *Cell, p Program) *Cell {
	if len(c.Peeps) == 0 || c.Recurrent > 0 {
		return nil
	}
	s := complete(Cell{
		Name: c.Name + " scan", Doc: "part of " + c.Name, Text: c.Text, Gates: c.Gates, Window: c.Window, States: c.States, Peeps: c.Peeps,
	}, func(b *builder) { b.p = p })
	if s.Recurrence == nil {
		return nil
	}
	return s
}
