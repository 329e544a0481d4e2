package cell

import "slices"

// Rectifier reports whether c is the unit h' = max(W·x + R·h + b, 0): its one gate is
// the input of ReLU, and its one state is the output.
func (c *Cell) Rectifier() bool {
	if len(c.Gates) != 1 || c.Recurrent != 1 || c.Inner > 0 || len(c.States) != 1 || len(c.Peeps) != 0 || c.Window != 1 || len(c.Forward) != 4 {
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
	return len(terms) == 0 && last.Op == ReLU && last.A == sums[2] && last.Out == Ref{Next, 0}
}

// A Kink is where the gradient of a cell jumps: where the sum of one gate passes 0. At is the value
// that the backward program reads there: that sum, or ReLU of it.
type Kink struct {
	Gate int
	At   Ref
}

// Kink finds the kink of a Rectifier, or of a cell whose only ReLU takes the saved sum of a gate
// without a recurrent product. It reports false where there is none, or where the cell has inner gates.
func (c *Cell) Kink() (Kink, bool) {
	if c.Rectifier() {
		return Kink{0, Ref{Next, 0}}, true
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
