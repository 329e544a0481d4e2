package predict

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A likeness holds all that the time of an operation depends on. Equal ones take the same time.
type likeness struct {
	program       *cell.Instr // its first instruction
	maps          uint64      // hash of a chain's operations
	rows, cols, k int
	packed, trans bool
	from          int   // level of the memory that weights come from
	all           int64 // bytes of all steps
	members       int   // of the team
}

// likeness returns the key of the kinds of operations that schedules have many of; ok is false for
// others. It also records what op touches.
func (p *forecast) likeness(op schedule.Op, members int) (l likeness, ok bool) {
	l.members = members
	switch op := op.(type) {
	case schedule.Gemm:
		l.rows, l.cols, l.k = op.Sizes()
		l.packed, l.trans = op.B.M.Packed, op.TransA
		if l.packed {
			l.from = p.from(&op.B, members)
		}
		l.all = matrixBytes(op.C)
		p.touched += 4 * int64(l.rows*l.k+l.rows*l.cols)
	case schedule.Map:
		l.maps = hash(hashStart, &op)
		l.rows, l.cols = op.Out.Rows, op.Out.Cols
		p.touched += 8 * int64(l.rows*l.cols)
	case schedule.MapChain:
		l.maps = hashStart
		for i := range op.Steps {
			l.maps = hash(l.maps, &op.Steps[i])
		}
		l.rows, l.cols = op.Steps[0].Out.Rows, op.Steps[0].Out.Cols
		p.touched += 4 * int64(len(op.Steps)) * int64(l.rows*l.cols)
	case schedule.Cell:
		l.program, l.rows, l.cols, l.all = &op.Program()[0], op.Next[0].Rows, op.Next[0].Cols, ofCell(op)
		p.touched += 4 * int64(len(op.Cell.Gates)*2*l.rows*l.cols)
	case schedule.CellBackward:
		l.program, l.rows, l.cols, l.all = &op.Cell.Backward[0], op.Next[0].Rows, op.Next[0].Cols, ofGradient(op)
		p.touched += 4 * int64(len(op.Cell.Gates)*2*l.rows*l.cols)
	case schedule.Pack:
		p.touched += schedule.Bytes(op)
		p.wasRead[op.Dst.M.ID] = p.touched
		return l, false
	default:
		p.touched += schedule.Bytes(op)
		return l, false
	}
	return l, true
}

// hashStart and hash implement FNV-1a over all that the time of maps depends on.
const hashStart = 14695981039346656037

func hash(h uint64, m *schedule.Map) uint64 {
	v := uint64(m.Op) << 4
	if together(m) {
		v |= 1
	}
	if m.A.Rows == m.Out.Rows {
		v |= 2
	}
	if m.B.Rows == m.Out.Rows {
		v |= 4
	}
	return (h ^ v) * 1099511628211
}
