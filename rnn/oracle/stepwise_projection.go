package oracle

import (
	"math/rand/v2"
	"slices"

	"rnnbench/internal/parallel"
)

// A stepProjection holds what the outputs of one layer with a projection are checked by. State 0 of
// its stepLayer is what the run has projected.
type stepProjection struct {
	projects []float32 // P × H
	before   []float64 // outputs before the first step, distinct × P
	outputs  []float64 // after each step, rows × P
}

// projectionLaid is the projection of a layer whose states are set; nil: none. State 0 becomes what is projected.
func projectionLaid(c *stepper, y *stepLayer, name func(string) string) *stepProjection {
	if c.Projection == 0 {
		return nil
	}
	j := &stepProjection{projects: c.data.Get(name("weight_hr")), before: y.initial[0], outputs: y.state[0]}
	y.initial[0] = make([]float64, c.distinct*c.Hidden) // no step reads it
	unprojected := orders{block: c.distinct * c.Hidden, forward: c.tensor(name("unprojected")).Values}
	y.state[0] = unprojected.read(y.backwards)
	return j
}

// stateName is the name of state s of number n of Problem.Reads, before any projection.
func stateName(c *stepper, y *stepLayer, s, n int) string {
	if s == 0 && y.stepProjection != nil {
		return c.Named("unprojected", n)
	}
	return c.Named(c.Cell.States[s], n)
}

// throughAll returns what the recurrent product multiplies: before the first step, and after each.
func throughAll(c *stepper, y *stepLayer) []float64 {
	if j := y.stepProjection; j != nil {
		return slices.Concat(j.before, j.outputs)
	}
	s := c.Cell.Through
	return slices.Concat(y.initial[s], y.state[s])
}

// throughBefore is what the recurrent product multiplies in the step of row.
func throughBefore(c *stepper, y *stepLayer, row int) []float64 {
	j := y.stepProjection
	switch {
	case j == nil:
		return c.before(y, c.Cell.Through, row)
	case row < c.distinct:
		return j.before[row*c.Projection:][:c.Projection]
	}
	return j.outputs[(row-c.distinct)*c.Projection:][:c.Projection]
}

// projected checks the outputs of number l of Problem.Reads, if it has a projection, by what the run has projected.
func projected(c *stepper, l int, flops float64) {
	y, h, n := &c.layers[l], c.Hidden, c.Projection
	if y.stepProjection == nil {
		return
	}
	columns := make([]float32, h*n) // the weights of each output, as a column
	for i, w := range y.projects {
		columns[i%h*n+i/h] = w
	}
	c.rowProducts(c.Named(c.Cell.States[0], l), y.outputs, n, flops, c.Frames(), func(row, _ int, col []float64) float64 {
		var sum float64
		for k, v := range y.state[0][row*h : (row+1)*h] {
			sum += v * col[k]
		}
		return sum
	}, columns, h, n)
}

// received checks the gradients of the outputs: what the layer above brings, and what the recurrent
// product of the step after adds.
func received(c *stepper, b *backStep, flops float64) (err error) {
	n, first := c.Projection, c.distinct*c.Projection
	if b.whole, err = c.kept(c.Layer[b.l].Projection.D); err != nil {
		return err
	}
	weight, rows := c.layers[b.l].weightR, c.Cell.Recurrent*c.Hidden
	sum := func(row int, col []float64) (sum float64) {
		for q, d := range c.recurrent(b, row) {
			sum += d * col[q]
		}
		return sum
	}
	name := c.Named(c.Cell.States[0], b.l)
	c.rowProducts("gradient of "+name, b.whole[first:], n, flops, c.Frames(), func(row, k int, col []float64) float64 {
		want := b.above[row*n+k]
		if next := row + c.distinct; next < c.Frames()*c.distinct {
			want += sum(next, col)
		}
		return want
	}, weight, rows, n)
	all := make([]int, n)
	for k := range all {
		all[k] = k
	}
	t := c.tensor(c.Named("grad_"+c.Cell.States[0]+"0", b.l))
	found := make([][]difference, n)
	columns := c.columnsOf(weight, rows, n, all)
	parallel.For(n, func(k int) {
		found[k] = make([]difference, 1)
		for row := range c.distinct {
			found[k][0].add(t.Values[row*n+k], sum(row, columns[k]), row*n+k)
		}
	})
	d := differences(found, 0)
	c.judge(t.Name, t.Values, n, d)
	return nil
}

// gradientOf is the gradient of a unit's cell output in the step of row. column has the unit's
// weights in the projection.
func gradientOf(c *stepper, b *backStep, row, unit int, column []float64) (sum float64) {
	if c.Projection == 0 {
		return b.above[row*c.Hidden+unit]
	}
	for k, d := range b.whole[(row+c.distinct)*c.Projection:][:c.Projection] {
		sum += d * column[k]
	}
	return sum
}

// projectionWeights checks the gradient of the projection.
func projectionWeights(c *stepper, b *backStep, rng *rand.Rand) {
	n, signs := c.Projection, draw(rng, c.Hidden)
	c.weights(c.Named("grad_weight_hr", b.l), b.whole[c.distinct*n:], n, 0, n, factorsOf(c.layers[b.l].state[0], c.Hidden, signs), signs, c.Hidden)
}
