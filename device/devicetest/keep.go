package devicetest

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// anewCells are those whose sequences begin anew in some operations: with states that only the product reads, or the cell as
// well, gradients of the product apart, peepholes, and linear recurrences.
var anewCells = []*cell.Cell{cell.LSTMPeephole, cell.GRU, cell.GILR, cell.RGLRU}

// kept adds a copy of w to v, with rows of 0 where the column is 0.
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

// cell runs a step, at which sequences may begin anew.
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

// cellBack runs the gradient of such a step.
func (v values) cellBack(op schedule.CellBackward) {
	if !op.Keep.Empty() {
		prev, next := make([]schedule.View, len(op.Prev)), make([]schedule.View, len(op.DNext))
		for s := range op.Prev {
			v, prev[s] = v.kept(op.Prev[s], op.Keep)
			v, next[s] = v.kept(op.DNext[s], op.KeepNext)
		}
		op.Prev, op.DNext, op.Keep, op.KeepNext = prev, next, schedule.View{}, schedule.View{}
	}
	temp := v.with(op.Next[0], op.Cell.Backward.Temps())
	for _, m := range op.Maps(temp.view) {
		temp.values.eval(m)
	}
}

// anew has sequences of op, one over several steps, begin anew: about half at each step.
func (t *trial) anew(op schedule.Op) schedule.Op {
	rows := func(s *schedule.Sequence) { s.Keep = t.column((s.Steps + 1) * s.Batch()) }
	switch op := op.(type) {
	case schedule.Scan:
		rows(&op.Sequence)
		return op
	case schedule.ScanBackward:
		rows(&op.Sequence)
		return op
	case schedule.Persistent:
		rows(&op.Sequence)
		return op
	case schedule.PersistentBackward:
		rows(&op.Sequence)
		return op
	}
	return op
}

// column is one of ones and zeros, about half of each.
func (t *trial) column(rows int) schedule.View {
	v, one := t.shares(rows), t.place(rows, 1)
	t.b.Do(0, schedule.Map{Op: cell.Zero, Out: one})
	t.b.Do(0, schedule.Map{Op: cell.OneMinus, Out: one, A: one})
	t.b.Do(0, schedule.Map{Op: cell.ReLUGrad, Out: v, A: one, B: v})
	return v
}
