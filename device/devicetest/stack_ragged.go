package devicetest

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// lengths are those of a batch, the longest first, now and then nil for all steps, and how many
// steps all sequences have.
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

// A lone is one sequence of a stack whose sequences have lengths of their own.
type lone struct {
	schedule.Stack
	number int
	rows   []int // of its steps among those of all sequences
}

// of are the sequence's rows of a matrix of all steps.
func (q *lone) of(all schedule.View) (rows []schedule.View) {
	for _, row := range q.rows {
		rows = append(rows, all.Band(row, 1))
	}
	return rows
}

// alone is the sequence's part of a matrix of all steps, in a matrix of its own.
func (v values) alone(q *lone, all schedule.View) (values, schedule.View) {
	v, part := v.more(len(q.rows), all.Cols)
	for i, row := range q.of(all) {
		v.eval(schedule.Map{Op: cell.Copy, Out: part.Band(i, 1), A: row})
	}
	return v, part
}

// among puts the sequence's part among the steps of all sequences.
func (v values) among(q *lone, all, part schedule.View) {
	for i, row := range q.of(all) {
		v.eval(schedule.Map{Op: cell.Copy, Out: row, A: part.Band(i, 1)})
	}
}

// states are the sequence's parts of states: a row for each run of a layer.
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

// row is where the state of a run of a layer lies among those of all sequences.
func (q *lone) row(run int) int { return run*len(q.Lengths) + q.number }

// putStates is the opposite of states.
func (v values) putStates(q *lone, all, parts []schedule.View) {
	for i, a := range all {
		for n := range q.W {
			v.eval(schedule.Map{Op: cell.Copy, Out: a.Band(q.row(n), 1), A: parts[i].Band(n, 1)})
		}
	}
}

// each runs f for each sequence of s on its own, on copies of its inputs.
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

// raggedVendor is vendor where sequences have lengths of their own: each runs alone.
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

// raggedVendorBackward is vendorBackward where sequences have lengths of their own: each runs alone, and the
// gradients of parameters are added up.
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
