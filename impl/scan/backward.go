package scan

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// head runs the output layer over steps [t, t+steps).
func (n *network) head(t, steps int) {
	h, logits := n.Head, n.Rows(n.Head.Prob, t, steps)
	n.do(schedule.Gemm{A: n.Outputs(t, steps), B: n.headW.All(), C: logits})
	n.do(schedule.Map{Op: cell.Add, Out: logits, A: logits, B: h.B.All()})
	n.do(n.Loss(t, steps))
}

// headBack runs the gradient of head; more says that the gradients already hold later steps.
func (n *network) headBack(t, steps int, more bool) {
	h, grad := n.Head, n.Rows(n.Head.Prob, t, steps)
	n.do(schedule.Gemm{A: grad, B: n.headWBack.All(), C: n.Rows(h.DY, t, steps)})
	n.do(schedule.Gemm{A: grad, TransA: true, B: n.Outputs(t, steps), C: h.DW.All(), Accumulate: more})
	n.do(schedule.SumRows{A: grad, Out: h.DB.All(), Accumulate: more})
}

// packBackward packs the weights that gradients are multiplied by.
func (n *network) packBackward() {
	if n.Head != nil {
		n.headWBack = n.pack(n.Head.W.All(), false)
	}
	for l, y := range n.Layer {
		n.layers[l].wBack = n.packInputs(l, false)
		if n.recurrent > 0 {
			n.layers[l].rBack = packRecurrent(n, y.R.All(), false)
		}
	}
}

// startBackward makes the matrices of the backward pass, and zeroes the gradients that blocks add
// to.
func (n *network) startBackward() {
	rows := n.block * n.Batch
	reach := (n.Cell.Window - 1) * n.Batch
	n.dx = n.Matrix("d(x·W)", rows+reach, n.gates+len(n.Cell.Peeps)*n.Hidden)
	if n.recurrent > 0 {
		n.ds = n.Matrix("ds", rows+n.Batch, n.Hidden)
	}
	for i := range min(2, n.Layers-1) {
		n.dy[i] = n.Matrix(fmt.Sprintf("dy below%d", i), rows, n.Hidden)
	}
	if n.recurrent > 0 { // the rows of a whole block's last output, which no product writes
		n.do(schedule.Map{Op: cell.Zero, Out: n.ds.Band(rows, n.Batch)})
	}
	for l, y := range n.Layer {
		if reach > 0 {
			n.after = append(n.after, n.Matrix(fmt.Sprintf("d(x·W)%d after", l), reach, n.gates))
			n.ZeroTaps(0, l)
		}
		for s := range y.Grad.State {
			n.do(n.BeginCarry(l, s))
		}
		if oneHot(n.Plan, l) {
			n.do(schedule.Map{Op: cell.Zero, Out: y.Grad.W.All()})
		}
	}
}

// backward runs the gradient of steps [t, t+steps) of layer l, after that of all later steps.
func (n *network) backward(l, t, steps int, more bool) {
	dx, above := n.first(n.dx, t, steps), n.above(l, t, steps)
	s := n.Sequence(l, t, steps, n.first(n.x, t, steps))
	g := n.SequenceBack(l, t, above, dx, schedule.View{}, schedule.View{})
	if n.steps != nil {
		n.steps.Backward(l, s, g)
	} else {
		n.scansBackward(l, t, s, g)
	}
	for _, op := range n.Layer[l].BatchNorm.InputBack(n.ofProducts(dx)) {
		n.do(op)
	}
	n.weightGradients(l, t, steps, more)
	if below := n.below(l, t, steps); !below.Empty() {
		n.inputGradient(l, t, steps, below)
	}
}

// scansBackward runs the gradients of the scans of layer l over the steps of s, the first of which is t.
func (n *network) scansBackward(l, t int, s schedule.Sequence, g schedule.SequenceGrad) {
	dx, steps, batch := g.DX, s.Steps, n.Batches.At(t)
	surrogate, core := n.parts()
	n.scanBackward(s, g, core)
	if surrogate.cell != nil {
		// The products give the gradients of the states before each step. The state before a
		// step is the output of the step before it, so the scan reads them one step later. The
		// last output of the block is in none of its products: its gradient is 0 here.
		ds := n.ds.Band(0, (steps+1)*batch)
		for i, b := range n.blocks {
			n.do(schedule.Gemm{A: b.Of(n.FromInput(dx)), B: n.layers[l].rBack[i].All(), C: b.State(ds.Band(0, steps*batch)), Accumulate: i >= max(1, n.Heads)})
		}
		if steps < n.block || batch < n.Batch {
			n.do(schedule.Map{Op: cell.Zero, Out: ds.Band(steps*batch, batch)})
		}
		g.DOut = ds.Band(batch, steps*batch)
		n.scanBackward(s, g, surrogate)
		carry, _ := n.CarryThrough(l, t)
		add := schedule.Map{Op: cell.Add, Out: carry, A: carry, B: ds.Band(0, batch)}
		if n.do(add); n.alone == backwardScan { // each run adds to what its scan leaves
			n.Do(0, add)
		}
	}
}

// inputGradient computes the gradient of layer l's input at steps [t, t+steps). The input enters the
// products of its own step and, through a window, those of later steps.
func (n *network) inputGradient(l, t, steps int, below schedule.View) {
	b := n.Batches
	if n.after != nil {
		within := func(t int) int { return b.Rows(t, min(n.Cell.Window-1, n.Steps-t)) } // the rows that a window reaches from step t
		if t+steps < n.Steps {
			m := within(t + steps)
			n.do(schedule.Map{Op: cell.Copy, Out: n.ofProducts(n.dx.Band(b.Rows(t, steps), m)), A: n.after[l].Band(0, m)})
		}
		if t > 0 {
			m := within(t)
			n.do(schedule.Map{Op: cell.Copy, Out: n.after[l].Band(0, m), A: n.ofProducts(n.dx.Band(0, m))})
		}
	}
	products := n.Layer[l].BatchNorm.Products(n.ofProducts(n.dx.All()))
	for k, w := range n.layers[l].wBack {
		for _, run := range b.Later(k, t, steps) {
			m := b.Rows(run.T, run.N)
			n.do(schedule.Gemm{A: products.Band(b.Rows(t, run.T-t), m), B: w.All(), C: below.Band(b.Earlier(k, run)-b.Before(t), m), Accumulate: k > 0})
		}
	}
}

// ofProducts narrows dx to the gradients of products; those of peepholes lie behind them.
func (n *network) ofProducts(dx schedule.View) schedule.View { return dx.Columns(0, n.gates) }

// scanBackward runs the gradient of one part's scan.
func (n *network) scanBackward(s schedule.Sequence, g schedule.SequenceGrad, p part) {
	var carry []schedule.View
	for _, i := range p.states {
		carry = append(carry, g.Carry[i])
	}
	g.Carry, g.DX = carry, n.columns(g.DX, p.gate, p.cell.Gradients())
	n.do(schedule.ScanBackward{Sequence: n.narrow(s, p), SequenceGrad: g})
}

// above views the gradient of layer l's output at steps [t, t+steps).
func (n *network) above(l, t, steps int) schedule.View {
	if l == n.Layers-1 {
		return n.Rows(n.Top(), t, steps)
	}
	return n.first(n.dy[l%2], t, steps)
}

// below views the gradient of layer l's input at steps [t, t+steps); empty if the input is one-hot.
func (n *network) below(l, t, steps int) schedule.View {
	switch {
	case l > 0:
		return n.first(n.dy[(l-1)%2], t, steps)
	case n.OneHot:
		return schedule.View{}
	}
	return n.Rows(n.DX, t, steps)
}

// weightGradients adds the share of steps [t, t+steps) to the gradients of
// layer l's weights.
func (n *network) weightGradients(l, t, steps int, more bool) {
	g, all := n.Layer[l].Grad, n.first(n.dx, t, steps)
	dx := n.ofProducts(all)
	products := n.Layer[l].BatchNorm.Products(dx)
	if oneHot(n.Plan, l) {
		n.do(schedule.Scatter{Index: n.InputOf(l, t, steps), Src: products, Table: g.W.All()})
	} else {
		for _, tap := range n.Taps(l, t, steps) {
			n.do(schedule.Gemm{A: tap.Of(products), TransA: true, B: tap.In, C: tap.DW, Accumulate: more || tap.Again})
		}
	}
	n.do(schedule.SumRows{A: dx, Out: g.BX.All(), Accumulate: more})
	if g.Peep != nil {
		n.do(schedule.SumRows{A: all.Columns(n.gates, g.Peep.Cols), Out: g.Peep.All(), Accumulate: more})
	}
	for _, b := range n.blocks {
		n.do(schedule.Gemm{A: b.Of(n.FromInput(dx)), TransA: true, B: b.State(n.Through(l, t, steps)), C: b.Weights(g.R.All()), Accumulate: more})
	}
}

// finishBackward copies the gradients of input biases to recurrent biases: they are equal.
func (n *network) finishBackward() {
	for _, y := range n.Layer {
		if n.recurrent > 0 {
			n.do(schedule.Map{Op: cell.Copy, Out: y.Grad.BR.All(), A: n.FromInput(y.Grad.BX.All())})
		}
	}
}
