package cell

import "slices"

// Rectifier reports whether c is the unit h' = max(W·x + R·h + b, 0): its one gate is
// the input of ReLU, and its one state is the output.
func (c *Cell) Rectifier() bool {
	if len(c.Gates) != 1 || c.Recurrent != 1 || len(c.States) != 1 || len(c.Peeps) != 0 || c.Window != 1 || len(c.Forward) != 4 {
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
