package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/schedule"
)

// A squares is a schedule.Squares. Each share has bands of its own.
type squares struct {
	kernels *simd.Kernels
	a, out  matrix
	rows    *touched // all other rows are zero; nil: unknown
}

func (p *binder) squares(op schedule.Squares) work {
	return &squares{kernels: p.device.kernels, a: p.matrix(op.A), out: p.matrix(op.Out), rows: p.touched(op.Rows, op.A.Rows)}
}

// share adds up rows in double precision, since a band has millions of elements.
func (w *squares) share(part, parts int, _ *scratch) {
	from, to := span(w.out.cols, 1, part, parts)
	first := func(band int) int { return w.a.rows * band / w.out.cols }
	if w.rows != nil {
		w.rows.mark(first(from), first(to))
		defer w.rows.unmark(first(from), first(to))
	}
	for b := from; b < to; b++ {
		sum := 0.0
		for i := first(b); i < first(b+1); i++ {
			if w.rows == nil || w.rows.named[i] {
				sum += float64(w.kernels.Squares(w.a.row(i)))
			}
		}
		w.out.data[b] = float32(sum)
	}
}

// An update is a schedule.Update. Each share has contiguous elements of its own.
type update struct {
	kernels           *simd.Kernels
	op                schedule.Update
	param, also, grad matrix
	first, second     matrix // moments
	rates, squares    matrix
	rows              *touched  // gradients of all other rows are zero; nil: unknown
	zeros             []float32 // the gradient of other rows; nil: these rows do not change
}

// leastRow is the length from which it pays to find the rows that have a gradient.
const leastRow = 4 * line

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
	alone := op.Alone()
	if alone || op.Param.Cols >= leastRow {
		w.rows = p.touched(op.Rows, op.Param.Rows)
	}
	switch {
	case w.rows == nil:
		flatten(&w.param, &w.also, &w.grad, &w.first, &w.second)
	case !alone:
		w.zeros = make([]float32, op.Param.Cols)
	}
	return w
}

// flatten makes one long row of each matrix, if the rows of all of them are contiguous. Matrices
// without memory are ignored.
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
	switch {
	case w.zeros != nil:
		w.allRows(part, parts, scale, &s.step)
		return
	case w.rows != nil:
		w.touchedRows(part, parts, scale, &s.step)
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

// touchedRows updates each touched row once. A share takes every parts-th row, since the frequent
// words have low numbers.
func (w *update) touchedRows(part, parts int, scale float32, by *simd.Coefficients) {
	if scale == 0 {
		return
	}
	own := func(f func(row int)) {
		w.rows.each(func(row int) {
			if row%parts == part {
				f(row)
			}
		})
	}
	own(func(row int) {
		if !w.rows.named[row] {
			w.rows.named[row] = true
			w.change(row, 0, w.param.cols, by)
		}
	})
	own(func(row int) { w.rows.named[row] = false })
}

// allRows updates all rows, but reads gradients of the touched rows alone.
func (w *update) allRows(part, parts int, scale float32, by *simd.Coefficients) {
	from, to := span(w.param.rows, 1, part, parts)
	w.rows.mark(from, to)
	defer w.rows.unmark(from, to)
	for row := from; row < to; row++ {
		grad := w.zeros
		if w.rows.named[row] {
			grad = w.grad.row(row)
		}
		if scale != 0 {
			w.step(row, 0, w.param.cols, grad, by)
		}
		if w.also.data != nil {
			copy(w.also.row(row), w.param.row(row))
		}
	}
}

// scale returns the factor of gradients; 0: nothing changes.
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

// change updates n elements of a row by its gradient.
func (w *update) change(row, col, n int, by *simd.Coefficients) {
	w.step(row, col, n, w.grad.row(row)[col:][:n], by)
}

// step updates n elements of a row by grad.
func (w *update) step(row, col, n int, grad []float32, by *simd.Coefficients) {
	of := func(m *matrix) []float32 { return m.row(row)[col:][:n] }
	switch {
	case w.op.Rule == schedule.Adam:
		w.kernels.Adam(of(&w.param), of(&w.first), of(&w.second), grad, by)
	case w.op.Nesterov:
		w.kernels.Nesterov(of(&w.param), of(&w.first), grad, by)
	case w.first.data != nil:
		w.kernels.Momentum(of(&w.param), of(&w.first), grad, by)
	default:
		w.kernels.Descend(of(&w.param), grad, by)
	}
}
