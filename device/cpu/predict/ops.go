package predict

import (
	"slices"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// packed predicts a Pack, which all workers of a team share.
func (p *forecast) packed(op schedule.Pack, parts int) float64 {
	bytes := 4 * op.Dst.Rows * ceil(op.Dst.Cols, line) * line
	switch p.Format {
	case simd.F32:
	case simd.I8:
		return p.call + p.quantize*float64(bytes/4)/float64(parts)
	default:
		bytes = bytes * 3 / 2
	}
	return p.call + float64(bytes)/float64(parts)/p.prepare[p.level(int64(2*bytes/parts))]
}

// cells predicts one step of a cell. all is the bytes of the vectors of all steps.
func (p *forecast) cells(prog cell.Program, state schedule.View, all int64, parts int) float64 {
	all /= int64(parts)
	if state.Rows == 1 {
		return p.rows(prog, 1, largest(state.Cols, line, parts), all)
	}
	perRow := ceil(state.Cols, fused.Block)
	return p.rows(prog, state.Rows, state.Cols, all) * float64(largest(state.Rows*perRow, 1, parts)) / float64(state.Rows*perRow)
}

// ctcLoss predicts a softmax of each row, and the recursion over labels and the blanks around them.
func (p *forecast) ctcLoss(op schedule.CTCLoss, parts int) float64 {
	rows, ways := ceil(op.Labels.Rows, parts)*op.Steps(), 1
	if op.Grad {
		ways = 2
	}
	return float64(rows) * (2*(p.mapFunction+3*p.mapLine)*float64(ceil(op.Logits.Cols, line)) + p.place*float64(ways*(2*op.Labels.Cols+1)))
}

// matrixBytes returns the bytes of the matrices of the views. An operation of one step goes through a
// part of them, and those of other steps go through the rest before it comes back.
func matrixBytes(views ...schedule.View) int64 {
	var bytes int64
	for i, v := range views {
		if !v.Empty() && !slices.ContainsFunc(views[:i], func(w schedule.View) bool { return w.M == v.M }) {
			bytes += 4 * int64(v.M.Rows) * int64(v.M.Cols)
		}
	}
	return bytes
}

// ofCell returns the bytes of all steps of op, without its gates, which the product before it has
// just written.
func ofCell(op schedule.Cell) int64 {
	return matrixBytes(append([]schedule.View{op.Saved}, op.Next...)...)
}

// ofGradient returns the bytes of all steps of a gradient.
func ofGradient(op schedule.CellBackward) int64 {
	return matrixBytes(append([]schedule.View{op.DOut, op.Saved, op.DX, op.DR}, op.Next...)...)
}

// maps predicts point-wise operations of one shape, one after another on each row, or on all rows
// at once if the rows are contiguous.
func (p *forecast) maps(parts int, maps ...schedule.Map) float64 {
	out := &maps[0].Out
	flat, follow := true, true // all rows count as one; rows are contiguous in each matrix
	sec := 0.0
	var bytes int64
	for i := range maps {
		m := &maps[i]
		flat = flat && together(m)
		sec += p.mapped(m.Op)
		for _, v := range [...]*schedule.View{&m.Out, &m.A, &m.B} {
			if v.Rows == out.Rows {
				bytes += 4
				follow = follow && v.M.Cols == v.Cols
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
	far, row := p.level(bytes) > 1, p.mapRow
	if far && !follow { // processors prefetch from row to row if rows are contiguous
		row += p.mapFar
	}
	compute := float64(most) * (row*float64(len(maps)) + float64(ceil(cols, line))*sec)
	moved := p.move(min(bytes, 4*int64(most*cols*(len(maps)+2))), 1)
	if far && most > 1 { // rows are too short to overlap computing one with fetching the next
		return compute + moved
	}
	return max(compute, moved)
}

// together reports whether all rows of m count as one long row.
func together(m *schedule.Map) bool {
	dense := func(v *schedule.View) bool { return v.Rows == 1 || v.M.Cols == v.Cols }
	n := m.Op.Operands()
	return dense(&m.Out) && (n < 1 || dense(&m.A) && m.A.Rows == m.Out.Rows) && (n < 2 || dense(&m.B) && m.B.Rows == m.Out.Rows)
}

// scan predicts a scan or its gradient.
func (p *forecast) scan(s Scan) float64 {
	sec := p.loop(s.Step, s.Rows, s.Together, s.Units)
	if s.Cut > 1 || s.Transposed > 0 {
		sec += p.loop(s.Compose, s.Rows, s.Together, s.Units)
	}
	if s.Cut > 1 {
		sec += p.meetingTime(s.Cut) * float64(s.Meetings)
	}
	return sec + p.transpose*float64(s.Transposed)
}
