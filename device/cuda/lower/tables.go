package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Zeroing the whole gradient of a large table would be slow, because a scatter adds to few rows. So
// the scatter notes these rows, and the next run zeroes only them. If the host writes such a table,
// it is zeroed as a whole before the next run.

// A noted says where n row numbers are noted.
type noted struct {
	at int64
	n  int
}

// LeastTable is the least size of such a table in bytes. Smaller tables are zeroed in batches.
var LeastTable int64 = 1 << 24

// placeTables places the notes of scatters: a row number for each number of the index.
func (l *layout) placeTables(s *schedule.Schedule) {
	writers := map[*schedule.Matrix][]schedule.Op{}
	for op := range s.Operations() {
		for _, v := range op.Writes() {
			writers[v.M] = append(writers[v.M], op)
		}
	}
	l.noted = map[int]noted{}
	for _, n := range s.Nodes {
		op, ok := n.Op.(schedule.Scatter)
		if !ok || op.Table != op.Table.M.All() || op.Table.Bytes() < LeastTable || len(writers[op.Table.M]) != 2 || !pointwise.Notes(op) {
			continue
		}
		zero, ok := writers[op.Table.M][0].(schedule.Map)
		if m := op.Table.M; ok && zero.Op == cell.Zero && zero.Out == m.All() && l.Elements[m.ID] == driver.Single && inRun(s, zero) {
			l.noted[m.ID] = noted{l.reserve(4 * int64(op.Index.Rows)), op.Index.Rows}
		}
	}
}

// inRun reports whether op is a node, not part of the preparation.
func inRun(s *schedule.Schedule, op schedule.Map) bool {
	for _, n := range s.Nodes {
		if o, ok := n.Op.(schedule.Map); ok && o == op {
			return true
		}
	}
	return false
}

// notedAt is where a scatter notes the rows of a table; 0: nowhere.
func notedAt(e *emitter, table schedule.View) driver.Pointer {
	rows, ok := e.lowering.noted[table.M.ID]
	if !ok || e.now < 0 {
		return 0
	}
	return e.Base + driver.Pointer(rows.at)
}

// zero returns the command of a map. It zeroes only the noted rows of a table that has notes.
func zero(e *emitter, op schedule.Map) launch.Command {
	if at := notedAt(e, op.Out); at != 0 && op.Op == cell.Zero {
		return pointwise.ZeroRows(e.Target, op.Out, at, e.lowering.noted[op.Out.M.ID].n)
	}
	return pointwise.Map(e.Target, op)
}
