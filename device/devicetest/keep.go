package devicetest

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// anewCells are the cells that are tested with resets. They cover states that only the product
// reads, states that the cell reads as well, separate gradients of the product, peepholes, and
// linear recurrences.
var resetCells = []*cell.Cell{cell.LSTMPeephole, cell.GRU, cell.GILR, cell.RGLRU, cell.RGLRU.Scanned}

// kept appends a copy of w to v, with rows of zeros where the column is 0.
func (v values) kept(w, column schedule.View) (values, schedule.View) {
	if w.Empty() {
		return v, w
	}
	t := v.with(schedule.View{M: w.M, Rows: w.Rows, Cols: w.Cols}, 1)
	each(w, func(i, j int) {
		if *v.at(column, i, 0) != 0 {
			*t.values.at(t.view, i, j) = *v.at(w, i, j)
		}
	})
	return t.values, t.view
}

// cell runs a step of a cell, with resets if the operation has any.
func (v values) cell(op schedule.Cell) {
	if !op.Keep.Empty() {
		prev := make([]schedule.View, len(op.Prev))
		for s, w := range op.Prev {
			v, prev[s] = v.kept(w, op.Keep)
		}
		v, op.R = v.kept(op.R, op.Keep)
		op.Prev, op.Keep = prev, schedule.View{}
	}
	temp := v.with(op.Next[0], op.Program().Temps())
	for _, m := range op.Maps(temp.view) {
		temp.values.eval(m)
	}
}

// cellBack runs the gradient of a step, with resets if the operation has any.
func (v values) cellBack(op schedule.CellBackward) {
	if !op.Keep.Empty() {
		prev, next := make([]schedule.View, len(op.Prev)), make([]schedule.View, len(op.DNext))
		for s := range op.Prev {
			v, prev[s] = v.kept(op.Prev[s], op.KeepNow())
			v, next[s] = v.kept(op.DNext[s], op.KeepNext())
		}
		op.Prev, op.DNext, op.Keep = prev, next, schedule.View{}
	}
	temp := v.with(op.Next[0], op.Cell.Backward.Temps())
	for _, m := range op.Maps(temp.view) {
		temp.values.eval(m)
	}
}

// withResets adds resets to op, an operation over several steps: about half of the sequences begin
// anew at each step.
func withResets(t *trial, op schedule.Op) schedule.Op {
	switch op := op.(type) {
	case schedule.Scan:
		addResets(t, &op.Sequence)
		return op
	case schedule.ScanBackward:
		addResets(t, &op.Sequence)
		return op
	case schedule.Persistent:
		addResets(t, &op.Sequence)
		return op
	case schedule.PersistentBackward:
		addResets(t, &op.Sequence)
		return op
	}
	return op
}

// addResets adds resets to s.
func addResets(t *trial, s *schedule.Sequence) { s.Keep = column(t, (s.Steps+1)*s.Batch()) }

// column returns a column of ones and zeros, about half of each.
func column(t *trial, rows int) schedule.View {
	v, one := t.shares(rows), t.place(rows, 1)
	t.b.Do(0, schedule.Map{Op: cell.Zero, Out: one})
	t.b.Do(0, schedule.Map{Op: cell.OneMinus, Out: one, A: one})
	t.b.Do(0, schedule.Map{Op: cell.ReLUGrad, Out: v, A: one, B: v})
	return v
}
