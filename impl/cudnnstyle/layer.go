package cudnnstyle

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A layer holds what one layer needs beyond the plan's own matrices.
type layer struct {
	// Right operands of the products: forward K × G·H in all, backward G·H × K. w and wb have an
	// operand for each step of the cell's window.
	w, wb []operand
	r, rb operand
	i, ib operand // rows of R that belong to inner gates; nil without any
	p, pb operand // of the projection; nil without one

	x       *schedule.Matrix // input products of a few blocks, block·B × G·H each
	ring    int              // steps in x
	rec     *schedule.Matrix // B × recurrent gates·H; nil where there are none
	temp    *schedule.Matrix // values between point-wise operations; nil if fused
	restart *rnn.Restart     // begins sequences anew; nil if fused, unless a step has halves or a norm, or without resets

	back *rnn.LayerBack // nil unless training
}

// An operand is a weight matrix as products read it: one part if grouped, else one per gate. With
// heads, R has a part per gate and head even if grouped, because a head's gates are not adjacent.
type operand []part

type part struct {
	weights schedule.View // the gate's rows of W or R
	block   *rnn.Block    // the block of R; nil for a part of W
	packed  *schedule.Matrix
	forward bool // the product is with the transpose of the weights
}

// right returns the right operand and whether the product transposes it.
func (p part) right() (v schedule.View, trans bool) {
	if p.packed != nil {
		return p.packed.All(), false
	}
	return p.weights, p.forward
}

// blocks is the number of blocks of input products that a layer's buffer holds: one can be computed
// while another is read.
const blocks = 2

func (n *network) layout(l int) layer {
	y := n.Plan.Layer[l]
	gh, rh := len(n.Cell.Gates)*n.Hidden, n.Cell.Recurrent*n.Hidden
	name := func(s string) string { return fmt.Sprintf("%s%d", s, l) }
	out := layer{w: n.inputs(l, true), r: n.recurrent(rnn.Maybe(y.R), true, false), i: n.recurrent(rnn.Maybe(y.R), true, true), ring: min(blocks*n.block, n.Steps)}
	if rh > 0 {
		out.rec = n.Matrix(name("h·R"), n.Batch, rh)
	}
	out.x = n.Matrix(name("x·W"), out.ring*n.Batch, gh)
	if !n.fused {
		temps := n.Cell.Inference.Temps()
		if n.Pass == rnn.Train {
			temps = max(n.Cell.Forward.Temps(), n.Cell.Backward.Temps())
		}
		out.temp = n.Matrix(name("temp"), n.Batch, temps*n.Hidden)
	}
	if !n.fused || n.Cell.Inner > 0 || y.Norm != nil {
		out.restart = rnn.NewRestart(n.Plan, fmt.Sprintf(" of layer %d", l))
	}
	if j := y.Projection; j != nil {
		out.p = operand{{weights: j.W.All(), forward: true}}
	}
	if n.Pass != rnn.Train {
		return out
	}
	if j := y.Projection; j != nil {
		out.pb = operand{{weights: j.W.All()}}
	}
	out.wb, out.rb, out.ib = n.inputs(l, false), n.recurrent(rnn.Maybe(y.R), false, false), n.recurrent(rnn.Maybe(y.R), false, true)
	y.Norm.Use(n.Plan)
	out.back = n.Back(l, n.inputStream(l), n.recurrentStream(l))
	return out
}

// pre views the input products of steps [t, t+steps), all in one block. The ring holds whole blocks
// or all steps, so no block wraps around its end.
func (y *layer) pre(n *network, t, steps int) schedule.View {
	block := t / n.block * n.block
	return y.x.Band(block%y.ring*n.Batch+n.Batches.Rows(block, t-block), n.Batches.Rows(t, steps))
}

// inputs returns the operands of layer l's input products; none for one-hot input, which is looked
// up instead of multiplied.
func (n *network) inputs(l int, forward bool) []operand {
	if l == 0 && n.OneHot {
		return nil
	}
	var list []operand
	for _, w := range n.TapWeights(l) {
		list = append(list, n.operand(w, forward))
	}
	return list
}

func (n *network) operand(w schedule.View, forward bool) operand {
	switch {
	case w.Empty():
		return nil
	case n.grouped:
		return operand{{weights: w, forward: forward}}
	}
	var o operand
	for g := range w.Rows / n.Hidden {
		o = append(o, part{weights: w.Band(g*n.Hidden, n.Hidden), forward: forward})
	}
	return o
}

// recurrent returns the operand of the recurrent products, those of inner gates or the others; nil if
// there are none.
func (n *network) recurrent(r schedule.View, forward, inner bool) operand {
	if r.Empty() {
		return nil
	}
	var o operand
	for _, b := range n.AllBlocks(n.grouped) {
		if b.Inner == inner {
			o = append(o, part{weights: b.Weights(r), block: &b, forward: forward})
		}
	}
	return o
}

// pack lays out packed weights. They are written in each pass (when is 1) or once before all passes
// (2).
func (n *network) pack(when int) {
	if when == 0 {
		return
	}
	for l := range n.layers {
		y := &n.layers[l]
		in, rec := n.inputStream(l), n.recurrentStream(l)
		n.packAll(in, when, y.w...)
		n.packAll(rec, when, y.r, y.i, y.p)
		n.packAll(in, when, y.wb...)
		n.packAll(rec, when, y.rb, y.ib, y.pb)
	}
}

func (n *network) packAll(stream, when int, operands ...operand) {
	for _, o := range operands {
		for k := range o {
			p := &o[k]
			v := p.weights
			rows, cols, mark := v.Rows, v.Cols, ""
			if p.forward {
				rows, cols, mark = v.Cols, v.Rows, "ᵀ"
			}
			p.packed = n.Packed(v.String()+mark, rows, cols)
			op := schedule.Pack{Src: v, Dst: p.packed.All(), Trans: p.forward}
			if when == 2 {
				n.Prepare(op)
			} else {
				n.Do(stream, op)
			}
		}
	}
}

// product computes out = a · o, or out += a · o. Several parts of o fill the gates of out one after
// another.
func (n *network) product(stream int, a schedule.View, o operand, out schedule.View, accumulate bool) {
	for g, p := range o {
		b, trans := p.right()
		if p.block != nil {
			n.Do(stream, schedule.Gemm{A: p.block.State(a), B: b, TransB: trans, C: p.block.Of(out), Accumulate: accumulate})
			continue
		}
		width := out.Cols / len(o)
		n.Do(stream, schedule.Gemm{A: a, B: b, TransB: trans, C: out.Columns(g*width, width), Accumulate: accumulate})
	}
}

// productBack computes out = a · o, or out += a · o. Several parts of o sum over the gates of a.
func (n *network) productBack(stream int, a schedule.View, o operand, out schedule.View, accumulate bool) {
	for g, p := range o {
		b, trans := p.right()
		if p.block != nil {
			n.Do(stream, schedule.Gemm{A: p.block.Of(a), B: b, TransB: trans, C: p.block.State(out), Accumulate: accumulate || g >= max(1, n.Heads)})
			continue
		}
		width := a.Cols / len(o)
		n.Do(stream, schedule.Gemm{A: a.Columns(g*width, width), B: b, TransB: trans, C: out, Accumulate: accumulate || g > 0})
	}
}
