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

// clip finds the constant of a min behind c's first four operations, as package equations writes it:
// a - ReLU(a - clip), where a is saved.
func (c *Cell) clip() (float64, bool) {
	if len(c.Forward) != 8 {
		return 0, false
	}
	a, limit, over, cut, next := c.Forward[3].Out, c.Forward[4], c.Forward[5], c.Forward[6], c.Forward[7]
	found := a.Kind == Saved && limit.Op == Const && limit.Value > 0 &&
		over.Op == Sub && over.A == a && over.B == limit.Out && cut.Op == ReLU && cut.A == over.Out &&
		next.Op == Sub && next.A == a && next.B == cut.Out && next.Out == Ref{Next, 0}
	return float64(limit.Value), found
}

// A Kink is where the gradient of a cell jumps: where the sum of one gate passes 0, or a Clip. At is the value
// that the backward program reads there: that sum, or ReLU of it.
type Kink struct {
	Gate int
	At   Ref
}

// Kink finds the kink of a Rectifier, or of a cell whose only ReLU takes the saved sum of a gate
// without a recurrent product. It reports false where there is none, or where the cell has inner gates.
func (c *Cell) Kink() (Kink, bool) {
	if c.Rectifier() {
		return Kink{0, c.Forward[3].Out}, true
	}
	rectifies := func(in Instr) bool { return in.Op == ReLU }
	i := slices.IndexFunc(c.Forward, rectifies)
	if i < 0 || c.Window != 1 || c.Inner > 0 || slices.ContainsFunc(c.Forward[i+1:], rectifies) {
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
