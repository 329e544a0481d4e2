package cpu

import (
	"math"

	"rnnbench/rnn/schedule"
)

// A squares is a schedule.Squares: each share has bands of its own.
type squares struct {
	bands []matrix
	out   matrix
}

func (p *binder) squares(op schedule.Squares) work {
	w := &squares{out: p.matrix(op.Out)}
	for i := range op.Out.Cols {
		w.bands = append(w.bands, p.matrix(op.Band(i)))
	}
	return w
}

func (w *squares) share(part, parts int, _ *scratch) {
	from, to := span(len(w.bands), 1, part, parts)
	for b := from; b < to; b++ {
		band := &w.bands[b]
		sum := 0.0
		for i := range band.rows {
			sum += sumSquares(band.row(i))
		}
		w.out.data[b] = float32(sum)
	}
}

// sumSquares adds in four sums, which do not wait for each other.
func sumSquares(row []float32) float64 {
	var s [4]float64
	for len(row) >= 4 {
		a, b, c, d := float64(row[0]), float64(row[1]), float64(row[2]), float64(row[3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
		row = row[4:]
	}
	for _, v := range row {
		s[0] += float64(v) * float64(v)
	}
	return s[0] + s[1] + s[2] + s[3]
}

// An update is a schedule.Update: each share has elements of its own, row after row.
type update struct {
	op                    schedule.Update
	param, also, grad     matrix
	first, second         matrix // moments
	rates, squares        matrix
	beta1, beta2, epsilon float32
}

func (p *binder) update(op schedule.Update) work {
	w := &update{
		op: op, param: p.matrix(op.Param), also: p.matrix(op.Copy), grad: p.matrix(op.Grad), rates: p.matrix(op.Rates),
		squares: p.matrix(op.Squares), beta1: op.Beta1, beta2: op.Beta2, epsilon: op.Epsilon,
	}
	if len(op.Moment) > 0 {
		w.first = p.matrix(op.Moment[0])
	}
	if len(op.Moment) > 1 {
		w.second = p.matrix(op.Moment[1])
	}
	return w
}

func (w *update) share(part, parts int, _ *scratch) {
	scale := w.scale()
	from, to := span(w.param.rows*w.param.cols, line, part, parts)
	for from < to {
		row, col := from/w.param.cols, from%w.param.cols
		n := min(to-from, w.param.cols-col)
		if scale != 0 {
			w.change(row, col, n, scale)
		}
		if w.also.data != nil {
			copy(w.also.row(row)[col:][:n], w.param.row(row)[col:])
		}
		from += n
	}
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
func (w *update) change(row, col, n int, scale float32) {
	param, grad, rate := w.param.row(row)[col:][:n], w.grad.row(row)[col:][:n], w.rates.data[schedule.Rate]
	switch {
	case w.op.Rule == schedule.Adam:
		adam(param, grad, w.first.row(row)[col:][:n], w.second.row(row)[col:][:n], w.beta1, w.beta2, w.epsilon, scale, rate, w.rates.data[schedule.Root])
	case w.first.data != nil:
		first := w.first.row(row)[col:][:n]
		for i, g := range grad {
			m := w.beta1*first[i] + scale*g
			first[i] = m
			param[i] -= rate * m
		}
	default:
		for i, g := range grad {
			param[i] -= rate * (scale * g)
		}
	}
}

// adam is Update.Step of schedule.Adam over a row.
func adam(param, grad, first, second []float32, beta1, beta2, epsilon, scale, rate, root float32) {
	for i, g := range grad {
		g *= scale
		m := beta1*first[i] + (1-beta1)*g
		v := beta2*second[i] + (1-beta2)*g*g
		first[i], second[i] = m, v
		param[i] -= rate * m / (float32(math.Sqrt(float64(v)))*root + epsilon)
	}
}
