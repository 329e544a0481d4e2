package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A projection narrows the output of a layer: h = W·m has P values, where m, the cell's output, has
// H. The recurrent product and the layer above read h, so R is G·H × P. It is the LSTMP of Sak,
// Senior and Beaufays (2014), and PyTorch's proj_size. Plans keep m in the place of the cell's
// first state.

// Emits is the width of a layer's output at one step. The layer itself reads it at the next step,
// and the layer above at this one.
func Emits(p Problem) int {
	if p.Projection > 0 {
		return p.Projection
	}
	return p.Hidden
}

// StateWidth is the number of values of state s, as data and answers have it.
func StateWidth(p Problem, s int) int {
	if s == 0 {
		return Emits(p)
	}
	return p.Hidden
}

// checkProjection reports an invalid projection.
func checkProjection(p Problem) error {
	switch {
	case p.Projection < 0 || p.Projection > 0 && p.Projection >= p.Hidden:
		return fmt.Errorf("rnn: projection is %d: it must be 0 (none) or less than the hidden units, of which a layer has %d", p.Projection, p.Hidden)
	case p.Projection > 0 && p.Heads > 1:
		return fmt.Errorf("rnn: projection is %d and heads is %d: a projection would mix the heads, so set one of them to none", p.Projection, p.Heads)
	}
	return nil
}

// declineProjection says why p's layers cannot have a projection.
func declineProjection(p Problem) error {
	switch {
	case p.Projection == 0:
	case !p.Cell.Projects():
		return fmt.Errorf("%w: %s: set projection to none", schedule.ErrProjection, whyUnprojected(p.Cell))
	case p.History > 0:
		return fmt.Errorf("%w: the outputs of a projection are not kept from the previous minibatch: set history to 0", schedule.ErrProjection)
	}
	return nil
}

// whyUnprojected says why a layer of c cannot have a projection; see cell.Cell.Projects.
func whyUnprojected(c *cell.Cell) string {
	switch {
	case c.Recurrent == 0:
		return fmt.Sprintf("%v has no recurrent product, and only recurrent products of outputs have a projection here", c)
	case c.Inner > 0:
		return fmt.Sprintf("%v has recurrent products of a value of its units, and only products of outputs have a projection here", c)
	case c.Through != 0:
		return fmt.Sprintf("the recurrent product of %v reads a state that is not its output, and only products of outputs have a projection here", c)
	}
	return fmt.Sprintf("%v needs its output of all units at the next step", c)
}

// A Projection is that of one layer. Its methods are the operations that a technique appends. Out
// follows the cell of a step, or of several. Where training, Receive precedes the first Back that
// reads those steps, Back precedes the gradient of the cell of a step, and Weights comes last. A
// technique whose steps need no gradients of outputs calls LayerBack.Project instead of Receive and
// Back.
type Projection struct {
	W *schedule.Matrix // P × H
	H *schedule.Matrix // (F+1)·B × P: the outputs; the first B rows are the initial state

	// Where training: DW is the gradient of W. D, (F+1)·B × P, is that of H; the recurrent product
	// of each step adds to it. DM, B × H, is that of m at one step.
	DW, D, DM *schedule.Matrix

	m       *schedule.Matrix // Layer.State[0]
	batches Batches
}

// newProjection makes the matrices of a layer's projection, where the cell makes m; nil: no projection.
func newProjection(p *Plan, name func(string) string, m *schedule.Matrix) *Projection {
	if p.Projection == 0 {
		return nil
	}
	j := &Projection{W: p.Matrix(name("Wp"), p.Projection, p.Hidden), H: p.Matrix(name("h"), m.Rows, p.Projection), m: m, batches: p.Batches}
	if p.Pass == Train {
		j.DW = p.Matrix(name("dWp"), p.Projection, p.Hidden)
		j.D = p.Matrix(name("dh"), m.Rows, p.Projection)
		j.DM = p.Matrix(name("du at a step"), p.Batch, p.Hidden)
	}
	return j
}

// after views m after steps [t, t+n). m has the initial state in front.
func (j *Projection) after(m *schedule.Matrix, t, n int) schedule.View {
	return m.Band(j.batches.batch+j.batches.Before(t), j.batches.Rows(t, n))
}

// Out computes the outputs of steps [t, t+n).
func (j *Projection) Out(t, n int) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.m, t, n), B: j.W.All(), TransB: true, C: j.after(j.H, t, n)}
}

// Receive copies the gradient of the outputs at steps [t, t+n) from the layer above.
func (j *Projection) Receive(t, n int, above schedule.View) schedule.Map {
	return copied(j.after(j.D, t, n), above)
}

// Back computes the gradient of m at step t. Plan.StepBack takes it in place of the gradient of the
// layer's output, which is complete when the steps after t are done.
func (j *Projection) Back(t int) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.D, t, 1), B: j.W.All(), C: j.batches.Last(j.DM.All(), t)}
}

// Weights computes the share of steps [t, t+n) in the gradient of W.
func (j *Projection) Weights(t, n int, accumulate bool) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.D, t, n), TransA: true, B: j.after(j.m, t, n), C: j.DW.All(), Accumulate: accumulate}
}

// CarryInto is where the recurrent product of step t of layer l leaves the gradient of the state
// before it. If written, something is there already, so the product must add.
func (p *Matrices) CarryInto(l, t int) (carry schedule.View, written bool) {
	if j := p.Layer[l].Projection; j != nil {
		return p.stateBefore(j.D, t, 1), t > 0
	}
	return p.CarryThrough(l, t)
}

// shown is the matrix of a layer's state s as data and answers have it: after any projection, and
// with the initial state in front.
func (y Layer) shown(s int) *schedule.Matrix {
	if s == 0 && y.Projection != nil {
		return y.Projection.H
	}
	return y.State[s]
}

// shownGrad is the gradient of that state before the first step.
func (y Layer) shownGrad(s, batch int) schedule.View {
	if s == 0 && y.Projection != nil {
		return y.Projection.D.Band(0, batch)
	}
	return y.Grad.State[s].All()
}

// unprojected is what the projection of number l of Problem.Reads reads. A Whole shows no step of it.
func unprojected(p *Plan, l int) Result {
	r := Result{Name: p.Named("unprojected", l), PerSequence: true, flipped: p.Backwards(l)}
	if p.Whole != nil {
		r.View.Cols, r.First = p.Hidden, p.Steps
	} else {
		r.View = p.stateAfter(p.Layer[l].State[0], 0, p.Frames())
	}
	return r
}

// copied is the operation that copies from into to.
func copied(to, from schedule.View) schedule.Map {
	return schedule.Map{Op: cell.Copy, Out: to, A: from}
}
