package oracle

import (
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
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
		f := newFactors(len(b.dx) / gates)
		for k := range c.Cell.Window {
			f.add(y.in, width, signs[k*width:(k+1)*width], k*c.distinct)
		}
		c.weights(name("grad_weight_ih"), b.dx, gates, 0, gates, f, signs, len(signs))
	}
	c.weights(name("grad_bias_ih"), b.dx, gates, 0, gates, ones(len(b.dx)/gates), []float64{1}, 1)
	if rec == 0 {
		return
	}
	d, stride := b.dx, gates
	if b.dr != nil {
		d, stride = b.dr, rec
	}
	states := throughAll(c, y)[:len(d)/stride*rnn.Emits(c.Problem)]
	recurrentWeights(c, name("grad_weight_hh"), rng, d, stride, states)
	c.weights(name("grad_bias_hh"), d, stride, 0, rec, ones(len(d)/stride), []float64{1}, 1)
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
	parallel.For(len(out), func(i int) {
		for k, x := range rows[i*cols : (i+1)*cols] {
			out[i] += x * v[k]
		}
	})
	return out
}

// factors are, for each row of what weights multiply, its product with signs and its norm.
type factors struct{ sums, norms []float64 }

func newFactors(rows int) factors { return factors{make([]float64, rows), make([]float64, rows)} }

// add adds the rows of in, of so many columns, which begin at a later row. It leaves out what is past the end.
func (f factors) add(in []float64, cols int, signs []float64, later int) {
	parallel.For(max(0, len(f.sums)-later), func(i int) {
		row := in[i*cols : (i+1)*cols]
		var sum float64
		for k, v := range row {
			sum += v * signs[k]
		}
		f.sums[later+i] += sum
		f.norms[later+i] = math.Hypot(f.norms[later+i], math.Sqrt(norm(row)))
	})
}

// factorsOf are those of rows of so many columns.
func factorsOf(rows []float64, cols int, signs []float64) factors {
	f := newFactors(len(rows) / cols)
	f.add(rows, cols, signs, 0)
	return f
}

// ones are the factors of a bias.
func ones(rows int) factors {
	one := slices.Repeat([]float64{1}, rows)
	return factors{one, one}
}

// weights compares two vectors: the product of a gradient with signs, and the sum over all rows of
// columns [from, to) of d, each row times its factor. The gradient's rows are d's columns. Errors
// are relative to the norm of a gradient's row, whether its terms have one direction or many.
func (c *stepper) weights(name string, d []float64, cols, from, to int, by factors, signs []float64, width int) {
	t := c.tensor(name)
	have := c.project(t.Values, width, signs)
	const block = 64
	found := make([][]difference, (to-from+block-1)/block)
	spread := make([]float64, len(found))
	parallel.For(len(found), func(i int) {
		lo, hi := from+i*block, min(to, from+(i+1)*block)
		sum, along, square := make([]float64, hi-lo), make([]float64, hi-lo), make([]float64, hi-lo)
		for row := range len(d) / cols {
			n := c.data.Copies(row % c.distinct)
			f, size := n*by.sums[row], n*by.norms[row]
			for k, g := range d[row*cols+lo : row*cols+hi] {
				sum[k] += f * g
				along[k] += size * g
				square[k] += size * g * size * g / n
			}
		}
		found[i] = make([]difference, 1)
		for k := range sum {
			found[i][0].add(have[lo+k], sum[k], (lo+k)*width)
			spread[i] = max(spread[i], math.Sqrt(square[k]), math.Abs(along[k]))
		}
	})
	c.sums(t, differences(found, 0), slices.Max(spread), width)
}

// sums judges a gradient that is a sum over all rows by the size of its terms, since they may
// happen to cancel.
func (c *stepper) sums(t *Tensor, d difference, spread float64, width int) {
	t.Spread = max(t.Spread, spread/math.Sqrt(float64(width)))
	d.scale = max(d.scale, spread)
	e, _ := expect(c.measured, t.Name, c.UnitError)
	c.worse(t.Name, t.Cols, e, d)
}

// table checks the gradient of a one-hot input's weights, a row for each symbol.
func (c *stepper) table(b *backStep, name string, signs []float64) {
	t, y, gates := c.tensor(name), &c.layers[b.l], len(signs)
	have, each := c.project(t.Values, gates, signs), c.project(b.dx, gates, signs)
	sum, square := make([]float64, t.Rows), make([]float64, t.Rows)
	for row, v := range each {
		n := c.data.Copies(row % c.distinct)
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
