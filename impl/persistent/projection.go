package persistent

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A layer with a projection, h = W·u, would exchange two states a step: u before the projection and
// h after it. But R·h = (R·W)·u. So the persistent operation has the state u and the recurrent
// weights R·W, folded once a run or once ahead. Outputs are products over many steps, and so are the
// gradients that come through them. A step multiplies as much as without a projection.
//
// The first step reads h0, which is not of the form W·u. So it runs on its own, with R itself.

// A folded holds what a layer with a projection needs besides.
type folded struct {
	n *network
	l int // the layer

	weights *schedule.Matrix // R·W, recurrent gates·H × H
	out     *schedule.Matrix // Wᵀ packed, H × P
	back    *schedule.Matrix // where training: W packed, P × H
	du      *schedule.Matrix // where training: the gradient of u that comes from above, T·B × H
	x, r    *schedule.Matrix // products of the first step, B × gates·H
}

// declineFolded says why p's projection cannot be folded. It is nil if it can, or if there is none.
func declineFolded(p rnn.Problem) error {
	if p.Projection > 0 && p.Steps == 1 {
		return fmt.Errorf("%w: the first step of a run multiplies the outputs before it, so with a projection and one step no weights stay on chip: set steps to 2 or more, or projection to none", schedule.ErrProjection)
	}
	return nil
}

// fold lays out the projection of layer l. It returns own with the folded weights, and nil where
// there is no projection.
func fold(n *network, l int, own rnn.Layer) (*folded, rnn.Layer) {
	j := own.Projection
	if j == nil {
		return nil, own
	}
	name := func(s string) string { return fmt.Sprintf("%s%d", s, l) }
	f := &folded{n: n, l: l, weights: n.Scratch(name("R·Wp"), own.R.Rows, n.Hidden), out: n.Packed(j.W.Name+"ᵀ", n.Hidden, n.Projection)}
	f.x = n.Scratch(name("first x·W"), n.Batch, own.BX.Cols)
	f.r = n.Scratch(name("first h·R"), n.Batch, own.BR.Cols)
	if n.Pass == rnn.Train {
		f.back = n.Packed(j.W.Name, n.Projection, n.Hidden)
		f.du = n.Scratch(name("du from above"), n.Batches.Before(n.Steps), n.Hidden)
	}
	own.R = f.weights
	return f, own
}

// packs are the operations that fold the weights and pack the projection.
func (f *folded) packs() (ops []schedule.Op) {
	if f == nil {
		return nil
	}
	y := f.n.Layer[f.l]
	w := y.Projection.W.All()
	ops = append(ops, schedule.Gemm{A: y.R.All(), B: w, C: f.weights.All()}, schedule.Pack{Src: w, Dst: f.out.All(), Trans: true})
	if f.back != nil {
		ops = append(ops, schedule.Pack{Src: w, Dst: f.back.All()})
	}
	return ops
}

// first runs the first step.
func (f *folded) first() {
	n, stream := f.n, f.n.stream(f.l, 0)
	n.input(f.l, 0, 1, f.x.All())
	n.Do(stream, schedule.Gemm{A: n.Through(f.l, 0, 1), B: n.Layer[f.l].R.All(), TransB: true, C: f.r.All()})
	s := n.Sequence(f.l, 0, 1, f.x.All())
	n.Do(stream, s.Step(0, f.r.All()))
}

// firstBack runs the gradient of the first step.
func (f *folded) firstBack() {
	n := f.n
	s := schedule.PersistentBackward{Sequence: n.Sequence(f.l, 0, 1, schedule.View{}), SequenceGrad: n.gradientOf(f.l, 0, 1)}
	n.Do(n.stream(f.l, 0), s.StepBack(0))
}

// project computes the outputs of steps [t, t+steps).
func (f *folded) project(t, steps int) {
	op := f.n.Layer[f.l].Projection.Out(t, steps)
	op.B, op.TransB = f.out.All(), false
	f.n.Do(f.n.stream(f.l, 0), op)
}

// receive computes the gradient of u at steps [t, t+steps) from that of the outputs. A nil f does
// nothing.
func (f *folded) receive(stream, t, steps int) {
	if f != nil {
		n := f.n
		n.Do(stream, schedule.Gemm{A: n.Rows(n.above(f.l), t, steps), B: f.back.All(), C: n.Rows(f.du, t, steps)})
	}
}
