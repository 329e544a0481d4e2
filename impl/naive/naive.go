// Package naive runs an RNN as its equations are written. Each step of each layer has one product
// per gate for the input and one for the state (of each head). Every point-wise operation runs
// alone, and all operations are in one stream. The backward pass mirrors this and adds each step's share to the weight
// gradients as it goes. It is the baseline for the other techniques.
//
// Reference: Appleyard, Kočiský, Blunsom. Optimizing Performance of Recurrent
// Neural Networks on GPUs. 2016. arXiv:1604.01946, section 2.1.
package naive

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Technique is the naive technique. It has no knobs.
type Technique struct{}

func (Technique) Name() string { return "naive" }
func (Technique) Doc() string {
	return "each product and each point-wise operation run separately on one stream (Appleyard 2016, 2.1)"
}
func (Technique) Knobs(rnn.Problem) []knob.Knob { return nil }

// Normalises implements rnn.Normaliser.
func (Technique) Normalises() {}

// Plan implements rnn.Technique.
func (Technique) Plan(p *rnn.Plan, _ knob.Params) error {
	if err := p.Room(p.Layers * p.Steps); err != nil {
		return err
	}
	n := network{Plan: p, gates: len(p.Cell.Gates), recurrent: p.Cell.Recurrent}
	n.x = p.Matrix("x·W", p.Batch, n.gates*p.Hidden)
	if n.recurrent > 0 {
		n.r = p.Matrix("h·R", p.Batch, n.recurrent*p.Hidden)
	}
	temps := p.Cell.Inference.Temps()
	if p.Pass == rnn.Train {
		temps = max(p.Cell.Forward.Temps(), p.Cell.Backward.Temps())
	}
	n.temp = p.Matrix("temp", p.Batch, temps*p.Hidden)
	n.restart = rnn.NewRestart(p, "")
	for _, y := range p.Layer {
		y.Norm.Use(p)
	}
	for l := range p.Layers {
		for t := range p.Steps {
			n.forward(l, t)
		}
	}
	if p.Head != nil {
		for t := range p.Steps {
			n.head(t)
		}
	}
	if p.Pass != rnn.Train {
		return nil
	}
	p.Cut()
	if p.Head != nil {
		for t := range p.Steps {
			n.headBack(t)
		}
	}
	if k := len(p.Cell.Peeps); k > 0 {
		n.dpeep = p.Matrix("dpeep", p.Batch, k*p.Hidden)
	}
	above := p.Top()
	for l := p.Layers - 1; l >= 0; l-- {
		below := p.DX
		if l > 0 {
			below = p.Matrix(fmt.Sprintf("dy%d", l-1), p.Batches.Before(p.Steps), p.Width(l))
		}
		n.backward(l, above, below)
		above = below
	}
	return nil
}

// A network is a plan with the matrices in which each step of both passes computes.
type network struct {
	*rnn.Plan
	gates, recurrent int              // gates with an input product, and with a recurrent product
	x, r             *schedule.Matrix // products of a step, B × gates·H and B × recurrent·H; r is nil if there are none
	temp             *schedule.Matrix // values between point-wise operations, B × temps·H
	dpeep            *schedule.Matrix // gradients of peepholes by sequence, B × peepholes·H; nil: none
	restart          *rnn.Restart     // begins sequences anew; nil: the problem has no resets
}

func (n *network) do(op schedule.Op) { n.Do(0, op) }

// gate narrows v to the columns of gate g.
func (n *network) gate(v schedule.View, g int) schedule.View {
	return v.Columns(g*n.Hidden, n.Hidden)
}

// band narrows v to the rows of gate g.
func (n *network) band(v schedule.View, g int) schedule.View {
	return v.Band(g*n.Hidden, n.Hidden)
}

// rows narrows m to the sequences of step t.
func (n *network) rows(m *schedule.Matrix, t int) schedule.View {
	return n.Batches.Last(rnn.Maybe(m), t)
}

// forward runs layer l at step t.
func (n *network) forward(l, t int) {
	y := n.Layer[l]
	taps, prev := n.Taps(l, t, 1), n.Through(l, t, 1)
	x, r := n.rows(n.x, t), n.rows(n.r, t)
	step := n.Step(l, t, x, r)
	if n.restart != nil {
		n.restart.Step(&step, 0, l, t)
		prev = step.Prev[n.Cell.Through]
	}
	xs, rs := y.Norm.InputProduct(x, t, 1), y.Norm.RecurrentProduct(r, t)
	for g := range n.gates {
		if l == 0 && n.OneHot {
			n.do(schedule.Gather{Index: n.InputOf(l, t, 1), Table: n.gate(y.W.All(), g), Out: n.gate(xs, g)})
		} else {
			for k, tap := range taps {
				n.do(schedule.Gemm{A: tap.In, B: n.band(tap.W, g), TransB: true, C: n.gate(xs, g), Accumulate: k > 0})
			}
		}
		if g < n.Cell.Outer() {
			n.recur(l, g, prev, rs)
		}
	}
	if y.Norm != nil {
		n.do(y.Norm.Input(x, t, 1))
		n.do(y.Norm.Recurrent(r, t))
	}
	for i, half := range y.Inner.Halves(step, t) {
		if i > 0 && n.Cell.Normalised {
			n.do(y.Norm.Inner(r, t))
		}
		for g := n.Cell.Outer(); i > 0 && g < n.Cell.Multiplied(); g++ {
			n.recur(l, g, y.Inner.Value(t, 1), r)
		}
		for _, m := range half.Maps(n.rows(n.temp, t)) {
			n.do(m)
		}
	}
	if j := y.Projection; j != nil {
		n.do(j.Out(t, 1))
	}
}

// recur computes the recurrent product of gate g in layer l, which multiplies state.
func (n *network) recur(l, g int, state, r schedule.View) {
	for _, b := range n.Blocks(g) {
		n.do(schedule.Gemm{A: b.State(state), B: b.Weights(n.Layer[l].R.All()), TransB: true, C: b.Of(r)})
	}
}

// recurBack computes the gradient of what block b of R in layer l multiplies, or adds to it.
func (n *network) recurBack(l int, b rnn.Block, dr, state schedule.View, add bool) {
	n.do(schedule.Gemm{A: b.Of(dr), B: b.Weights(n.Layer[l].R.All()), C: b.State(state), Accumulate: add})
}

// head runs the output layer at step t.
func (n *network) head(t int) {
	logits := n.Rows(n.Head.Prob, t, 1)
	n.do(schedule.Gemm{A: n.Outputs(t, 1), B: n.Head.W.All(), TransB: true, C: logits})
	n.do(schedule.Map{Op: cell.Add, Out: logits, A: logits, B: n.Head.B.All()})
	n.do(n.Loss(t, 1))
}

// headBack is the gradient of head.
func (n *network) headBack(t int) {
	grad, more := n.Rows(n.Head.Prob, t, 1), t > 0
	n.do(schedule.Gemm{A: grad, B: n.Head.W.All(), C: n.Rows(n.Head.DY, t, 1)})
	n.do(schedule.Gemm{A: grad, TransA: true, B: n.Outputs(t, 1), C: n.Head.DW.All(), Accumulate: more})
	n.do(schedule.SumRows{A: grad, Out: n.Head.DB.All(), Accumulate: more})
}

// backward runs layer l from the last step to the first. above and below are
// the gradients of the layer's output and input over all steps; below is nil
// where the input is one-hot.
func (n *network) backward(l int, above, below *schedule.Matrix) {
	n.startBack(l, below)
	if j := n.Layer[l].Projection; j != nil {
		n.do(j.Receive(0, n.Steps, above.All()))
	}
	for t := n.Steps - 1; t >= 0; t-- {
		n.stepBack(l, t, above, below)
	}
	if n.dpeep != nil {
		n.do(schedule.SumRows{A: n.dpeep.All(), Out: n.Layer[l].Grad.Peep.All()})
	}
}

// startBack zeroes the gradients that the steps of layer l add to.
func (n *network) startBack(l int, below *schedule.Matrix) {
	y := n.Layer[l]
	n.ZeroTaps(0, l)
	for s := range y.Grad.State {
		n.do(n.BeginCarry(l, s))
	}
	if n.dpeep != nil {
		n.do(schedule.Map{Op: cell.Zero, Out: n.dpeep.All()})
	}
	if l == 0 && n.OneHot {
		n.do(schedule.Map{Op: cell.Zero, Out: y.Grad.W.All()})
	}
	if n.addsInputs() && below != nil {
		n.do(schedule.Map{Op: cell.Zero, Out: below.All()})
	}
}

// addsInputs reports whether the gradient of the input must begin with zeros: with a window and
// ragged batches, no single step writes all rows first.
func (n *network) addsInputs() bool { return !n.Batches.Even() && n.Cell.Window > 1 }

// stepBack is the gradient of layer l at step t.
func (n *network) stepBack(l, t int, above, below *schedule.Matrix) {
	y, more := n.Layer[l], t < n.Steps-1 // more: the gradients already hold later steps
	dx := n.rows(n.x, t)                 // reuses the rows of the forward products
	dr := n.FromInput(dx)
	if n.Cell.SplitGrad {
		dr = n.rows(n.r, t)
	}
	dout := n.Rows(above, t, 1)
	if j := y.Projection; j != nil {
		back := j.Back(t)
		n.do(back)
		n.do(j.Weights(t, 1, more))
		dout = back.C
	}
	taps, prev := n.Taps(l, t, 1), n.Through(l, t, 1)
	step := n.StepBack(l, t, dout, dx, dr, rnn.Maybe(n.dpeep))
	if n.restart != nil {
		n.restart.Back(&step, 0, l, t)
		prev = step.Prev[n.Cell.Through]
	}
	outer := n.Cell.Outer()
	for i, half := range y.Inner.HalvesBack(step, t) {
		if i > 0 && n.Cell.Normalised {
			n.do(y.Norm.InnerBack(dr, t))
		}
		for g := outer; i > 0 && g < n.Cell.Multiplied(); g++ {
			for _, b := range n.Blocks(g) {
				n.recurBack(l, b, dr, y.Inner.Grad(t), g > outer)
			}
		}
		for _, m := range half.Maps(n.rows(n.temp, t)) {
			n.do(m)
		}
	}
	read, readR := dx, dr // by the cell
	if m := y.Norm; m != nil {
		ofX, ofR := m.InputBack(dx, t, 1), m.RecurrentBack(dr, t)
		n.do(ofX)
		n.do(ofR)
		for _, op := range m.Gains(t, 1, more) {
			n.do(op)
		}
		dx, dr = ofX.DX, ofR.DX
	}
	carry, written := n.CarryInto(l, t)
	for g := range n.gates {
		if g < n.Cell.Multiplied() {
			for _, b := range n.Blocks(g) {
				in := prev
				if b.Inner {
					in = y.Inner.Value(t, 1)
				} else {
					n.recurBack(l, b, dr, carry, g > 0 || written)
				}
				n.do(schedule.Gemm{A: b.Of(dr), TransA: true, B: b.State(in), C: b.Weights(y.Grad.R.All()), Accumulate: more})
			}
		}
		n.inputBack(l, t, g, dx, taps, below)
	}
	n.do(schedule.SumRows{A: read, Out: y.Grad.BX.All(), Accumulate: more})
	if n.recurrent > 0 {
		n.do(schedule.SumRows{A: readR, Out: y.Grad.BR.All(), Accumulate: more})
	}
}

// inputBack propagates gate g's gradient at step t to layer l's input, tap by tap, and to its
// weights.
func (n *network) inputBack(l, t, g int, dx schedule.View, taps []rnn.Tap, below *schedule.Matrix) {
	if l == 0 && n.OneHot {
		n.do(schedule.Scatter{Index: n.InputOf(l, t, 1), Src: n.gate(dx, g), Table: n.gate(n.Layer[l].Grad.W.All(), g)})
		return
	}
	more := t < n.Steps-1
	for k, tap := range taps {
		begun := n.addsInputs() || more && k+1 < n.Cell.Window // step t+1 has written these rows already
		in := below.Band(n.Batches.Earlier(k, rnn.Run{T: t, N: 1}), dx.Rows)
		n.do(schedule.Gemm{A: n.gate(dx, g), B: n.band(tap.W, g), C: in, Accumulate: g > 0 || begun})
		n.do(schedule.Gemm{A: n.gate(dx, g), TransA: true, B: tap.In, C: n.band(tap.DW, g), Accumulate: more})
	}
}
