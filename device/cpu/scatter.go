package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// A scatter runs schedule.Scatter. Each share has columns of its own, so each row of the table adds
// rows of src in their order.
type scatter struct {
	kernels           *simd.Kernels
	index, src, table matrix
	program           *program
	zeroing           *zeroing // sets the table to zero before this; nil: other operations do
	chains            []chains // one per share; nil: src has too few rows to need them
}

// A row of the table with more than manyTerms terms adds partial sums of someTerms: the rounding
// errors of equal terms would add up in one long sum.
const manyTerms, someTerms = 512, 256

// Chains link the rows of src with the same index, in their order.
type chains struct {
	first, count []int32 // per row of the table: 1 + the first row of src, and the number of rows; 0 between runs
	next         []int32 // per row of src: 1 + the next row of the chain; 0: none
}

func newScatter(p *binder, op schedule.Scatter) *scatter {
	w := &scatter{
		kernels: p.device.kernels, index: p.matrix(op.Index), src: p.matrix(op.Src), table: p.matrix(op.Table), program: p.program,
	}
	w.chain(p.device.workers)
	return w
}

// chain allocates chains for each worker, if src has more than manyTerms rows.
func (w *scatter) chain(workers int) {
	if w.src.rows <= manyTerms {
		return
	}
	for range workers {
		w.chains = append(w.chains, chains{
			first: make([]int32, w.table.rows), count: make([]int32, w.table.rows), next: make([]int32, w.src.rows),
		})
	}
}

// chained returns how many 32-bit numbers the chains of one worker take.
func chained(s *schedule.Schedule) (numbers int) {
	for op := range s.Operations() {
		if op, ok := op.(schedule.Scatter); ok && op.Src.Rows > manyTerms {
			numbers += 2*op.Table.Rows + op.Src.Rows
		}
	}
	return numbers
}

func (w *scatter) share(part, parts int, s *scratch) {
	if part == 0 && w.zeroing != nil {
		w.zeroing.note(w)
	}
	from, to := span(w.src.cols, line, part, parts)
	if from == to {
		return
	}
	if w.chains == nil {
		w.each(func(i, at int) { w.add(i, at, from, to) })
		return
	}
	c := &w.chains[part]
	w.link(c)
	w.each(func(i, at int) {
		switch {
		case c.count[at] <= manyTerms:
			w.add(i, at, from, to)
		case c.first[at] == int32(i+1):
			w.sum(c, at, from, to, s.part[:])
		}
	})
	w.each(func(_, at int) { c.first[at], c.count[at] = 0, 0 })
}

// each calls f for each row of src with its row of the table.
func (w *scatter) each(f func(i, at int)) {
	for i := range w.src.rows {
		if at, ok := w.program.index(w.index.row(i)[0], w.table.rows); ok {
			f(i, at)
		}
	}
}

// add adds columns from … to of row i of src to row at of the table.
func (w *scatter) add(i, at, from, to int) {
	w.kernels.Accumulate(w.table.data[at*w.table.stride:][from:to], w.src.row(i)[from:to])
}

// link builds the chains, from the last row of src to the first.
func (w *scatter) link(c *chains) {
	for i := w.src.rows - 1; i >= 0; i-- {
		if at, ok := w.program.index(w.index.row(i)[0], w.table.rows); ok {
			c.next[i] = c.first[at]
			c.first[at] = int32(i + 1)
			c.count[at]++
		}
	}
}

// sum adds columns from … to of a chain to row at of the table, by partial sums of someTerms rows. part
// is scratch memory for them.
func (w *scatter) sum(c *chains, at, from, to int, part []float32) {
	for ; from < to; from += len(part) {
		end := min(to, from+len(part))
		sum, terms := part[:end-from], 0
		clear(sum)
		for i := c.first[at]; i > 0; i = c.next[i-1] {
			w.kernels.Accumulate(sum, w.src.row(int(i - 1))[from:end])
			if terms++; terms == someTerms || c.next[i-1] == 0 {
				w.kernels.Accumulate(w.table.data[at*w.table.stride:][from:end], sum)
				clear(sum)
				terms = 0
			}
		}
	}
}
