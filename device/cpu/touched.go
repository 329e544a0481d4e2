package cpu

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A run touches few rows of a large table, such as the input weights of a vocabulary: those that
// its symbols name. All other rows are known to be zero, and need not be read or written.

// A touched finds the rows of a table that a column of numbers names. Each share looks at rows of
// its own.
type touched struct {
	index   matrix
	named   []bool // by row, between mark and forget
	program *program
}

// touched returns the touched of a column, or nil if the column is empty.
func (p *binder) touched(column schedule.View, rows int) *touched {
	if column.Empty() {
		return nil
	}
	return &touched{index: p.matrix(column), named: make([]bool, rows), program: p.program}
}

// each calls f for the row of each number. Some rows come more than once.
func (t *touched) each(f func(row int)) {
	for i := range t.index.rows {
		if row, ok := t.program.index(t.index.row(i)[0], len(t.named)); ok {
			f(row)
		}
	}
}

// mark sets named for the rows from … to-1 that the column names.
func (t *touched) mark(from, to int) {
	t.each(func(row int) {
		if row >= from && row < to {
			t.named[row] = true
		}
	})
}

func (t *touched) unmark(from, to int) { clear(t.named[from:to]) }

// A zeroing sets a table to zero that only one scatter writes to. Unless the host has written to
// the table, only the rows that the scatter wrote to in the previous run are not zero.
type zeroing struct {
	table matrix
	last  []int32 // rows that the scatter wrote to in the latest run
	known bool
}

// share clears every parts-th of these rows or, if they are unknown, a band of all rows.
func (w *zeroing) share(part, parts int, _ *scratch) {
	if !w.known {
		from, to := span(w.table.rows, 1, part, parts)
		for i := from; i < to; i++ {
			clear(w.table.row(i))
		}
		return
	}
	for _, row := range w.last {
		if int(row)%parts == part {
			clear(w.table.row(int(row)))
		}
	}
}

// note records the rows that a scatter writes to.
func (w *zeroing) note(s *scatter) {
	w.last, w.known = w.last[:0], true
	for i := range s.index.rows {
		if row, ok := s.program.index(s.index.row(i)[0], s.table.rows); ok {
			w.last = append(w.last, int32(row))
		}
	}
}

// zeroTables finds tables that are zeroed and then written to by one scatter only.
func (p *binder) zeroTables() {
	writers := map[*schedule.Matrix][]int{}
	for i, n := range p.schedule.Nodes {
		for v, wrote := range schedule.Accesses(n.Op) {
			if wrote {
				writers[v.M] = append(writers[v.M], i)
			}
		}
	}
	p.zeroed = map[int]*zeroing{}
	for m, at := range writers {
		if len(at) != 2 {
			continue
		}
		zero, ok := p.schedule.Nodes[at[0]].Op.(schedule.Map)
		s, scatters := p.nodes[at[1]].work.(*scatter)
		if ok && scatters && zero.Op == cell.Zero && zero.Out == m.All() && s.table.rows == m.Rows && s.table.cols == m.Cols {
			w := &zeroing{table: s.table, last: make([]int32, 0, s.index.rows)}
			s.zeroing, p.zeroed[m.ID], p.nodes[at[0]].work = w, w, w
		}
	}
}

// forgetZeroed makes the next run zero all tables as a whole.
func forgetZeroed(zeroed map[int]*zeroing) {
	for _, w := range zeroed {
		w.known = false
	}
}
