package devicetest

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// lengths returns random lengths of a batch, the longest first, and their sum. Half of the time the
// list is nil: all sequences have all steps.
func (t *trial) lengths(batch, steps int) (list []int, rows int) {
	if t.flip() {
		return nil, batch * steps
	}
	for range batch {
		list = append(list, 1+t.rng.IntN(steps))
	}
	list[0] = steps
	slices.SortFunc(list, func(a, b int) int { return b - a })
	for _, n := range list {
		rows += n
	}
	return list, rows
}

// A lone is one sequence of a stack whose sequences differ in length.
type lone struct {
	schedule.Stack
	number int
	rows   []int // rows of its steps in matrices of all sequences
}

// of returns the sequence's rows of a matrix of all steps.
func (q *lone) of(all schedule.View) (rows []schedule.View) {
	for _, row := range q.rows {
		rows = append(rows, all.Band(row, 1))
	}
	return rows
}

// alone copies the sequence's rows of a matrix of all steps to a new matrix.
func (v values) alone(q *lone, all schedule.View) (values, schedule.View) {
	v, part := v.more(len(q.rows), all.Cols)
	for i, row := range q.of(all) {
		v.eval(schedule.Map{Op: cell.Copy, Out: part.Band(i, 1), A: row})
	}
	return v, part
}

// among is the opposite of alone: it copies part to the sequence's rows of all.
func (v values) among(q *lone, all, part schedule.View) {
	for i, row := range q.of(all) {
		v.eval(schedule.Map{Op: cell.Copy, Out: row, A: part.Band(i, 1)})
	}
}

// states copies the sequence's rows of states to new matrices, with a row for each run of a layer.
func (v values) states(q *lone, all []schedule.View) (_ values, parts []schedule.View) {
	for _, a := range all {
		var part schedule.View
		v, part = v.more(len(q.W), a.Cols)
		for n := range q.W {
			v.eval(schedule.Map{Op: cell.Copy, Out: part.Band(n, 1), A: a.Band(q.row(n), 1)})
		}
		parts = append(parts, part)
	}
	return v, parts
}

// row returns the row of a run's state in matrices of all sequences.
func (q *lone) row(run int) int { return run*len(q.Lengths) + q.number }

// putStates is the opposite of states.
func (v values) putStates(q *lone, all, parts []schedule.View) {
	for i, a := range all {
		for n := range q.W {
			v.eval(schedule.Map{Op: cell.Copy, Out: a.Band(q.row(n), 1), A: parts[i].Band(n, 1)})
		}
	}
}

// each calls f for each sequence of s, as a stack of this sequence alone, with copies of its
// inputs.
func (v values) each(s *schedule.Stack, f func(v values, q *lone, one schedule.Stack)) {
	for j, length := range s.Lengths {
		q, at := &lone{Stack: *s, number: j}, 0
		for t := range length {
			q.rows = append(q.rows, at+j)
			for _, n := range s.Lengths {
				if n > t || s.Padded() {
					at++
				}
			}
		}
		one, w := *s, v
		one.Steps, one.Lengths = length, nil
		w, one.X = w.alone(q, s.X)
		w, one.Y = w.alone(q, s.Y)
		w, one.First = w.states(q, s.First)
		f(w, q, one)
	}
}

// raggedVendor is vendor for sequences of different lengths: each runs alone.
func (v values) raggedVendor(op schedule.Vendor) {
	if op.Padded() {
		v.eval(schedule.Map{Op: cell.Zero, Out: op.Y})
	}
	v.each(&op.Stack, func(v values, q *lone, one schedule.Stack) {
		v, last := v.states(q, op.Last)
		v.vendor(schedule.Vendor{Stack: one, Last: last})
		v.among(q, op.Y, one.Y)
		v.putStates(q, op.Last, last)
	})
}

// raggedVendorBackward is vendorBackward for sequences of different lengths: each runs alone, and
// the gradients of parameters are added up.
func (v values) raggedVendorBackward(op schedule.VendorBackward) {
	sums := slices.Concat(op.DW, op.DR, op.DBX, op.DBR)
	for _, sum := range sums {
		v.eval(schedule.Map{Op: cell.Zero, Out: sum})
	}
	v.each(&op.Stack, func(v values, q *lone, one schedule.Stack) {
		g := schedule.VendorBackward{Stack: one}
		v, g.DY = v.alone(q, op.DY)
		v, g.DX = v.alone(q, op.DX)
		v, g.DFirst = v.states(q, op.DFirst)
		fresh := func(like []schedule.View) (views []schedule.View) {
			for _, l := range like {
				var view schedule.View
				v, view = v.more(l.Rows, l.Cols)
				views = append(views, view)
			}
			return views
		}
		g.DW, g.DR, g.DBX, g.DBR = fresh(op.DW), fresh(op.DR), fresh(op.DBX), fresh(op.DBR)
		v.vendorBackward(g)
		v.among(q, op.DX, g.DX)
		v.putStates(q, op.DFirst, g.DFirst)
		for i, part := range slices.Concat(g.DW, g.DR, g.DBX, g.DBR) {
			v.eval(schedule.Map{Op: cell.Add, Out: sums[i], A: sums[i], B: part})
		}
	})
}
