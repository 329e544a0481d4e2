package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// The gradient of a large table is zeroed as a whole, and then one scatter adds to few of its rows. The
// scatter notes which, so that the next run zeroes these alone. What the host writes to such a table has
// it zeroed as a whole ahead of the next run.

// A noted is where so many rows are noted.
type noted struct {
	at int64
	n  int
}

// LeastTable is how many bytes such a table has at least: smaller ones are zeroed along with others.
var LeastTable int64 = 1 << 24

// placeTables places what scatters note: a row's number for each number of the index.
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

// inRun reports whether op is part of runs.
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
	rows, ok := e.plan.noted[table.M.ID]
	if !ok || e.now < 0 {
		return 0
	}
	return e.Base + driver.Pointer(rows.at)
}

// zero is a map that may zero the noted rows of a table.
func zero(e *emitter, op schedule.Map) launch.Command {
	if at := notedAt(e, op.Out); at != 0 && op.Op == cell.Zero {
		return pointwise.ZeroRows(e.Target, op.Out, at, e.plan.noted[op.Out.M.ID].n)
	}
	return pointwise.Map(e.Target, op)
}
