package cpu

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Of a table of many rows, such as the input weights of a vocabulary, a run touches few: those that
// its symbols name. What is known of all others need not be read or written.

// A touched knows which rows of a table a column of numbers names. Shares look at rows of their own.
type touched struct {
	index   matrix
	named   []bool // by row, between mark and forget
	program *program
}

// touched is that of a column, or nil if there is none.
func (p *binder) touched(column schedule.View, rows int) *touched {
	if column.Empty() {
		return nil
	}
	return &touched{index: p.matrix(column), named: make([]bool, rows), program: p.program}
}

// each calls f for the row of each number, some of them more than once.
func (t *touched) each(f func(row int)) {
	for i := range t.index.rows {
		if row, ok := t.program.index(t.index.row(i)[0], len(t.named)); ok {
			f(row)
		}
	}
}

// mark finds which rows from … to-1 are named.
func (t *touched) mark(from, to int) {
	t.each(func(row int) {
		if row >= from && row < to {
			t.named[row] = true
		}
	})
}

func (t *touched) forget(from, to int) { clear(t.named[from:to]) }

// A zeroing sets a table to zero that a scatter alone writes to. The rows that it wrote to in the
// run before are all that is not zero, unless the host has written to the table.
type zeroing struct {
	table matrix
	last  []int32 // rows that the latest scatter wrote to
	known bool
}

// share clears every so manyth row of these, or a band of all rows.
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

// note keeps which rows a scatter writes to.
func (w *zeroing) note(s *scatter) {
	w.last, w.known = w.last[:0], true
	for i := range s.index.rows {
		if row, ok := s.program.index(s.index.row(i)[0], s.table.rows); ok {
			w.last = append(w.last, int32(row))
		}
	}
}

// zeroTables finds tables that are zeroed and then written to by one scatter alone.
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

// forget has all tables be zeroed as a whole in the next run.
func forget(zeroed map[int]*zeroing) {
	for _, w := range zeroed {
		w.known = false
	}
}
