package rnn

import (
	"fmt"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// A fully connected layer of Dense units lies between the recurrent layers and the output layer, at each step
// by itself: out[t] = min(max(W·y[t] + b, 0), MostDense). It is that of Deep Speech 2 (Amodei et al. 2015,
// section 3.1), behind the last row convolution. Its clipped ReLU is that of Deep Speech (Hannun et al. 2014,
// section 2).
//
// Where a gradient passes follows from the output alone, which lies between 0 and MostDense there.
//
// Every technique is composed where there is such a layer, as with transcripts.

// MostDense is the largest output of a fully connected layer, and of a convolution.
const MostDense = 20

// checkDense reports an invalid number of units, and settings that do not go with them.
func checkDense(p Problem) error {
	switch {
	case p.Dense < 0 || p.Dense > MaxSymbols:
		return fmt.Errorf("rnn: dense is %d units: it must be 0 (no fully connected layer) to %d", p.Dense, MaxSymbols)
	case p.Dense > 0 && p.Output == 0:
		return fmt.Errorf("rnn: dense is %d units in front of the output layer, but there is none: set output, or dense to none", p.Dense)
	}
	return nil
}

// declineDense says why p's network cannot have a fully connected layer.
func declineDense(p Problem) error {
	if p.Dense > 0 && p.History > 0 {
		return fmt.Errorf("%w: a fully connected layer goes with no steps of the previous minibatch yet, but history is %d: set history to 0, or dense to none", schedule.ErrHistory, p.History)
	}
	return nil
}

// HeadInput is the number of features that the output layer reads.
func HeadInput(p Problem) int {
	if p.Dense > 0 {
		return p.Dense
	}
	return p.Out()
}

// Kinked reports whether two right answers to p may have different gradients, as the sums of some units lie
// within rounding of a kink.
func Kinked(p Problem) bool {
	return p.Pass == Train && (p.Cell.Kinked() || p.Dense > 0 || p.Conv != "")
}

// A Dense is the fully connected layer of a plan.
type Dense struct {
	W   *schedule.Matrix // N × Out of the recurrent layers
	B   *schedule.Matrix // 1 × N
	Out *schedule.Matrix // T·B × N

	DW, DB *schedule.Matrix // where training
	D      *schedule.Matrix // T·B × N: gradient of Out, then of the sums, where training

	most *schedule.Matrix // 1 × N: MostDense
	room *schedule.Matrix // scratch: T·B × N, how far sums or outputs are from MostDense
}

// newDense makes the matrices of the fully connected layer of so many rows; nil: there is none.
func newDense(plan *Plan, rows int) *Dense {
	p, n, train := plan.Problem, plan.Dense, plan.Pass == Train
	if n == 0 {
		return nil
	}
	d := &Dense{
		W: plan.Matrix("Wdense", n, p.Out()), B: plan.Matrix("bdense", 1, n), Out: plan.Matrix("dense", rows, n),
		DW: matrixIf(plan, train, "dWdense", n, p.Out()), DB: matrixIf(plan, train, "dbdense", 1, n), D: matrixIf(plan, train, "ddense", rows, n),
		most: plan.Matrix("most dense", 1, n), room: plan.Scratch("room of dense", rows, n),
	}
	plan.Prepare(schedule.Map{Op: cell.Const, Out: d.most.All(), Value: MostDense})
	return d
}

// above is what the output layer reads, of all steps.
func (h *Head) above(p *Plan) schedule.View {
	if h.Dense != nil {
		return h.Dense.Out.All()
	}
	return p.Outputs(0, p.Steps)
}

// forward runs the layer.
func (d *Dense) forward(p *Plan, stream int) {
	out, room := d.Out.All(), d.room.All()
	p.Do(stream, schedule.Gemm{A: p.Outputs(0, p.Steps), B: d.W.All(), TransB: true, C: out})
	p.Do(stream, schedule.MapChain{Steps: []schedule.Map{
		{Op: cell.Add, Out: out, A: out, B: d.B.All()},
		{Op: cell.ReLU, Out: out, A: out},
		{Op: cell.Sub, Out: room, A: out, B: d.most.All()},
		{Op: cell.ReLU, Out: room, A: room},
		{Op: cell.Sub, Out: out, A: out, B: room},
	}})
}

// backward forms the gradient of what the layer reads, given that of the logits.
func (d *Dense) backward(p *Plan, stream int) {
	h, grad, out, room := p.Head, d.D.All(), d.Out.All(), d.room.All()
	p.Do(stream, schedule.Gemm{A: h.Prob.All(), B: h.W.All(), C: grad})
	p.Do(stream, schedule.MapChain{Steps: []schedule.Map{
		{Op: cell.Sub, Out: room, A: d.most.All(), B: out},
		{Op: cell.ReLUGrad, Out: grad, A: grad, B: room},
		{Op: cell.ReLUGrad, Out: grad, A: grad, B: out},
	}})
	p.Do(stream, schedule.Gemm{A: grad, B: d.W.All(), C: h.DY.All()})
}

// gradient sums the gradients of the layer's weights.
func (d *Dense) gradient(p *Plan, stream int) {
	p.Do(stream, schedule.Gemm{A: d.D.All(), TransA: true, B: p.Outputs(0, p.Steps), C: d.DW.All()})
	p.Do(stream, schedule.SumRows{A: d.D.All(), Out: d.DB.All()})
}
