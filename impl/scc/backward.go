package scc

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/schedule"
)

// gradients is the backward pass of a network whose activations have been computed.
type gradients struct {
	*network
	begun map[schedule.View]bool // weight gradients that have been written
}

// backward propagates the errors of the new frames through all frames (16) and computes the
// gradients of weights (19): over all frames at once with intra, else frame by frame. Where no error
// arrives, nothing is computed.
func (n *gradients) backward() {
	for k, l := range n.Layers {
		if l.Activation == graph.Softmax { // the forward pass has left its gradient there
			n.mark(k, n.size.History, n.size.Steps)
		}
	}
	frames := n.size.Frames()
	if n.intra {
		n.framesBack(0, frames)
		n.weightGradients(0, frames)
	} else {
		for t := frames - 1; t >= 0; t-- {
			n.framesBack(t, 1)
			n.weightGradients(t, 1)
		}
	}
	n.finish()
}

func (n *gradients) framesBack(t, c int) {
	for i := len(n.order.Components) - 1; i >= 0; i-- {
		n.componentBack(n.order.Components[i], t, c)
	}
}

// componentBack propagates errors through a component: first from the layers that it feeds, then
// backwards within it, then to the layers that feed it without a matrix. Layers that feed it through
// a matrix take their errors in their own turn.
func (n *gradients) componentBack(comp graph.Component, t, c int) {
	for _, k := range comp.Layers {
		if l := n.Layers[k]; l.Input == graph.Hidden && l.Activation != graph.Softmax && l.Given != "" {
			n.given(k, t, c)
		}
	}
	pull := func(k int, wanted func(p *product) bool, t, c int) {
		for j := range n.products {
			if p := &n.products[j]; p.from == k && wanted(p) {
				n.productBack(p, t, c)
			}
		}
	}
	outside := func(p *product) bool { return !p.inside }
	delayed := func(p *product) bool { return p.inside && p.delay > 0 }
	direct := func(p *product) bool { return p.inside && p.delay == 0 }
	for _, k := range comp.Layers {
		pull(k, outside, t, c)
	}
	step := func(t, c int) {
		for _, k := range comp.Layers {
			pull(k, delayed, t, c)
		}
		for _, k := range slices.Backward(comp.Layers) {
			pull(k, direct, t, c)
			n.delta(k, t, c)
			n.push(k, t, c, true)
		}
	}
	if comp.Recurrent {
		for s := t + c - 1; s >= t; s-- {
			step(s, 1)
		}
	} else {
		step(t, c)
	}
	for _, k := range comp.Layers {
		n.push(k, t, c, false)
		if lead := n.y[k].lead; t == 0 && lead > 0 { // the initial activations
			pull(k, func(*product) bool { return true }, -lead, lead)
		}
	}
}

// mark records that layer k has gradients at frames [t, t+c).
func (n *gradients) mark(k, t, c int) {
	m := n.reached[k]
	for i := range c {
		m.at[m.lead+t+i] = true
	}
}

func (m *marks) has(t int) bool { return m.at[m.lead+t] }

// runs splits frames [t, t+c) into runs of equal key, and calls do for each.
func runs(t, c int, key func(t int) bool, do func(t, c int, key bool)) {
	for end := t + c; t < end; {
		s := t + 1
		for s < end && key(s) == key(t) {
			s++
		}
		do(t, s-t, key(t))
		t = s
	}
}

// eachReached calls do for each run of frames in which any of layers has a gradient. It first zeroes
// the gradients that the others lack there.
func (n *gradients) eachReached(layers []int, t, c int, do func(t, c int)) {
	some := func(t int) bool {
		return slices.ContainsFunc(layers, func(k int) bool { return n.reached[k].has(t) })
	}
	runs(t, c, some, func(t, c int, any bool) {
		if !any {
			return
		}
		for _, k := range layers {
			runs(t, c, n.reached[k].has, func(t, c int, has bool) {
				if !has {
					n.zero(k, t, c)
				}
			})
		}
		do(t, c)
	})
}

// eachReachedBand is eachReached, split further so that the rows delay frames earlier form one band.
func (n *gradients) eachReachedBand(layers []int, delay, t, c int, do func(t, c int)) {
	n.eachReached(layers, t, c, func(t, c int) { n.bands(delay, t, c, do) })
}

func (n *gradients) zero(k, t, c int) {
	n.do(schedule.Map{Op: cell.Zero, Out: n.rows(n.dy[k], t, c)})
	n.mark(k, t, c)
}

// add calls do with the gradient of layer k that lies delay frames before frames [t, t+c). It calls
// do once for each run in which the gradient exists, so that do must add to it, or does not exist.
// Sequences that end before frame t have no part in it.
func (n *gradients) add(k, delay, t, c int, do func(out schedule.View, t, c int, add bool)) {
	runs(t, c, func(t int) bool { return n.reached[k].has(t - delay) }, func(t, c int, has bool) {
		n.bands(delay, t, c, func(t, c int) {
			out := n.before(n.dy[k], delay, t, c)
			if !has && out.Rows < n.rows(n.dy[k], t-delay, c).Rows {
				n.zero(k, t-delay, c)
			}
			do(out, t, c, n.reached[k].has(t-delay))
			n.mark(k, t-delay, c)
		})
	})
}

// given adds the gradient that comes with the data.
func (n *gradients) given(k, t, c int) {
	if first := n.size.History; t < first {
		t, c = first, t+c-first
	}
	if c <= 0 {
		return
	}
	m := n.Input(n.Layers[k].Given)
	n.add(k, 0, t, c, func(out schedule.View, t, _ int, add bool) {
		n.copyOrAdd(out, m.Band(n.at(t-n.size.History), out.Rows), add)
	})
}

// copyOrAdd sets out = v or, with add, out += v.
func (n *gradients) copyOrAdd(out, v schedule.View, add bool) {
	if add {
		n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: v})
	} else {
		n.do(schedule.Map{Op: cell.Copy, Out: out, A: v})
	}
}

// productBack propagates the gradients of p's outputs to frames [t, t+c) of the layer that p reads.
func (n *gradients) productBack(p *product, t, c int) {
	if n.dy[p.from].m == nil {
		return
	}
	from, to := max(t+p.delay, 0), min(t+c+p.delay, n.size.Frames())
	n.eachReached(p.to, from, to-from, func(at, c int) {
		n.add(p.from, p.delay, at, c, func(out schedule.View, t, c int, add bool) {
			n.do(schedule.Gemm{A: n.rows(p.dout, t, c), B: p.backward, C: out, Accumulate: add})
		})
	})
}

// delta turns the gradient of layer k's activation into the gradient of its sum (16).
func (n *gradients) delta(k, t, c int) {
	l := n.Layers[k]
	if l.Input != graph.Hidden || l.Activation == graph.Linear || l.Activation == graph.Softmax {
		return
	}
	n.eachReached([]int{k}, t, c, func(t, c int) {
		d := n.rows(n.dy[k], t, c)
		m := schedule.Map{Op: l.Activation.Grad(), Out: d, A: d}
		if m.Op.Operands() > 1 {
			m.B = n.rows(n.y[k], t, c)
		}
		n.do(m)
	})
}

// push propagates layer k's gradient to the layers that feed it without a matrix, inside its
// component or outside: (17) and (18).
func (n *gradients) push(k, t, c int, inside bool) {
	if n.Layers[k].Input != graph.Hidden {
		return
	}
	n.eachReachedBand([]int{k}, n.delay([]int{k}), t, c, func(t, c int) {
		place := 0 // index among the operands
		for _, m := range n.Into(k) {
			e := n.Connections[m]
			if e.Weight == graph.Full {
				continue
			}
			if n.order.Inside(e) == inside && n.dy[e.From].m != nil && n.alias(e.From) < 0 {
				n.add(e.From, e.Delay, t, c, func(out schedule.View, t, c int, add bool) {
					n.share(k, e, place, out, t, c, add)
				})
			}
			if e.Weight == graph.Identity {
				place++
			}
		}
	})
}

// share sends layer k's gradient at frames [t, t+c) back through connection e, whose operand has
// index place. It sets out to the result, or adds it.
func (n *gradients) share(k int, e graph.Connection, place int, out schedule.View, t, c int, add bool) {
	delta, target := n.rows(n.dy[k], t, c), out
	if add {
		target = n.scratch(0, out.Rows, out.Cols)
	}
	operands := n.operands(k, t, c)
	switch l := n.Layers[k]; {
	case e.Weight == graph.Diagonal:
		n.do(schedule.Map{Op: cell.Mul, Out: target, A: delta, B: n.view(n.Input(e.Param.Param), e)})
	case l.Aggregate == graph.Sum || len(operands) == 1:
		n.copyOrAdd(out, delta, add)
		return
	case l.Aggregate == graph.Product:
		n.fold(cell.Mul, target, append([]schedule.View{delta}, slices.Delete(operands, place, place+1)...))
	default:
		n.shareOfMaximum(target, delta, operands, place)
	}
	if add {
		n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: target})
	}
}

// shareOfMaximum sets out to the gradient of one operand of a maximum: what the maxima with later
// operands let through.
func (n *gradients) shareOfMaximum(out, delta schedule.View, operands []schedule.View, place int) {
	before, pass := n.scratch(1, out.Rows, out.Cols), n.scratch(2, out.Rows, out.Cols)
	n.do(schedule.Map{Op: cell.Copy, Out: out, A: delta})
	for i := len(operands) - 1; i >= max(place, 1); i-- {
		n.maximum(before, operands[:i])
		n.do(schedule.Map{Op: cell.Sub, Out: before, A: before, B: operands[i]})
		n.do(schedule.Map{Op: cell.ReLUGrad, Out: pass, A: out, B: before})
		if i > place {
			n.do(schedule.Map{Op: cell.Copy, Out: out, A: pass})
		} else {
			n.do(schedule.Map{Op: cell.Sub, Out: out, A: out, B: pass})
		}
	}
}

// weightGradients adds frames [t, t+c) to the gradients of all weights (19).
func (n *gradients) weightGradients(t, c int) {
	for i := range n.products {
		p := &n.products[i]
		n.eachReachedBand(p.to, p.delay, t, c, func(t, c int) {
			d, in := n.rows(p.dout, t, c), n.before(n.y[p.from], p.delay, t, c)
			begun := n.markWritten(p.grad)
			switch {
			case !p.table:
				n.do(schedule.Gemm{A: d, TransA: true, B: in, C: p.grad, Accumulate: begun})
			case !begun:
				n.do(schedule.Map{Op: cell.Zero, Out: p.grad})
				fallthrough
			default:
				n.do(schedule.Scatter{Index: in, Src: d, Table: p.grad})
			}
		})
	}
	for _, e := range n.Connections {
		if e.Weight != graph.Diagonal {
			continue
		}
		n.eachReachedBand([]int{e.To}, e.Delay, t, c, func(t, c int) {
			d, in := n.rows(n.dy[e.To], t, c), n.before(n.y[e.From], e.Delay, t, c)
			temp, out := n.scratch(0, d.Rows, d.Cols), n.gradient(e)
			n.do(schedule.Map{Op: cell.Mul, Out: temp, A: d, B: in})
			n.do(schedule.SumRows{A: temp, Out: out, Accumulate: n.markWritten(out)})
		})
	}
	for k, l := range n.Layers {
		if len(l.Bias) == 0 {
			continue
		}
		n.eachReached([]int{k}, t, c, func(t, c int) {
			out := n.biasGradient(k, 0)
			n.do(schedule.SumRows{A: n.rows(n.dy[k], t, c), Out: out, Accumulate: n.markWritten(out)})
		})
	}
}

// biasGradient views the gradient of layer k's jth bias.
func (n *gradients) biasGradient(k, j int) schedule.View {
	slot := n.Layers[k].Bias[j]
	return n.Gradient(slot.Param).All().Columns(slot.Offset, n.Layers[k].Size)
}

// markWritten reports whether gradient v has been written before, and notes that it is written now.
func (n *gradients) markWritten(v schedule.View) bool {
	begun := n.begun[v]
	n.begun[v] = true
	return begun
}

// finish completes the gradients. Further biases of a layer copy the gradient of its first. Initial
// activations take theirs from before the first frame. Gradients that no error has reached are zero.
func (n *gradients) finish() {
	rest := func(v schedule.View) {
		if !n.markWritten(v) {
			n.do(schedule.Map{Op: cell.Zero, Out: v})
		}
	}
	for _, p := range n.products {
		rest(p.grad)
	}
	for _, e := range n.Connections {
		if e.Weight == graph.Diagonal {
			rest(n.gradient(e))
		}
	}
	for k, l := range n.Layers {
		for j := range l.Bias {
			if j == 0 {
				rest(n.biasGradient(k, 0))
			} else {
				n.do(schedule.Map{Op: cell.Copy, Out: n.biasGradient(k, j), A: n.biasGradient(k, 0)})
			}
		}
		if l.Input == graph.Dense {
			n.zeroUnreached(k, 0, n.size.Frames())
		}
		if l.Initial == "" {
			continue
		}
		lead := n.y[k].lead
		n.zeroUnreached(k, -lead, lead)
		if out := n.Gradient(l.Initial); out != n.dy[k].m {
			n.do(schedule.Map{Op: cell.Copy, Out: out.All(), A: n.rows(n.dy[k], -lead, lead)})
		}
	}
}

// zeroUnreached sets to zero the gradients of layer k that no error has reached.
func (n *gradients) zeroUnreached(k, t, c int) {
	runs(t, c, n.reached[k].has, func(t, c int, has bool) {
		if !has {
			n.zero(k, t, c)
		}
	})
}
