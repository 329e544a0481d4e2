package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// move is a worker's part of so many bytes, read and written.
func (p *forecast) move(bytes int64, parts int) float64 {
	return float64(bytes) / float64(parts) / p.stream[p.level(bytes/int64(parts))]
}

// packed is Pack. All workers of a team share it.
func (p *forecast) packed(op schedule.Pack, parts int) float64 {
	bytes := 4 * op.Dst.Rows * ceil(op.Dst.Cols, line) * line
	if p.format != simd.F32 {
		bytes = bytes * 3 / 2
	}
	return p.call + float64(bytes)/float64(parts)/p.prepare[p.level(int64(2*bytes/parts))]
}

// instructions are the seconds of a program for one line.
func (p *forecast) instructions(prog cell.Program) float64 {
	sec := 0.0
	for _, in := range prog {
		sec += p.instruction(in.Op)
	}
	return sec
}

// instruction is one of them.
func (p *forecast) instruction(op cell.Op) float64 {
	switch op {
	case cell.Zero, cell.Copy:
		return 0
	case cell.Sigmoid, cell.Tanh:
		return p.function
	case cell.SigmoidGrad, cell.TanhGrad:
		return 2 * p.line
	}
	return p.line
}

// mapped are those of a map for one line.
func (p *forecast) mapped(op cell.Op) float64 {
	switch op {
	case cell.Zero, cell.Copy:
		return copyLine
	case cell.Sigmoid, cell.Tanh:
		return p.mapFunction
	}
	return p.mapLine * float64(1+op.Operands())
}

// copyLine are the seconds of a line that is copied, by whatever instructions.
const copyLine = 0.8e-9

// rows are the seconds of a program for so many rows of units.
func (p *forecast) rows(prog cell.Program, rows, units int) float64 {
	vectors := vectorsOf(prog)
	compute := float64(rows) * (p.row + p.vector*float64(vectors) + float64(ceil(units, line))*p.instructions(prog))
	return max(compute, p.move(int64(4*vectors*rows*units), 1))
}

// cells is a cell of a number of rows.
func (p *forecast) cells(prog cell.Program, state schedule.View, parts int) float64 {
	if state.Rows == 1 {
		return p.rows(prog, 1, largest(state.Cols, line, parts))
	}
	perRow := ceil(state.Cols, block)
	return p.rows(prog, state.Rows, state.Cols) * float64(largest(state.Rows*perRow, 1, parts)) / float64(state.Rows*perRow)
}

// maps are point-wise operations of one shape, one after the other on each row, or on all
// rows at once where these follow each other.
func (p *forecast) maps(parts int, maps ...schedule.Map) float64 {
	out := &maps[0].Out
	flat := true
	sec := 0.0
	var bytes int64
	for i := range maps {
		m := &maps[i]
		flat = flat && together(m)
		sec += p.mapped(m.Op)
		for _, v := range [...]*schedule.View{&m.Out, &m.A, &m.B} {
			if v.Rows == out.Rows {
				bytes += 4
			}
		}
	}
	rows, cols := out.Rows, out.Cols
	if flat {
		rows, cols = 1, rows*cols
	}
	most := largest(rows, 1, parts)
	if rows == 1 {
		cols = largest(cols, line, parts)
	}
	bytes *= int64(most) * int64(cols)
	row := p.mapRow
	if p.level(bytes) > 1 {
		row += p.mapFar
	}
	return max(float64(most)*(row*float64(len(maps))+float64(ceil(cols, line))*sec), p.move(min(bytes, 4*int64(most*cols*(len(maps)+2))), 1))
}

// together reports whether all rows of m are as one.
func together(m *schedule.Map) bool {
	dense := func(v *schedule.View) bool { return v.Rows == 1 || v.M.Cols == v.Cols }
	n := m.Op.Operands()
	return dense(&m.Out) && (n < 1 || dense(&m.A) && m.A.Rows == m.Out.Rows) && (n < 2 || dense(&m.B) && m.B.Rows == m.Out.Rows)
}

// scan is a Scan or its gradient.
func (p *forecast) scan(op schedule.Op, parts int) float64 {
	w := p.scanOf(op, p.knobs)
	parts = min(parts, w.most)
	groups := groups(parts, w.cut)
	cut := parts / groups
	rows, units := largest(w.batch, 1, groups), w.hidden
	if rows*w.hidden > largest(w.hidden, line, groups)*w.batch {
		rows, units = w.batch, largest(w.hidden, line, groups)
	}
	rows *= ceil(w.steps, cut)
	sec := p.loop(&w.step, rows, units)
	if cut > 1 {
		sec += p.loop(&w.compose, rows, units) + p.met(cut)*float64(ceil(w.steps, cut*w.chunk))
	}
	return sec
}

func (p *forecast) loop(l *loop, rows, units int) float64 {
	steps := 0
	for _, at := range l.at {
		if at.moves == perStep {
			steps++
		}
	}
	compute := float64(rows) * (p.scanRow + float64(ceil(units, line))*p.instructions(l.Program()))
	return max(compute, p.move(int64(4*steps*rows*units), 1))
}

// bytesOf are those of a packed weight.
func bytesOf(f simd.Format) int64 { return int64(4*f.RowFloats()) / line }
