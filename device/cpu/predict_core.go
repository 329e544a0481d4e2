package cpu

import "rnnbench/rnn/cell"

// A core is what one worker takes for point-wise operations.
type core struct {
	*rates
	caches
}

// move is a worker's part of so many bytes, read and written.
func (c core) move(bytes int64, parts int) float64 {
	return c.moveOf(bytes/int64(parts), bytes/int64(parts))
}

// moveOf is to read and write so many bytes, which are a part of all those that are gone through.
func (c core) moveOf(bytes, all int64) float64 {
	return float64(bytes) / c.stream[c.level(max(bytes, all))]
}

// instructions are the seconds of a program for one line.
func (c core) instructions(prog cell.Program) float64 {
	sec := 0.0
	for _, in := range prog {
		sec += c.instruction(in.Op)
	}
	return sec
}

// instruction is one of them.
func (c core) instruction(op cell.Op) float64 {
	switch {
	case op == cell.Zero || op == cell.Copy:
		return 0
	case op == cell.Tanh:
		return c.tanh
	case function(op):
		return c.function
	case op == cell.SigmoidGrad || op == cell.TanhGrad:
		return 2 * c.line
	}
	return c.line
}

// function reports whether op takes a series or a division, not an instruction or two.
func function(op cell.Op) bool {
	switch op {
	case cell.Div, cell.Sigmoid, cell.Tanh, cell.Exp, cell.Softplus, cell.Sqrt, cell.SoftplusGrad, cell.SqrtGrad:
		return true
	}
	return false
}

// mapped are those of a map for one line.
func (c core) mapped(op cell.Op) float64 {
	switch {
	case op == cell.Zero || op == cell.Copy:
		return copyLine
	case op == cell.Tanh:
		return c.mapTanh
	case function(op):
		return c.mapFunction
	}
	return c.mapLine * float64(1+op.Operands())
}

// copyLine are the seconds of a line that is copied, by whatever instructions.
const copyLine = 0.8e-9

// rows are the seconds of a program for so many rows of units, of all the bytes that it goes through row after row.
func (c core) rows(prog cell.Program, rows, units int, all int64) float64 {
	vectors := vectorsOf(prog)
	compute := float64(rows) * (c.row + c.vector*float64(vectors) + float64(ceil(units, line))*c.instructions(prog))
	return max(compute, c.moveOf(int64(4*vectors*rows*units), all))
}

// stepwise is how many vectors of a program each step has of its own, in memory. States before a step are those after
// the one before it.
func stepwise(p cell.Program) int {
	own := map[cell.Ref]bool{}
	reads, writes := p.Vectors()
	for _, r := range append(reads, writes...) {
		switch r.Kind {
		case cell.Prev, cell.Next:
			own[cell.Ref{Kind: cell.Next, Index: r.Index}] = true
		case cell.X, cell.Saved, cell.DOut, cell.DX, cell.DR:
			own[r] = true
		}
	}
	return len(own)
}

// loop is a scan's program for so many rows of units, of which it runs some together.
func (c core) loop(l *loop, rows, together, units int) float64 {
	steps := 0
	for _, at := range l.at {
		if at.moves == perStep {
			steps++
		}
	}
	compute := float64(ceil(rows, together)) * (c.scanRow + c.scanned*float64(ceil(units, line))*c.instructions(l.Program()))
	return max(compute, c.move(int64(4*steps*rows*units), 1))
}
