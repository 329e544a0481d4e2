package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A projection narrows the output of a layer: h = W·m of P values, where m, of H, is what the cell
// makes. The recurrent product and the layer above read h, so R is G·H × P. It is the LSTMP of Sak,
// Senior and Beaufays (2014), and PyTorch's proj_size. m is in the place of the cell's first state.

// Emits is the number of values that a layer shows of each step: to itself at the next step and
// to the layer above.
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

// checkProjection reports a projection that is of no use.
func checkProjection(p Problem) error {
	switch {
	case p.Projection < 0 || p.Projection > 0 && p.Projection >= p.Hidden:
		return fmt.Errorf("rnn: projection is %d: it must be 0 (none) or less than the hidden units, of which a layer has %d", p.Projection, p.Hidden)
	case p.Projection > 0 && p.Heads > 1:
		return fmt.Errorf("rnn: projection is %d and heads is %d: a projection would mix the heads, so set one of them to none", p.Projection, p.Heads)
	}
	return nil
}

// declineProjection tells why p's layers have no projection.
func declineProjection(p Problem) error {
	switch {
	case p.Projection == 0:
	case !p.Cell.Projects():
		return fmt.Errorf("%w: %v needs its output of all units at the next step, so only LSTMs have a projection: set projection to none", schedule.ErrProjection, p.Cell)
	case p.History > 0:
		return fmt.Errorf("%w: the outputs of a projection are not kept from the previous minibatch: set history to 0", schedule.ErrProjection)
	}
	return nil
}

// A Projection is that of one layer. The methods are the operations that a technique appends: Out
// after the cell of a step or of several; where training, Receive before the first Back that reads
// those steps, Back before the gradient of the cell of a step, and Weights in the end. A technique
// whose steps need no gradients of outputs calls LayerBack.Project in the place of Receive and Back.
type Projection struct {
	W *schedule.Matrix // P × H
	H *schedule.Matrix // (F+1)·B × P: the outputs; the first B rows are the initial state

	// Where training: DW is the gradient of W; D, (F+1)·B × P, that of H, to which the recurrent
	// product of each step adds; DM, B × H, that of m at one step.
	DW, D, DM *schedule.Matrix

	m       *schedule.Matrix // Layer.State[0]
	batches Batches
}

// newProjection lays out the projection of a layer whose cell makes m; nil where there is none.
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

// after views n steps of m, one of the matrices with the initial state in front, from step t.
func (j *Projection) after(m *schedule.Matrix, t, n int) schedule.View {
	return m.Band(j.batches.batch+j.batches.Before(t), j.batches.Rows(t, n))
}

// Out are the outputs of steps [t, t+n).
func (j *Projection) Out(t, n int) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.m, t, n), B: j.W.All(), TransB: true, C: j.after(j.H, t, n)}
}

// Receive takes the gradient of the outputs at steps [t, t+n) from the layer above.
func (j *Projection) Receive(t, n int, above schedule.View) schedule.Map {
	return copied(j.after(j.D, t, n), above)
}

// Back is the gradient of m at step t, which takes the place of that of the layer's output in
// Plan.StepBack. That of the output is complete when the steps after t are done.
func (j *Projection) Back(t int) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.D, t, 1), B: j.W.All(), C: j.batches.Last(j.DM.All(), t)}
}

// Weights is the share of steps [t, t+n) in the gradient of W.
func (j *Projection) Weights(t, n int, accumulate bool) schedule.Gemm {
	return schedule.Gemm{A: j.after(j.D, t, n), TransA: true, B: j.after(j.m, t, n), C: j.DW.All(), Accumulate: accumulate}
}

// CarryInto is where the recurrent product of step t of layer l brings the gradient of the state
// before it, and whether something is there already, so that it must add.
func (p *Matrices) CarryInto(l, t int) (carry schedule.View, written bool) {
	if j := p.Layer[l].Projection; j != nil {
		return p.stateBefore(j.D, t, 1), t > 0
	}
	return p.CarryThrough(l, t)
}

// shown is the matrix of state s of a layer, with the initial state in front, as data and answers
// have it.
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

// copied sets to to from.
func copied(to, from schedule.View) schedule.Map {
	return schedule.Map{Op: cell.Copy, Out: to, A: from}
}
