package predict

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
)

// line is the size of a cache line, and of a vector, in floats.
const line = simd.StripWidth

func ceil(a, b int) int { return (a + b - 1) / b }

// largest returns the size of the largest of so many parts of n items. Parts are multiples of align,
// as even as possible.
func largest(n, align, parts int) int { return min(n, ceil(ceil(n, align), parts)*align) }

// A Machine is a processor: its instruction set, and the sizes, in bytes, of a core's nearest cache,
// of the largest that is its own, and of the last one, which all share.
type Machine struct {
	Level           simd.Level
	Near, Own, Last int64
}

// level returns the nearest memory that holds so many bytes: 0 for the nearest cache, 3 for main
// memory.
func (m Machine) level(bytes int64) int {
	for i, size := range [...]int64{m.Near, m.Own, m.Last} {
		if bytes <= size {
			return i
		}
	}
	return 3
}

// A core predicts the seconds of one worker for point-wise operations.
type core struct {
	*rates
	Machine
}

func newCore(on Machine) core { return core{ratesOf(on.Level), on} }

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
	case fused.Function(op):
		return c.function
	case op == cell.SigmoidGrad || op == cell.TanhGrad:
		return 2 * c.line
	}
	return c.line
}

// mapped returns the seconds of a map for one line.
func (c core) mapped(op cell.Op) float64 {
	switch {
	case op == cell.Zero || op == cell.Const || op == cell.Copy:
		return copyLine
	case op == cell.Tanh:
		return c.mapTanh
	case fused.Function(op):
		return c.mapFunction
	}
	return c.mapLine * float64(1+op.Operands())
}

// copyLine is the seconds of copying a line, with any instruction set.
const copyLine = 0.8e-9

// rows returns the seconds of a program for so many rows of units. A run goes through all bytes
// before it returns to these rows.
func (c core) rows(prog cell.Program, rows, units int, all int64) float64 {
	reads, writes := prog.Vectors()
	vectors := len(reads) + len(writes)
	each := float64(ceil(units, line)) * c.instructions(prog)
	if c.Level == simd.Generic {
		each = c.interpreted(prog, units)
	}
	compute := float64(rows) * (c.row + c.vector*float64(vectors) + each)
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

// interpreted returns the seconds of a program that no assembly computes, for a row of so many units.
func (c core) interpreted(prog cell.Program, units int) float64 {
	if c.Level == simd.Generic {
		return c.dispatch*float64(len(prog)*ceil(units, fused.StepUnits)) + float64(units)/line*c.instructions(prog)
	}
	width := line
	if c.Level.Base() == simd.AVX2 {
		width /= 2
	}
	full := units / width // registers, which run in blocks of four, two and one
	blocks, part := full/4+ceil(full%4, 2), 0.0
	if units%width > 0 {
		reads, writes := prog.Vectors()
		blocks, part = blocks+1, c.part*float64(len(reads)+len(writes))
	}
	return c.dispatch*float64(len(prog)*blocks) + part + c.scanned*float64(ceil(units, width)*width)/line*c.instructions(prog)
}

// loop returns the seconds of a scan's program for so many rows of units, some of which run
// together.
func (c core) loop(l Loop, rows, together, units int) float64 {
	each := c.scanned * float64(ceil(units, line)) * c.instructions(l.Program)
	if l.Interpreted {
		each = c.interpreted(l.Program, units)
	}
	compute := float64(ceil(rows, together)) * (c.scanRow + each)
	return max(compute, c.move(int64(4*l.Vectors*rows*units), 1))
}
