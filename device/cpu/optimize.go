package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// A squares is a schedule.Squares: each share has bands of its own.
type squares struct {
	kernels *simd.Kernels
	bands   []matrix
	out     matrix
}

func (p *binder) squares(op schedule.Squares) work {
	w := &squares{kernels: p.device.kernels, out: p.matrix(op.Out)}
	for i := range op.Out.Cols {
		w.bands = append(w.bands, p.matrix(op.Band(i)))
	}
	return w
}

// share adds row after row in double precision: a band has millions of elements.
func (w *squares) share(part, parts int, _ *scratch) {
	from, to := span(len(w.bands), 1, part, parts)
	for b := from; b < to; b++ {
		band := &w.bands[b]
		sum := 0.0
		for i := range band.rows {
			sum += float64(w.kernels.Squares(band.row(i)))
		}
		w.out.data[b] = float32(sum)
	}
}

// An update is a schedule.Update: each share has elements of its own, row after row.
type update struct {
	kernels           *simd.Kernels
	op                schedule.Update
	param, also, grad matrix
	first, second     matrix // moments
	rates, squares    matrix
	index             matrix // of the rows that change, if others do not
	changed           []bool // by row, while there is an index
	program           *program
}

func (p *binder) update(op schedule.Update) work {
	w := &update{
		kernels: p.device.kernels, op: op, param: p.matrix(op.Param), also: p.matrix(op.Copy), grad: p.matrix(op.Grad),
		rates: p.matrix(op.Rates), squares: p.matrix(op.Squares),
	}
	if len(op.Moment) > 0 {
		w.first = p.matrix(op.Moment[0])
	}
	if len(op.Moment) > 1 {
		w.second = p.matrix(op.Moment[1])
	}
	if w.index = p.matrix(op.Rows); w.index.data != nil {
		w.changed, w.program = make([]bool, w.param.rows), p.program
		return w
	}
	flatten(&w.param, &w.also, &w.grad, &w.first, &w.second)
	return w
}

// flatten makes a long row of each matrix, where the rows of all follow each other without a gap.
// Those without memory stay as they are.
func flatten(all ...*matrix) {
	for _, m := range all {
		if m.data != nil && !m.dense() {
			return
		}
	}
	for _, m := range all {
		m.rows, m.cols = min(m.rows, 1), m.rows*m.cols
	}
}

func (w *update) share(part, parts int, s *scratch) {
	scale := w.scale()
	s.step.Set(scale, w.rates.data[schedule.Rate], w.op.Beta1, w.op.Beta2, w.rates.data[schedule.Root], w.op.Epsilon)
	if w.index.data != nil {
		w.rows(part, parts, scale, &s.step)
		return
	}
	from, to := span(w.param.rows*w.param.cols, line, part, parts)
	for from < to {
		row, col := from/w.param.cols, from%w.param.cols
		n := min(to-from, w.param.cols-col)
		if scale != 0 {
			w.change(row, col, n, &s.step)
		}
		if w.also.data != nil {
			copy(w.also.row(row)[col:][:n], w.param.row(row)[col:])
		}
		from += n
	}
}

// rows changes each row that the index names, once. A share takes every so manyth row: words that
// are frequent have low numbers.
func (w *update) rows(part, parts int, scale float32, by *simd.Coefficients) {
	each := func(f func(row int)) {
		for i := range w.index.rows {
			if row, ok := w.program.index(w.index.row(i)[0], w.param.rows); ok && row%parts == part {
				f(row)
			}
		}
	}
	if scale == 0 {
		return
	}
	each(func(row int) {
		if !w.changed[row] {
			w.changed[row] = true
			w.change(row, 0, w.param.cols, by)
		}
	})
	each(func(row int) { w.changed[row] = false })
}

// scale is what gradients are multiplied by; 0: nothing changes.
func (w *update) scale() float32 {
	var rates [schedule.RateColumns]float64
	for i := range rates {
		rates[i] = float64(w.rates.data[i])
	}
	sum := 0.0
	if w.squares.data != nil {
		for _, v := range w.squares.row(0) {
			sum += float64(v)
		}
	}
	return float32(w.op.Scale(rates[:], sum))
}

// change moves n elements of a row.
func (w *update) change(row, col, n int, by *simd.Coefficients) {
	of := func(m *matrix) []float32 { return m.row(row)[col:][:n] }
	switch {
	case w.op.Rule == schedule.Adam:
		w.kernels.Adam(of(&w.param), of(&w.first), of(&w.second), of(&w.grad), by)
	case w.first.data != nil:
		w.kernels.Momentum(of(&w.param), of(&w.first), of(&w.grad), by)
	default:
		w.kernels.Descend(of(&w.param), of(&w.grad), by)
	}
}
