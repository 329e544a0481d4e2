package cpu

import "rnnbench/rnn/cell"

// A core predicts the seconds of one worker for point-wise operations.
type core struct {
	*rates
	caches
}

// move returns the seconds of one of so many parts of reading and writing so many bytes.
func (c core) move(bytes int64, parts int) float64 {
	return c.moveOf(bytes/int64(parts), bytes/int64(parts))
}

// moveOf returns the seconds of reading and writing so many bytes, when a run goes through all
// bytes before it returns to these.
func (c core) moveOf(bytes, all int64) float64 {
	return float64(bytes) / c.stream[c.level(max(bytes, all))]
}

// instructions returns the seconds of a program for one line.
func (c core) instructions(prog cell.Program) float64 {
	sec := 0.0
	for _, in := range prog {
		sec += c.instruction(in.Op)
	}
	return sec
}

// instruction returns the seconds of one operation of a program for one line.
func (c core) instruction(op cell.Op) float64 {
	switch {
	case op == cell.Zero || op == cell.Const || op == cell.Copy:
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

// function reports whether op needs a series or a division, not just an instruction or two.
func function(op cell.Op) bool {
	switch op {
	case cell.Div, cell.Sigmoid, cell.Tanh, cell.Exp, cell.Softplus, cell.Sqrt, cell.SoftplusGrad, cell.SqrtGrad:
		return true
	}
	return false
}

// mapped returns the seconds of a map for one line.
func (c core) mapped(op cell.Op) float64 {
	switch {
	case op == cell.Zero || op == cell.Const || op == cell.Copy:
		return copyLine
	case op == cell.Tanh:
		return c.mapTanh
	case function(op):
		return c.mapFunction
	}
	return c.mapLine * float64(1+op.Operands())
}

// copyLine is the seconds of copying a line, with any instruction set.
const copyLine = 0.8e-9

// rows returns the seconds of a program for so many rows of units. A run goes through all bytes
// before it returns to these rows.
func (c core) rows(prog cell.Program, rows, units int, all int64) float64 {
	vectors := vectorsOf(prog)
	compute := float64(rows) * (c.row + c.vector*float64(vectors) + float64(ceil(units, line))*c.instructions(prog))
	return max(compute, c.moveOf(int64(4*vectors*rows*units), all))
}

// perStepVectors returns how many of a program's vectors each step has of its own in memory. States
// before a step are those after the previous one, and count once.
func perStepVectors(p cell.Program) int {
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

// loop returns the seconds of a scan's program for so many rows of units, some of which run
// together.
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
