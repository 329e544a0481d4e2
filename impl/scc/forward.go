package scc

import (
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/schedule"
)

// forward computes frames [from, to).
func (n *network) forward(from, to int) {
	if n.intra {
		n.frames(from, to-from)
		return
	}
	for t := from; t < to; t++ {
		n.frames(t, 1)
	}
}

// frames runs every component in the order of activation for c frames from t.
func (n *network) frames(t, c int) {
	n.held = make([]bool, len(n.Layers))
	for _, b := range n.biases {
		if t, c := n.clip(b.to[0], t, c); c > 0 && b.after < 0 {
			n.do(schedule.Map{Op: cell.Copy, Out: n.rows(b.out, t, c), A: b.row})
			n.hold(b.to)
		}
	}
	for i, comp := range n.order.Components {
		n.component(i, t, c)
		for j := range n.products {
			if p := &n.products[j]; !p.inside && slices.Contains(comp.Layers, p.from) {
				n.product(j, t, c)
			}
		}
	}
}

// component activates the layers of component i: frame after frame if it is recurrent, delayed
// connections first (3.1).
func (n *network) component(i, t, c int) {
	comp := n.order.Components[i]
	inside := func(from int, delayed bool, t, c int) {
		for j := range n.products {
			if p := &n.products[j]; p.inside && p.from == from && (p.delay > 0) == delayed {
				n.product(j, t, c)
			}
		}
	}
	step := func(t, c int) {
		for _, k := range comp.Layers {
			inside(k, true, t, c)
		}
		for _, k := range comp.Layers {
			n.activate(k, t, c)
			inside(k, false, t, c)
		}
	}
	before := n.held
	each := func(t, c int) {
		n.held = slices.Clone(before)
		step(t, c)
	}
	if !comp.Recurrent {
		n.bands(n.delay(comp.Layers), t, c, each)
		return
	}
	for s := t; s < t+c; s++ {
		each(s, 1)
	}
}

// clip narrows frames [t, t+c) to those that layer k computes: a softmax only computes new ones.
func (n *network) clip(k, t, c int) (from, count int) {
	if n.Layers[k].Activation == graph.Softmax && t < n.size.History {
		return n.size.History, t + c - n.size.History
	}
	return t, c
}

func (n *network) hold(layers []int) {
	for _, k := range layers {
		n.held[k] = true
	}
}

// product adds product i to the sums of the layers that it feeds.
func (n *network) product(i, t, c int) {
	p := &n.products[i]
	if t, c = n.clip(p.to[0], t, c); c <= 0 {
		return
	}
	held := slices.ContainsFunc(p.to, func(k int) bool { return n.held[k] })
	for _, k := range p.to {
		if held && !n.held[k] {
			n.do(schedule.Map{Op: cell.Zero, Out: n.rows(n.y[k], t, c)})
		}
	}
	n.hold(p.to)
	n.bands(p.delay, t, c, func(t, c int) { n.multiply(p, held, t, c) })
	for _, b := range n.biases {
		if b.after == i {
			out := n.rows(b.out, t, c)
			n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: b.row})
		}
	}
}

// multiply computes p at frames whose rows are one band. held says that the sums already hold
// values.
func (n *network) multiply(p *product, held bool, t, c int) {
	out, in := n.rows(p.out, t, c), n.before(n.y[p.from], p.delay, t, c)
	switch {
	case p.table && held:
		for _, k := range p.to {
			table := p.weights.Columns(n.y[k].col-p.out.col, n.y[k].cols)
			temp, out := n.scratch(0, out.Rows, table.Cols), n.rows(n.y[k], t, c)
			n.do(schedule.Gather{Index: in, Table: table, Out: temp})
			n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: temp})
		}
	case p.table:
		n.do(schedule.Gather{Index: in, Table: p.weights, Out: out})
	default:
		n.do(schedule.Gemm{A: in, B: p.forward, TransB: !p.forward.M.Packed, C: out, Accumulate: held})
	}
}

// activate computes layer k from its sum so far and the layers that connect to
// it without a matrix: (2) to (5).
func (n *network) activate(k, t, c int) {
	l := n.Layers[k]
	if t, c = n.clip(k, t, c); c <= 0 || l.Input != graph.Hidden {
		return
	}
	out := n.rows(n.y[k], t, c)
	switch {
	case l.Aggregate == graph.Product:
		n.fold(cell.Mul, out, n.operands(k, t, c))
	case l.Aggregate == graph.Max:
		n.maximum(out, n.operands(k, t, c))
	default:
		operands := n.operands(k, t, c)
		if !n.held[k] && len(operands) == 1 && !n.diagonal(k) && l.Activation != graph.Linear { // nothing to sum
			n.do(schedule.Map{Op: l.Activation.Op(), Out: out, A: operands[0]})
			return
		}
		n.sum(k, t, c, operands)
	}
	switch l.Activation {
	case graph.Linear:
	case graph.Softmax:
		n.do(n.Loss(l, t-n.size.History, c))
	default:
		n.do(schedule.Map{Op: l.Activation.Op(), Out: out, A: out})
	}
}

// operands returns the vectors that layer k reads without weights.
func (n *network) operands(k, t, c int) []schedule.View {
	var list []schedule.View
	for _, m := range n.Into(k) {
		if e := n.Connections[m]; e.Weight == graph.Identity {
			list = append(list, n.before(n.y[e.From], e.Delay, t, c))
		}
	}
	return list
}

func (n *network) diagonal(k int) bool {
	return slices.ContainsFunc(n.Into(k), func(m int) bool { return n.Connections[m].Weight == graph.Diagonal })
}

// sum completes the sum of layer k.
func (n *network) sum(k, t, c int, operands []schedule.View) {
	out := n.rows(n.y[k], t, c)
	switch {
	case n.held[k]:
		n.fold(cell.Add, out, append([]schedule.View{out}, operands...))
	case len(operands) > 0:
		n.fold(cell.Add, out, operands)
		n.held[k] = true
	}
	for _, m := range n.Into(k) {
		e := n.Connections[m]
		if e.Weight != graph.Diagonal {
			continue
		}
		in, weights := n.before(n.y[e.From], e.Delay, t, c), n.view(n.Input(e.Param.Param), e)
		if !n.held[k] {
			n.do(schedule.Map{Op: cell.Mul, Out: out, A: in, B: weights})
			n.held[k] = true
			continue
		}
		temp := n.scratch(0, out.Rows, out.Cols)
		n.do(schedule.Map{Op: cell.Mul, Out: temp, A: in, B: weights})
		n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: temp})
	}
}

// fold sets out to op over all operands, the first of which may be out.
func (n *network) fold(op cell.Op, out schedule.View, operands []schedule.View) {
	acc := operands[0]
	for _, v := range operands[1:] {
		n.do(schedule.Map{Op: op, Out: out, A: acc, B: v})
		acc = out
	}
	if acc != out {
		n.do(schedule.Map{Op: cell.Copy, Out: out, A: acc})
	}
}

// maximum sets out to the element-wise maximum of operands: max(a, b) = max(a-b, 0) + b.
func (n *network) maximum(out schedule.View, operands []schedule.View) {
	acc := operands[0]
	for _, v := range operands[1:] {
		n.do(schedule.Map{Op: cell.Sub, Out: out, A: acc, B: v})
		n.do(schedule.Map{Op: cell.ReLU, Out: out, A: out})
		n.do(schedule.Map{Op: cell.Add, Out: out, A: out, B: v})
		acc = out
	}
	if acc != out {
		n.do(schedule.Map{Op: cell.Copy, Out: out, A: acc})
	}
}

// delay returns the longest delay of connections into layers, other than full ones.
func (n *network) delay(layers []int) (most int) {
	for _, k := range layers {
		for _, m := range n.Into(k) {
			if e := n.Connections[m]; e.Weight != graph.Full {
				most = max(most, e.Delay)
			}
		}
	}
	return most
}
