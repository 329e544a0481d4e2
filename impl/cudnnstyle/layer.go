package cudnnstyle

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A layer is what one layer needs besides the plan's own matrices.
type layer struct {
	w, r operand // right operands of the forward products, K × G·H in all
	wb   operand // and of the backward ones, G·H × width and G·H × H
	rb   operand

	x    *schedule.Matrix // input products of a few blocks, block·B × G·H each
	ring int              // steps in x
	rec  *schedule.Matrix // B × recurrent gates·H; nil where there are none
	temp *schedule.Matrix // where not fused

	back *rnn.LayerBack // where training
}

// An operand is a weight matrix as products read it: one part if grouped, else
// one per gate.
type operand []part

type part struct {
	weights schedule.View // the gate's rows of W or R
	packed  *schedule.Matrix
	forward bool // the product is with the transpose of the weights
}

// right is the right operand and whether it is transposed.
func (p part) right() (v schedule.View, trans bool) {
	if p.packed != nil {
		return p.packed.All(), false
	}
	return p.weights, p.forward
}

// blocks is how many input products may lie ready before the first is used up.
const blocks = 2

func (n *network) layout(l int) layer {
	y := n.Plan.Layer[l]
	gh, rh := len(n.Cell.Gates)*n.Hidden, n.Cell.Recurrent*n.Hidden
	name := func(s string) string { return fmt.Sprintf("%s%d", s, l) }
	out := layer{
		w: n.operand(y.W, true), r: n.operand(y.R, true),
		ring: min(blocks*n.block, n.Steps),
	}
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
	if n.Pass != rnn.Train {
		return out
	}
	out.wb, out.rb = n.operand(y.W, false), n.operand(y.R, false)
	out.back = n.Back(l, n.inputStream(l), n.recurrentStream(l))
	return out
}

// pre views the input products of steps [t, t+steps), which lie in one block:
// the ring holds whole blocks or all steps, so no block lies across its end.
func (y *layer) pre(n *network, t, steps int) schedule.View {
	return n.Rows(y.x, t%y.ring, steps)
}

func (n *network) operand(w *schedule.Matrix, forward bool) operand {
	switch {
	case w == nil:
		return nil
	case n.grouped || w == n.Plan.Layer[0].W && n.OneHot: // a one-hot table is never multiplied
		return operand{{weights: w.All(), forward: forward}}
	}
	var o operand
	for g := range w.Rows / n.Hidden {
		o = append(o, part{weights: w.Band(g*n.Hidden, n.Hidden), forward: forward})
	}
	return o
}

// pack lays out packed weights and has them written in each pass (1) or ahead
// (2).
func (n *network) pack(when int) {
	if when == 0 {
		return
	}
	for l := range n.layers {
		y := &n.layers[l]
		streams := []int{n.inputStream(l), n.recurrentStream(l), n.inputStream(l), n.recurrentStream(l)}
		for i, o := range []operand{y.w, y.r, y.wb, y.rb} {
			if l == 0 && n.OneHot && i%2 == 0 {
				continue
			}
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
					n.Do(streams[i], op)
				}
			}
		}
	}
}

// product computes out = a · o, gate after gate of out if o has several parts.
func (n *network) product(stream int, a schedule.View, o operand, out schedule.View) {
	for g, p := range o {
		b, trans := p.right()
		width := out.Cols / len(o)
		n.Do(stream, schedule.Gemm{A: a, B: b, TransB: trans, C: out.Columns(g*width, width)})
	}
}

// productBack computes out = a · o, or adds it, summing over the gates of a if
// o has several parts.
func (n *network) productBack(stream int, a schedule.View, o operand, out schedule.View, accumulate bool) {
	for g, p := range o {
		b, trans := p.right()
		width := a.Cols / len(o)
		n.Do(stream, schedule.Gemm{A: a.Columns(g*width, width), B: b, TransB: trans, C: out, Accumulate: accumulate || g > 0})
	}
}
