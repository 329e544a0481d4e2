package cell

import (
	"math"
	"slices"
)

// Rectifier reports whether c is the unit h' = max(W·x + R·h + b, 0), or that unit with a Clip: its one
// gate is the input of ReLU, and its one state is the output.
func (c *Cell) Rectifier() bool {
	if len(c.Gates) != 1 || c.Recurrent != 1 || c.Inner > 0 || len(c.States) != 1 || len(c.Peeps) != 0 || c.Window != 1 || len(c.Forward) < 4 {
		return false
	}
	terms := []Ref{{X, 0}, {BX, 0}, {R, 0}, {BR, 0}}
	var sums []Ref
	for _, in := range c.Forward[:3] {
		for _, a := range in.Args() {
			terms = slices.DeleteFunc(terms, func(t Ref) bool { return t == a })
		}
		if in.Op != Add {
			return false
		}
		sums = append(sums, in.Out)
	}
	last := c.Forward[3]
	if len(terms) > 0 || last.Op != ReLU || last.A != sums[2] {
		return false
	}
	_, clipped := c.clip()
	return clipped || len(c.Forward) == 4 && last.Out == Ref{Next, 0}
}

// Clip is the largest output of a Rectifier, beyond which its gradient is 0 again: h' = min(max(z, 0), clip).
// It is infinite where there is none.
func (c *Cell) Clip() float64 {
	if clip, ok := c.clip(); ok {
		return clip
	}
	return math.Inf(1)
}

// clip finds the constant of a min behind c's first four operations, as package equations writes it: the operand
// a is saved.
func (c *Cell) clip() (float64, bool) {
	if len(c.Forward) < 5 {
		return 0, false
	}
	a, limit := c.Forward[3].Out, c.Forward[4]
	var least Program
	do := func(in Instr) Ref {
		in.Out = Ref{Temp, len(least)}
		least = append(least, in)
		return in.Out
	}
	most := do(limit)
	Second(do, do(Instr{Op: Sub, A: a, B: most}), a, most)
	found := a.Kind == Saved && limit.Op == Const && limit.Value > 0 && c.Forward[4:].alike(least) && c.Forward[len(c.Forward)-1].Out == Ref{Next, 0}
	return float64(limit.Value), found
}

// alike reports whether p does the operations of q on the same values. q names each value once.
func (p Program) alike(q Program) bool {
	made := map[Ref]Ref{} // the values of p in q
	return slices.EqualFunc(p, q, func(in, other Instr) bool {
		args := in.Args()
		for i, a := range args {
			if v, ok := made[a]; ok {
				args[i] = v
			}
		}
		made[in.Out] = other.Out
		return in.Op == other.Op && in.Value == other.Value && slices.Equal(args, other.Args())
	})
}

// Second has do append operations that yield b where difference is above 0, and else a. The result is one of them
// plus 0. So it is exact whatever the other is, and the gradient goes to it alone.
func Second(do func(Instr) Ref, difference, a, b Ref) Ref {
	takesB := do(Instr{Op: ReLUGrad, A: do(Instr{Op: Const, Value: 1}), B: difference})
	takesA := do(Instr{Op: OneMinus, A: takesB})
	return do(Instr{Op: Add, A: do(Instr{Op: ReLUGrad, A: a, B: takesA}), B: do(Instr{Op: ReLUGrad, A: b, B: takesB})})
}

// A Kink is where the gradient of a cell jumps: where the sum of one gate passes 0, or a Clip. At is the value
// that the backward program reads there: that sum, or ReLU of it.
type Kink struct {
	Gate int
	At   Ref
}

// Kink finds the kink of a Rectifier, or of a cell without a choice whose only ReLU takes the saved sum of a gate
// without a recurrent product. It reports false where there is none, or where the cell has inner gates.
func (c *Cell) Kink() (Kink, bool) {
	if c.Rectifier() {
		return Kink{0, c.Forward[3].Out}, true
	}
	rectifies := func(in Instr) bool { return in.Op == ReLU || in.Op == ReLUGrad }
	i := slices.IndexFunc(c.Forward, rectifies)
	if i < 0 || c.Forward[i].Op != ReLU || c.Window != 1 || c.Inner > 0 || slices.ContainsFunc(c.Forward[i+1:], rectifies) {
		return Kink{}, false
	}
	at := c.Forward[i].A
	j := slices.IndexFunc(c.Forward, func(in Instr) bool { return in.Out == at })
	if at.Kind != Saved || j < 0 {
		return Kink{}, false
	}
	sum := c.Forward[j]
	k := sum.A.Index
	if sum.Op != Add || sum.A.Kind != X || k < c.Recurrent || sum.B != (Ref{BX, k}) {
		return Kink{}, false
	}
	return Kink{k, at}, true
}
