package oracle

import (
	"math"

	"rnnbench/rnn"
)

// features are the rows of the first layer's input, or symbols where one-hot.
func features(d *rnn.Data) []float64 {
	x, p := d.Get("x"), d.Problem
	if p.Symbols == 0 {
		return widen(x)
	}
	table, given := d.Get("embedding"), p.Given()
	out := make([]float64, len(x)/given*p.Input)
	for row := range len(x) / given {
		at, to := x[row*given:(row+1)*given], out[row*p.Input:(row+1)*p.Input]
		for k, v := range table[int(at[0])*p.Embedding:][:p.Embedding] {
			to[k] = float64(v)
		}
		for k, v := range at[1:] {
			to[p.Embedding+k] = float64(v)
		}
	}
	return out
}

// embeddingOf sums dx, the gradients of the features of rows of distinct sequences, into that of
// the table. Each row counts as often as the batch repeats it.
func embeddingOf(d *rnn.Data, dx []float64) []float64 {
	x, p, given := d.Get("x"), d.Problem, d.Problem.Given()
	out := make([]float64, p.Symbols*p.Embedding)
	for row := range len(x) / given {
		to := out[int(x[row*given])*p.Embedding:][:p.Embedding]
		for k, g := range dx[row*p.Input:][:p.Embedding] {
			to[k] += g * d.Copies(row%d.Distinct)
		}
	}
	return out
}

// embeddingChecked has c compare the gradient of the table with sums of dx, the input's gradient.
func embeddingChecked(c *stepper, dx []float64) {
	t := c.tensor("grad_embedding")
	square := make([]float64, len(dx))
	for i, v := range dx {
		square[i] = v * v
	}
	spread := 0.0
	for _, v := range embeddingOf(c.data, square) {
		spread = max(spread, math.Sqrt(v))
	}
	var d difference
	for i, want := range embeddingOf(c.data, dx) {
		d.add(t.Values[i], want, i)
	}
	c.sums(t, d, spread, 1)
}
