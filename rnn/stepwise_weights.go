package rnn

import (
	"math"
	"math/rand/v2"
	"slices"
)

// parameters checks the gradients of a layer's weights and biases, which are sums
// over all steps and sequences: of weights by their products with a vector of random
// signs (Freivalds), which takes no longer than a few of their columns.
func (c *stepper) parameters(b *backStep) {
	y := &c.layers[b.l]
	width, gates, rec := c.Width(y.level), len(c.Cell.Gates)*c.Hidden, c.Cell.Recurrent*c.Hidden
	name := func(s string) string { return c.Named(s, b.l) }
	rng := rand.New(rand.NewPCG(c.Seed, uint64(b.l)|3<<60))
	if y.oneHot {
		c.table(b, name("grad_weight_ih"), draw(rng, gates))
	} else {
		signs := draw(rng, y.fan)
		sums := make([]float64, len(b.dx)/gates)
		for k := range c.Cell.Window {
			part := c.project(y.in, width, signs[k*width:(k+1)*width])
			for row := k * c.distinct; row < len(sums); row++ {
				sums[row] += part[row-k*c.distinct]
			}
		}
		c.weights(name("grad_weight_ih"), b.dx, gates, 0, gates, sums, signs, len(signs))
	}
	c.weights(name("grad_bias_ih"), b.dx, gates, 0, gates, nil, []float64{1}, 1)
	if rec == 0 {
		return
	}
	d, stride := b.dx, gates
	if b.dr != nil {
		d, stride = b.dr, rec
	}
	states := throughAll(c, y)[:len(d)/stride*Emits(c.Problem)]
	recurrentWeights(c, name("grad_weight_hh"), rng, d, stride, states)
	c.weights(name("grad_bias_hh"), d, stride, 0, rec, nil, []float64{1}, 1)
	if y.stepProjection != nil {
		projectionWeights(c, b, rng)
	}
}

// draw is a vector of random signs.
func draw(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(2*rng.IntN(2) - 1)
	}
	return v
}

// project is the product of each row with a vector.
func (c *stepper) project(rows []float64, cols int, v []float64) []float64 {
	out := make([]float64, len(rows)/cols)
	parallel(len(out), func(i int) {
		for k, x := range rows[i*cols : (i+1)*cols] {
			out[i] += x * v[k]
		}
	})
	return out
}

// weights compares two vectors: the product of a gradient with signs, and the sum over all rows of
// columns [from, to) of d, each row times its factor; nil: 1. The gradient's rows are d's columns.
func (c *stepper) weights(name string, d []float64, cols, from, to int, factors, signs []float64, width int) {
	t := c.tensor(name)
	have := c.project(t.Values, width, signs)
	const block = 64
	found := make([][]difference, (to-from+block-1)/block)
	spread := make([]float64, len(found))
	parallel(len(found), func(i int) {
		lo, hi := from+i*block, min(to, from+(i+1)*block)
		sum, square := make([]float64, hi-lo), make([]float64, hi-lo)
		for row := range len(d) / cols {
			f := c.data.copies(row % c.distinct)
			n := f
			if factors != nil {
				f *= factors[row]
			}
			for k, g := range d[row*cols+lo : row*cols+hi] {
				sum[k] += f * g
				square[k] += f * g * f * g / n
			}
		}
		found[i] = make([]difference, 1)
		for k := range sum {
			found[i][0].add(have[lo+k], sum[k], (lo+k)*width)
			spread[i] = max(spread[i], math.Sqrt(square[k]))
		}
	})
	c.sums(t, differences(found, 0), slices.Max(spread), width)
}

// sums judges a gradient that is a sum over all rows by the size of its terms, since they may
// happen to cancel.
func (c *stepper) sums(t *Tensor, d difference, spread float64, width int) {
	t.Spread = max(t.Spread, spread/math.Sqrt(float64(width)))
	d.scale = max(d.scale, spread)
	c.judge(t.Name, nil, t.Cols, c.tolerance(true), d)
}

// table checks the gradient of a one-hot input's weights, a row for each symbol.
func (c *stepper) table(b *backStep, name string, signs []float64) {
	t, y, gates := c.tensor(name), &c.layers[b.l], len(signs)
	have, each := c.project(t.Values, gates, signs), c.project(b.dx, gates, signs)
	sum, square := make([]float64, t.Rows), make([]float64, t.Rows)
	for row, v := range each {
		n := c.data.copies(row % c.distinct)
		sum[int(y.in[row])] += n * v
		square[int(y.in[row])] += n * v * v
	}
	var d difference
	spread := 0.0
	for k := range sum {
		d.add(have[k], sum[k], k*gates)
		spread = max(spread, math.Sqrt(square[k]))
	}
	c.sums(t, d, spread, gates)
}
