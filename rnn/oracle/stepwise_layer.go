package oracle

import "rnnbench/rnn"

// A stepLayer holds what the steps of one layer are computed from; a layer that runs both ways has
// two. Rows are steps × distinct sequences in the order in which the layer reads the steps.
type stepLayer struct {
	backwards bool

	level   int // of the layer
	fan     int // weights by which a unit's gate reads the input
	width   int
	in      []float64 // rows × width; symbols where one-hot
	oneHot  bool
	initial [][]float64 // per state, distinct × H
	state   [][]float64 // per state, after each step, rows × H
	weightX []float32
	weightR []float32
	biasX   []float32
	biasR   []float32
	peep    []float32

	*stepProjection // nil: none
}

// step is the kth of so many steps in the order of reading.
func (y *stepLayer) step(k, steps int) int {
	if y.backwards {
		return steps - 1 - k
	}
	return k
}

// orders holds rows of steps in either order. The turned ones are made on first use.
type orders struct {
	block           int // values of a step
	forward, turned []float64
}

// read returns the rows in the order in which a layer reads them.
func (o *orders) read(backwards bool) []float64 {
	if !backwards {
		return o.forward
	}
	if o.turned == nil {
		o.turned = stepsTurned(o.forward, o.block)
	}
	return o.turned
}

// stepsTurned returns blocks of so many values in the opposite order.
func stepsTurned(values []float64, block int) []float64 {
	out := make([]float64, 0, len(values))
	for at := len(values) - block; at >= 0; at -= block {
		out = append(out, values[at:at+block]...)
	}
	return out
}

// turnedValues is the largest number of values, for each step and sequence, that orders take
// besides those of the answer.
func turnedValues(p rnn.Problem) (n int) {
	if p.Skip > 0 { // what shortcuts add up
		n = 2 * (p.Layers / p.Skip) * p.Out()
	}
	if p.Direction == rnn.FromFirst {
		return n
	}
	for i := range p.Reads() {
		if p.Backwards(i) {
			n += len(p.Cell.States)*p.Hidden + 2*p.Projection + p.Width(i/p.Ways())
		}
	}
	n += p.Layers * (p.Ways() - 1) * p.Out() // side by side
	if p.Pass == rnn.Train {
		n += 3 * max(p.Input, p.Out()) // gradients of a layer's input, one way's turned, and of its output
	}
	return n
}

func (c *stepper) layout() {
	in := &orders{block: c.distinct * c.Input, forward: features(c.data)}
	if c.OneHot {
		in.block = c.distinct
	}
	pass := &bypass{p: c.Problem, from: in.forward}
	for l := range c.Layers {
		var outputs []*orders
		for w := range c.Ways() {
			y, of := stepLayerOf(c, l*c.Ways()+w, in)
			c.layers, outputs = append(c.layers, y), append(outputs, of)
		}
		in = outputs[0]
		if len(outputs) > 1 {
			in = &orders{block: c.distinct * c.Out(), forward: joinColumns([][]float64{outputs[0].forward, outputs[1].forward}, rnn.Emits(c.Problem))}
		}
		sum := pass.next(l, in.forward)
		if _, ok := rnn.ShortcutTo(c.Problem, l); ok {
			in = &orders{block: c.distinct * c.Out(), forward: sum}
		}
	}
	c.outputs = in.forward
}

// stepLayerOf makes number i of Problem.Reads from its input, and returns its outputs too.
func stepLayerOf(c *stepper, i int, in *orders) (y stepLayer, outputs *orders) {
	name := func(s string) string { return c.Named(s, i) }
	y = stepLayer{backwards: c.Backwards(i), level: i / c.Ways(), weightX: c.data.Get(name("weight_ih")), biasX: c.data.Get(name("bias_ih"))}
	y.fan, y.width, y.oneHot, y.in = c.FanIn(y.level), c.Width(y.level), y.level == 0 && c.OneHot, in.read(y.backwards)
	if y.oneHot {
		y.width = 1
	}
	if c.Cell.Recurrent > 0 {
		y.weightR, y.biasR = wholeR(c.Problem, c.data.Get(name("weight_hh"))), c.data.Get(name("bias_hh"))
	}
	if len(c.Cell.Peeps) > 0 {
		y.peep = c.data.Get(name("peephole"))
	}
	for k, s := range c.Cell.States {
		state := &orders{block: c.distinct * rnn.StateWidth(c.Problem, k), forward: c.tensor(name(s)).Values}
		y.initial = append(y.initial, widen(c.data.Get(name(s+"0"))))
		y.state = append(y.state, state.read(y.backwards))
		if outputs == nil {
			outputs = state
		}
	}
	y.stepProjection = projectionLaid(c, &y, name)
	return y, outputs
}

// outputsChecked checks the outputs that a run shows besides the states: they are the same values,
// in the order of steps.
func outputsChecked(c *stepper) {
	t := c.tensor("y")
	if t == nil {
		return
	}
	c.judge(t.Name, t.Values, t.Cols, differs(t.Values, c.outputs))
}

// differs compares all values with the expected ones.
func differs(have, want []float64) (d difference) {
	for i, v := range want {
		d.add(have[i], v, i)
	}
	return d
}
