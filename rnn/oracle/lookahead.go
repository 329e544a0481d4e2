package oracle

import (
	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// convolve is the row convolution of rows by weights: see rnn.RowConvolution. A step has so many values.
func convolve[F float32 | float64](rows []float64, weights []F, step, cols int) []float64 {
	out := make([]float64, len(rows))
	parallel.For(len(rows)/cols, func(row int) {
		for j := range len(weights) / cols {
			from := row*cols + j*step
			if from >= len(rows) {
				break
			}
			for u, w := range weights[j*cols : (j+1)*cols] {
				out[row*cols+u] += float64(w) * rows[from+u]
			}
		}
	})
	return out
}

// convolveBack is the gradient of what convolve reads, given d, that of its result.
func convolveBack(d []float64, weights []float32, step, cols int) []float64 {
	out := make([]float64, len(d))
	parallel.For(len(d)/cols, func(row int) {
		for j := range len(weights) / cols {
			from := row*cols - j*step
			if from < 0 {
				break
			}
			for u, w := range weights[j*cols : (j+1)*cols] {
				out[row*cols+u] += float64(w) * d[from+u]
			}
		}
	})
	return out
}

// aheadOf has the weights of the row convolution behind layer l.
func aheadOf(d *rnn.Data, l int) []float32 { return d.Get(d.Problem.Named("weight_ahead", l)) }

// aheadBack is the gradient of what a row convolution behind layer l reads, given that of its output, d. It
// keeps the gradient of the weights. Without a row convolution it is d.
func aheadBack(r *reference, l int, d []float64) []float64 {
	p := r.p
	if !rnn.LooksAhead(p, l) {
		return d
	}
	step, cols, rows := r.Distinct*p.Out(), p.Out(), r.outputs(l)
	var dw []float64
	for j := range p.Lookahead {
		product := make([]float64, len(d))
		for i := j * step; i < len(rows); i++ {
			product[i-j*step] = rows[i] * d[i-j*step]
		}
		r.lossy.single(product)
		dw = append(dw, r.sum(product, cols)...)
	}
	r.layers[l].dAhead = dw
	out := convolveBack(d, aheadOf(r.Data, l), step, cols)
	r.lossy.single(out)
	r.lossy.store(out)
	return out
}
