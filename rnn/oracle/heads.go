package oracle

import (
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// wholeR is R, or its gradient, as a matrix of recurrent gates·H × H, with zeros outside the
// blocks.
func wholeR[F float32 | float64](p rnn.Problem, r []F) []F {
	if p.Heads <= 1 {
		return r
	}
	h, u := p.Hidden, p.HeadUnits()
	out := make([]F, len(r)/u*h)
	for row := range len(r) / u {
		copy(out[row*h+row%h/u*u:], r[row*u:(row+1)*u])
	}
	return out
}

// blocksOf extracts R's blocks from a matrix of recurrent gates·H × H.
func blocksOf(p rnn.Problem, whole []float64) []float64 {
	if p.Heads <= 1 {
		return whole
	}
	h, u := p.Hidden, p.HeadUnits()
	out := make([]float64, 0, len(whole)/h*u)
	for row := range len(whole) / h {
		out = append(out, whole[row*h+row%h/u*u:][:u]...)
	}
	return slices.Clip(out)
}

// keptByGate is kept for gradients of products. Columns that are by head are put in the order of gates.
func keptByGate(c *stepper, b *rnn.LayerBack, m *schedule.Matrix) ([]float64, error) {
	d, err := c.kept(m)
	if err != nil || !b.ByHead {
		return d, err
	}
	out, h, u, gates := make([]float64, len(d)), c.Hidden, c.HeadUnits(), m.Cols/c.Hidden
	parallel.For(len(d)/m.Cols, func(row int) {
		from, to := d[row*m.Cols:(row+1)*m.Cols], out[row*m.Cols:(row+1)*m.Cols]
		for k := range c.Heads {
			for g := range gates {
				copy(to[g*h+k*u:][:u], from[(k*gates+g)*u:])
			}
		}
	})
	return out, nil
}

// recurrentWeights checks the gradient of R, block by block; d has the gradients of the products.
func recurrentWeights(c *stepper, name string, rng *rand.Rand, d []float64, stride int, states []float64) {
	for _, b := range c.AllBlocks(true) {
		signs := draw(rng, b.Units)
		c.weights(name, d, stride, b.First, b.First+b.Rows, factorsOf(columns(states, rnn.Emits(c.Problem), b.From, b.Units), b.Units, signs), signs, b.Units)
	}
}
