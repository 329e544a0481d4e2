package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A LayerBack is the part of one layer's backward pass that techniques share: the matrices of its
// gradients, and the sums at the end.
type LayerBack struct {
	DX, DR *schedule.Matrix // gradients of the products, or of what they are normalised to, T·B × G·H; DR where the cell splits them
	DPeep  *schedule.Matrix // of the peepholes by sequence, B × peepholes·H; nil: none
	Below  *schedule.Matrix // of the input, T·B × width; nil where one-hot

	ByHead bool // columns of DX and DR are ordered by head, and by gate within each

	plan             *Plan
	layer            int
	input, recurrent int           // streams
	prior            schedule.View // copies of the states before all steps, made on first use
}

// Back lays out the backward pass of layer l. The gradients of W and R are summed on the streams
// input and recurrent.
func (p *Plan) Back(l, input, recurrent int) *LayerBack {
	rows := p.Batches.Before(p.Steps)
	name := func(s string) string { return fmt.Sprintf("%s%d", s, l) }
	b := &LayerBack{plan: p, layer: l, input: input, recurrent: recurrent, Below: p.DX}
	b.DX = p.Matrix(name("d(x·W)"), rows, len(p.Cell.Gates)*p.Hidden)
	if p.Cell.SplitGrad {
		b.DR = p.Matrix(name("d(h·R)"), rows, p.Cell.Recurrent*p.Hidden)
	}
	if k := len(p.Cell.Peeps); k > 0 {
		b.DPeep = p.Matrix(name("dpeep"), p.Batch, k*p.Hidden)
	}
	if l > 0 {
		b.Below = p.Matrix(fmt.Sprintf("dy%d", l-1), rows, p.Width(l))
	}
	p.Layer[l].Back = b
	return b
}

// Input views the gradients of the input products at steps [t, t+n).
func (b *LayerBack) Input(t, n int) schedule.View {
	if m := b.plan.Layer[b.layer].Norm; m != nil {
		return b.plan.Rows(m.dInput, t, n)
	}
	if m := b.plan.Layer[b.layer].BatchNorm; m != nil {
		return b.plan.Rows(m.d, t, n)
	}
	return b.plan.Rows(b.DX, t, n)
}

// Recurrent views the gradients of the recurrent products at steps [t, t+n); it
// is empty where there are none.
func (b *LayerBack) Recurrent(t, n int) schedule.View {
	if m := b.plan.Layer[b.layer].Norm; m != nil {
		return b.plan.Rows(m.dRecurrent, t, n)
	}
	return b.Read(t, n)
}

// Read views the gradients of what the cell reads of the recurrent products at steps [t, t+n), which
// may be normalised; it is empty where there are none.
func (b *LayerBack) Read(t, n int) schedule.View {
	if b.plan.Cell.SplitGrad {
		return b.plan.Rows(b.DR, t, n)
	}
	return b.plan.FromInput(b.plan.Rows(b.DX, t, n))
}

// Start zeroes what the steps add to.
func (b *LayerBack) Start() {
	b.plan.ZeroTaps(b.input, b.layer)
	for s := range b.plan.Cell.States {
		b.plan.Do(b.recurrent, b.plan.BeginCarry(b.layer, s))
	}
	if b.DPeep != nil {
		b.plan.Do(b.recurrent, schedule.Map{Op: cell.Zero, Out: b.DPeep.All()})
	}
}

// Peeps sums the gradients of the peepholes over the sequences.
func (b *LayerBack) Peeps() {
	if b.DPeep != nil {
		b.plan.Do(b.recurrent, schedule.SumRows{A: b.DPeep.All(), Out: b.plan.Layer[b.layer].Grad.Peep.All()})
	}
}

// Project forms the gradients of a projection's outputs over all steps at once, if there is a
// projection. It follows the gradients of the products. It sums what comes from above and what the
// recurrent product brings from each step to the one before.
func (b *LayerBack) Project(above schedule.View) {
	p, y := b.plan, b.plan.Layer[b.layer]
	j := y.Projection
	if j == nil {
		return
	}
	p.Do(b.recurrent, j.Receive(0, p.Steps, above))
	for _, run := range append(p.Batches.Runs(0, 1, 1), p.Batches.Runs(1, p.Steps-1, p.Steps)...) {
		p.Do(b.recurrent, schedule.Gemm{A: b.Recurrent(run.T, run.N), B: y.R.All(), C: p.stateBefore(j.D, run.T, run.N), Accumulate: run.T > 0})
	}
}

// Through views the states before steps [t, t+n). It is a copy where they do not lie as one band,
// or where resets clear some.
func (b *LayerBack) Through(t, n int) schedule.View {
	p := b.plan
	if runs := p.Batches.Runs(t, n, n); len(runs) == 1 && p.resets == nil {
		return p.Through(b.layer, t, n)
	}
	switch {
	case !b.prior.Empty():
	case p.resets != nil:
		b.prior = keptPrior(p, b.recurrent, b.layer)
	default:
		b.prior = priorStates(p, b.recurrent, b.layer)
	}
	return b.prior.Band(p.Batches.Before(t), p.Batches.Rows(t, n))
}

// Weights sums the gradients of the weights and biases over steps [t, t+n). It adds to the sums of
// the steps that follow, which come first. Products are gate by gate if not grouped. States are
// copied ahead, if at all, so that the products of W and R follow each other: a device may pack the
// rows that both read once.
func (b *LayerBack) Weights(t, n int, grouped bool) {
	p, g := b.plan, b.plan.Layer[b.layer].Grad
	more := t+n < p.Steps
	dx, dr := b.Input(t, n), b.Recurrent(t, n)
	if !dr.Empty() {
		b.Through(t, n)
	}
	if b.layer == 0 && p.OneHot {
		if !more {
			p.Do(b.input, schedule.Map{Op: cell.Zero, Out: g.W.All()})
		}
		p.Do(b.input, schedule.Scatter{Index: p.InputOf(b.layer, t, n), Src: dx, Table: g.W.All()})
	} else {
		for _, tap := range p.Taps(b.layer, t, n) {
			p.outer(b.input, tap.Of(dx), tap.In, tap.DW, more || tap.Again, grouped)
		}
	}
	if !dr.Empty() {
		b.recurrentWeights(dr, t, n, more, grouped)
	}
	if j := p.Layer[b.layer].Projection; j != nil {
		p.Do(b.recurrent, j.Weights(t, n, more))
	}
	p.Do(b.input, schedule.SumRows{A: p.Rows(b.DX, t, n), Out: g.BX.All(), Accumulate: more})
	if m := p.Layer[b.layer].Norm; m != nil {
		gains := m.Gains(t, n, more)
		p.Do(b.input, gains[0])
		p.Do(b.recurrent, gains[1])
	}
	if dr.Empty() {
		return
	}
	if p.Cell.SplitGrad {
		p.Do(b.recurrent, schedule.SumRows{A: b.Read(t, n), Out: g.BR.All(), Accumulate: more})
	} else {
		p.Do(b.input, schedule.Map{Op: cell.Copy, Out: g.BR.All(), A: p.FromInput(g.BX.All())})
	}
}

// outer computes out = dᵀ · in, or adds it.
func (p *Plan) outer(stream int, d, in, out schedule.View, accumulate, grouped bool) {
	width := d.Cols
	if !grouped {
		width = p.Hidden
	}
	for at := 0; at < d.Cols; at += width {
		p.Do(stream, schedule.Gemm{A: d.Columns(at, width), TransA: true, B: in, C: out.Band(at, width), Accumulate: accumulate})
	}
}

// recurrentWeights adds steps [t, t+n) to the gradient of R, or begins it. d is the gradient of the
// recurrent products.
func (b *LayerBack) recurrentWeights(d schedule.View, t, n int, accumulate, grouped bool) {
	var through schedule.View
	for _, k := range b.plan.AllBlocks(grouped) {
		in := through
		switch {
		case k.Inner:
			in = b.plan.Layer[b.layer].Inner.Value(t, n)
		case in.Empty():
			through = b.Through(t, n)
			in = through
		}
		b.plan.Do(b.recurrent, schedule.Gemm{A: k.Of(d), TransA: true, B: k.State(in), C: k.Weights(b.plan.Layer[b.layer].Grad.R.All()), Accumulate: accumulate})
	}
}

// OutputLayer runs the output layer, and a fully connected layer in front of it, over all steps at once, since
// nothing recurs in them. Where training, it also forms the gradient of what they read.
func (p *Plan) OutputLayer(stream int) {
	h, logits := p.Head, p.Head.Prob.All()
	if h.Dense != nil {
		h.Dense.forward(p, stream)
	}
	p.Do(stream, schedule.Gemm{A: h.above(p), B: h.W.All(), TransB: true, C: logits})
	p.Do(stream, schedule.Map{Op: cell.Add, Out: logits, A: logits, B: h.B.All()})
	if p.Transcript > 0 {
		p.transcripts(stream)
	} else {
		p.Do(stream, p.Loss(0, p.Steps))
	}
	switch {
	case p.Pass != Train:
	case h.Dense != nil:
		h.Dense.backward(p, stream)
	default:
		p.Do(stream, schedule.Gemm{A: logits, B: h.W.All(), C: h.DY.All()})
	}
}

// OutputGradient sums the gradients of the weights of the layers that OutputLayer runs.
func (p *Plan) OutputGradient(stream int) {
	h := p.Head
	p.Do(stream, schedule.Gemm{A: h.Prob.All(), TransA: true, B: h.above(p), C: h.DW.All()})
	p.Do(stream, schedule.SumRows{A: h.Prob.All(), Out: h.DB.All()})
	if h.Dense != nil {
		h.Dense.gradient(p, stream)
	}
}
