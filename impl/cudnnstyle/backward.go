package cudnnstyle

import (
	"rnnbench/rnn"
)

// backward runs the gradient of one step of one layer. depth counts layers from the top, fromEnd
// counts steps from the last. Once a block of steps is done, one product computes the gradient of
// its input.
func (n *network) backward(depth, fromEnd int) {
	l, t := n.Layers-1-depth, n.Steps-1-fromEnd
	y := &n.layers[l]
	stream := n.recurrentStream(l)
	above := n.Top()
	if l < n.Layers-1 {
		above = n.layers[l+1].back.Below
	}
	dx, dr, norm := n.Rows(y.back.DX, t, 1), y.back.Read(t, 1), n.Layer[l].Norm
	dout := n.Rows(above, t, 1)
	if j := n.Layer[l].Projection; j != nil {
		op := j.Back(t)
		n.productBack(stream, op.A, y.pb, op.C, false)
		dout = op.C
	}
	step := n.StepBack(l, t, dout, dx, dr, rnn.Maybe(y.back.DPeep))
	if y.restart != nil {
		y.restart.Back(&step, stream, l, t)
	}
	for i, half := range n.Layer[l].Inner.HalvesBack(step, t) {
		switch {
		case i > 0 && n.Cell.Normalised:
			n.Do(stream, norm.InnerBack(dr, t))
		case i > 0:
			n.productBack(stream, dr, y.ib, n.Layer[l].Inner.Grad(t), false)
		}
		if n.fused {
			n.Do(stream, half)
			continue
		}
		for _, m := range half.Maps(n.Batches.Last(y.temp.All(), t)) {
			n.Do(stream, m)
		}
	}
	if norm != nil {
		n.Do(stream, norm.RecurrentBack(dr, t))
	}
	if !dr.Empty() {
		carry, written := n.CarryInto(l, t)
		n.productBack(stream, y.back.Recurrent(t, 1), y.rb, carry, written)
	}
	steps := min(n.block, n.Steps-t)
	switch {
	case norm != nil && n.perStep:
		n.Do(n.inputStream(l), norm.InputBack(dx, t, 1))
	case norm != nil && t%n.block == 0:
		n.Do(n.inputStream(l), norm.InputBack(n.Rows(y.back.DX, t, steps), t, steps))
	}
	if t == 0 {
		for _, op := range n.Layer[l].BatchNorm.InputBack(y.back.DX.All()) {
			n.Do(n.inputStream(l), op)
		}
	}
	if t%n.block == 0 {
		n.inputGradient(l, t, steps)
	}
	if n.perStep {
		y.back.Weights(t, 1, n.grouped)
	}
}

// inputGradient computes the gradient of layer l's input at steps [t, t+steps). The input enters the
// products of its own step and, through a window, those of later steps. A projection of the layer
// below receives the gradient.
func (n *network) inputGradient(l, t, steps int) {
	b := n.layers[l].back
	if b.Below == nil {
		return
	}
	for k, o := range n.layers[l].wb {
		for _, run := range n.Batches.Later(k, t, steps) {
			dx := b.Input(run.T, run.N)
			n.productBack(n.inputStream(l), dx, o, b.Below.Band(n.Batches.Earlier(k, run), dx.Rows), k > 0)
		}
	}
	if l == 0 {
		return
	}
	if j := n.Layer[l-1].Projection; j != nil {
		n.Do(n.inputStream(l), j.Receive(t, steps, n.Rows(b.Below, t, steps)))
	}
}

// weightGradients completes the weight gradients after back-propagation, so that each matrix takes
// one large product (2.6).
func (n *network) weightGradients() {
	for l := n.Layers - 1; l >= 0; l-- {
		b := n.layers[l].back
		if !n.perStep {
			b.Weights(0, n.Steps, n.grouped)
		}
		b.Peeps()
	}
	if n.Head != nil {
		n.OutputGradient(n.inputStream(n.Layers - 1))
	}
}
