package cudnnstyle

import (
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// head runs the output layer over all steps at once: nothing recurs in it.
func (n *network) head() {
	h, stream := n.Head, n.inputStream(n.Layers-1)
	out, logits := n.Outputs(0, n.Steps), h.Prob.All()
	n.Do(stream, schedule.Gemm{A: out, B: h.W.All(), TransB: true, C: logits})
	n.Do(stream, schedule.Map{Op: cell.Add, Out: logits, A: logits, B: h.B.All()})
	n.Do(stream, n.Loss(0, n.Steps))
	if n.Pass == rnn.Train {
		n.Do(stream, schedule.Gemm{A: logits, B: h.W.All(), C: h.DY.All()})
	}
}

func (n *network) startBackward() {
	for l := range n.Layers {
		y, stream := n.layers[l], n.recurrentStream(l)
		for _, m := range n.Layer[l].Grad.State {
			n.Do(stream, schedule.Map{Op: cell.Zero, Out: m.All()})
		}
		if y.dpeep != nil {
			n.Do(stream, schedule.Map{Op: cell.Zero, Out: y.dpeep.All()})
		}
	}
}

// backward runs the layer at depth from the top, the step that is so many from
// the end. As soon as a block of steps is done, the gradient of its input
// follows in one product.
func (n *network) backward(depth, fromEnd int) {
	l, t := n.Layers-1-depth, n.Steps-1-fromEnd
	y := &n.layers[l]
	stream := n.recurrentStream(l)
	above := n.Top()
	if l < n.Layers-1 {
		above = n.layers[l+1].below
	}
	dx, dr := n.Rows(y.dx, t, 1), n.recurrentGradient(l, t, 1)
	step := n.StepBack(l, t, n.Rows(above, t, 1), dx, dr, rnn.Maybe(y.dpeep))
	if n.fused {
		n.Do(stream, step)
	} else {
		for _, m := range step.Maps(y.temp.All()) {
			n.Do(stream, m)
		}
	}
	if !dr.Empty() {
		carry, written := n.CarryThrough(l)
		n.productBack(stream, dr, y.rb, carry, written)
	}
	if t%n.block == 0 && y.below != nil {
		steps := min(n.block, n.Steps-t)
		n.productBack(n.inputStream(l), n.Rows(y.dx, t, steps), y.wb, n.Rows(y.below, t, steps), false)
	}
	if n.perStep {
		n.weightGradient(l, t, 1)
	}
}

// weightGradients completes the gradients once the propagation is done, so that
// each matrix takes one large product (2.6).
func (n *network) weightGradients() {
	for l := n.Layers - 1; l >= 0; l-- {
		if !n.perStep {
			n.weightGradient(l, 0, n.Steps)
		}
		if y := n.layers[l]; y.dpeep != nil {
			n.Do(n.recurrentStream(l), schedule.SumRows{A: y.dpeep.All(), Out: n.Layer[l].Grad.Peep.All()})
		}
	}
	if h := n.Head; h != nil {
		stream := n.inputStream(n.Layers - 1)
		n.Do(stream, schedule.Gemm{A: h.Prob.All(), TransA: true, B: n.Outputs(0, n.Steps), C: h.DW.All()})
		n.Do(stream, schedule.SumRows{A: h.Prob.All(), Out: h.DB.All()})
	}
}

// weightGradient sums the gradients of layer l's weights over steps [t,
// t+steps), after those of the steps that follow.
func (n *network) weightGradient(l, t, steps int) {
	y, g := n.layers[l], n.Layer[l].Grad
	more := t+steps < n.Steps
	dx, dr := n.Rows(y.dx, t, steps), n.recurrentGradient(l, t, steps)
	in := n.InputOf(l, t, steps)
	inStream, recStream := n.inputStream(l), n.recurrentStream(l)
	if l == 0 && n.OneHot {
		if !more {
			n.Do(inStream, schedule.Map{Op: cell.Zero, Out: g.W.All()})
		}
		n.Do(inStream, schedule.Scatter{Index: in, Src: dx, Table: g.W.All()})
	} else {
		n.outer(inStream, dx, in, g.W, more)
	}
	if !dr.Empty() {
		n.outer(recStream, dr, n.Through(l, t, steps), g.R, more)
	}
	n.Do(inStream, schedule.SumRows{A: dx, Out: g.BX.All(), Accumulate: more})
	if dr.Empty() {
		return
	}
	if n.Cell.SplitGrad {
		n.Do(recStream, schedule.SumRows{A: dr, Out: g.BR.All(), Accumulate: more})
	} else {
		n.Do(inStream, schedule.Map{Op: cell.Copy, Out: g.BR.All(), A: n.FromInput(g.BX.All())})
	}
}

// recurrentGradient views the gradients of layer l's recurrent products at steps
// [t, t+steps); it is empty where there are none.
func (n *network) recurrentGradient(l, t, steps int) schedule.View {
	y := &n.layers[l]
	if n.Cell.SplitGrad {
		return n.Rows(y.dr, t, steps)
	}
	return n.FromInput(n.Rows(y.dx, t, steps))
}

// outer computes out = dᵀ · in, or adds it, gate by gate if not grouped.
func (n *network) outer(stream int, d, in schedule.View, out *schedule.Matrix, accumulate bool) {
	parts := 1
	if !n.grouped {
		parts = d.Cols / n.Hidden
	}
	width := d.Cols / parts
	for g := range parts {
		n.Do(stream, schedule.Gemm{A: d.Columns(g*width, width), TransA: true, B: in, C: out.Band(g*width, width), Accumulate: accumulate})
	}
}
