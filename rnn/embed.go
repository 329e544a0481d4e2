package rnn

import (
	"math"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// An Embedding is a table that training changes. The row of a step's symbol gives the first
// features of the first layer's input. Techniques do not know of it: they see X and its gradient.
type Embedding struct {
	Table *schedule.Matrix // Symbols × Embedding
	Grad  *schedule.Matrix // its gradient, of the same size, where training
}

// symbols views the symbol of each step of each sequence.
func (p *Matrices) symbols() schedule.View { return p.Given.All().Columns(0, 1) }

// embed forms X: rows of the table, and beside them what is given with the symbols.
func embed(p *Plan) {
	if p.Embed == nil {
		return
	}
	x, e := p.X.All(), p.Problem.Embedding
	p.Do(0, schedule.Gather{Index: p.symbols(), Table: p.Embed.Table.All(), Out: x.Columns(0, e)})
	if rest := p.Input - e; rest > 0 {
		p.Do(0, schedule.Map{Op: cell.Copy, Out: x.Columns(e, rest), A: p.Given.All().Columns(1, rest)})
	}
}

// embeddingGradient sums the gradient of X into the rows of the table, in the order of steps.
func embeddingGradient(p *Plan) {
	if p.Embed == nil || p.Pass != Train {
		return
	}
	p.Do(0, schedule.Map{Op: cell.Zero, Out: p.Embed.Grad.All()})
	p.Do(0, schedule.Scatter{Index: p.symbols(), Src: p.DX.All().Columns(0, p.Problem.Embedding), Table: p.Embed.Grad.All()})
}

// features are the rows of the first layer's input, or symbols where one-hot.
func (d *Data) features() []float64 {
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
func (d *Data) embeddingOf(dx []float64) []float64 {
	x, p, given := d.Get("x"), d.Problem, d.Problem.Given()
	out := make([]float64, p.Symbols*p.Embedding)
	for row := range len(x) / given {
		to := out[int(x[row*given])*p.Embedding:][:p.Embedding]
		for k, g := range dx[row*p.Input:][:p.Embedding] {
			to[k] += g * d.copies(row%d.Distinct)
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
	for _, v := range c.data.embeddingOf(square) {
		spread = max(spread, math.Sqrt(v))
	}
	var d difference
	for i, want := range c.data.embeddingOf(dx) {
		d.add(t.Values[i], want, i)
	}
	c.sums(t, d, spread, 1)
}
