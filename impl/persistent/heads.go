package persistent

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Heads exchange no states, so each is a persistent operation of its own, and heads on different
// streams run side by side. An operation needs the gates of its own units next to each other, but
// parameters have all units of a gate next to each other. So a layer with heads reads copies of its
// parameters that are ordered by head, then gate. Its gradients are copied back.

// heads is the number of persistent operations of each block: one a head.
func (n *network) heads() int { return max(1, n.Heads) }

// byHead narrows v, whose columns are ordered by head, then gate, to those of head k. Without heads
// these are all columns.
func (n *network) byHead(v schedule.View, k int) schedule.View {
	width := v.Cols / n.heads()
	if v.Empty() {
		return v
	}
	return v.Columns(k*width, width)
}

func (n *network) eachByHead(views []schedule.View, k int) []schedule.View {
	out := make([]schedule.View, len(views))
	for i, v := range views {
		out[i] = n.byHead(v, k)
	}
	return out
}

// sequence returns head k's part of layer l at steps [t, t+steps). x holds the input products.
func (n *network) sequence(l, t, steps int, x schedule.View, k int) schedule.Sequence {
	s, own := n.Sequence(l, t, steps, x), n.layers[l].own
	s.X, s.BX, s.BR, s.Peep = n.byHead(x, k), n.byHead(own.BX.All(), k), n.byHead(rnn.Maybe(own.BR), k), n.byHead(rnn.Maybe(own.Peep), k)
	s.State, s.Saved = n.eachByHead(s.State, k), n.byHead(s.Saved, k)
	return s
}

// gradient narrows the gradients of a sequence to head k.
func (n *network) gradient(g schedule.SequenceGrad, k int) schedule.SequenceGrad {
	g.DOut, g.DX, g.DR, g.DPeep = n.byHead(g.DOut, k), n.byHead(g.DX, k), n.byHead(g.DR, k), n.byHead(g.DPeep, k)
	g.Carry = n.eachByHead(g.Carry, k)
	return g
}

// recurrent views the gradients of head k's recurrent products.
func (n *network) recurrent(b *rnn.LayerBack, k int) schedule.View {
	if b.DR != nil {
		return n.byHead(b.DR.All(), k)
	}
	return n.byHead(b.DX.All(), k).Columns(0, n.Cell.Recurrent*n.HeadUnits())
}

// A copied pairs a matrix ordered by gate with its copy ordered by head.
type copied struct {
	gates, heads *schedule.Matrix
	byColumns    bool // units are columns, not rows
}

// ordered returns the parameters that layer l reads: the plan's or, with heads, copies ordered by
// head. params and grads list the copies of parameters and gradients.
func (n *network) ordered(l int) (own rnn.Layer, params, grads []copied) {
	y := n.Plan.Layer[l]
	if n.Heads <= 1 {
		return y, nil, nil
	}
	own = y
	add := func(list *[]copied, m **schedule.Matrix, byColumns bool) {
		if *m != nil {
			c := copied{*m, n.Scratch(fmt.Sprintf("%s by head", (*m).Name), (*m).Rows, (*m).Cols), byColumns}
			*list, *m = append(*list, c), c.heads
		}
	}
	add(&params, &own.W, oneHot(n, l))
	add(&params, &own.R, false)
	add(&params, &own.BX, true)
	add(&params, &own.BR, true)
	add(&params, &own.Peep, true)
	if n.Pass == rnn.Train {
		add(&grads, &own.Grad.W, oneHot(n, l))
		add(&grads, &own.Grad.R, false)
		add(&grads, &own.Grad.BX, true)
		add(&grads, &own.Grad.BR, true)
		add(&grads, &own.Grad.Peep, true)
	}
	return own, params, grads
}

// copies returns the operations that copy c from gate order to head order, or back.
func (n *network) copies(c copied, back bool) []schedule.Op {
	u := n.HeadUnits()
	part := func(m *schedule.Matrix, at int) schedule.View {
		if c.byColumns {
			return m.All().Columns(at, u)
		}
		return m.Band(at, u)
	}
	vectors := c.gates.Rows / n.Hidden
	if c.byColumns {
		vectors = c.gates.Cols / n.Hidden
	}
	var ops []schedule.Op
	for k := range n.Heads {
		for g := range vectors {
			from, to := part(c.gates, g*n.Hidden+k*u), part(c.heads, (k*vectors+g)*u)
			if back {
				from, to = to, from
			}
			ops = append(ops, schedule.Map{Op: cell.Copy, Out: to, A: from})
		}
	}
	return ops
}

// headGradients sums the gradients of layer l's parameters in head order, and copies them to gate
// order.
func (n *network) headGradients(l int) {
	y := &n.layers[l]
	g, dx, product, stream := y.own.Grad, y.back.DX.All(), n.products(l), n.stream(l, 0)
	if in := n.InputOf(l, 0, n.Steps); oneHot(n, l) {
		n.Do(product, schedule.Map{Op: cell.Zero, Out: g.W.All()})
		n.Do(product, schedule.Scatter{Index: in, Src: dx, Table: g.W.All()})
	} else {
		n.Do(product, schedule.Gemm{A: dx, TransA: true, B: in, C: g.W.All()})
	}
	rows := n.Cell.Recurrent * n.HeadUnits()
	for k := range n.Heads {
		dr := n.recurrent(y.back, k)
		n.Do(n.stream(l, k), schedule.Gemm{A: dr, TransA: true, B: n.byHead(y.back.Through(0, n.Steps), k), C: g.R.Band(k*rows, rows)})
		if n.Cell.SplitGrad {
			n.Do(n.stream(l, k), schedule.SumRows{A: dr, Out: n.byHead(g.BR.All(), k)})
		}
	}
	n.Do(product, schedule.SumRows{A: dx, Out: g.BX.All()})
	if !n.Cell.SplitGrad {
		for k := range n.Heads {
			n.Do(product, schedule.Map{Op: cell.Copy, Out: n.byHead(g.BR.All(), k), A: n.byHead(g.BX.All(), k).Columns(0, rows)})
		}
	}
	if g.Peep != nil {
		n.Do(stream, schedule.SumRows{A: y.back.DPeep.All(), Out: g.Peep.All()})
	}
	for _, c := range y.grads {
		for _, op := range n.copies(c, true) {
			n.Do(product, op)
		}
	}
}
