package rnn

import (
	"fmt"

	"rnnbench/rnn/schedule"
)

// MaxCalls bounds Problem.Calls.
const MaxCalls = 1 << 20

// checkCalls reports what is wrong with Calls.
func (p Problem) checkCalls() error {
	switch {
	case p.Calls < 0 || p.Calls > MaxCalls:
		return fmt.Errorf("rnn: calls is %d: it must be 0 (none) to %d", p.Calls, MaxCalls)
	case p.Calls > 0 && p.Pass != Forward:
		return fmt.Errorf("rnn: calls is %d, but only the forward pass can be called step by step: use pass forward", p.Calls)
	case p.Calls > 0 && p.Direction != FromFirst:
		return fmt.Errorf("rnn: direction %v needs the last step of a sequence first, but calls bring the steps one after another: use direction forward", p.Direction)
	case p.Calls > 1<<30/p.Steps:
		return fmt.Errorf("rnn: %d calls of %d steps are more than %d steps", p.Calls, p.Steps, 1<<30)
	}
	return nil
}

// Sequence is the problem that all calls solve together: a run of all their steps.
func (p Problem) Sequence() Problem {
	if p.Calls > 0 {
		p.Steps, p.Calls = p.Calls*p.Steps, 0
	}
	return p
}

// CallOutput is what a server reads after each call: the first n values of m. These are the
// probabilities of the output layer or, without one, the last layer's outputs. Of several
// steps a call, the state before the first may lie in front.
func CallOutput(p *Plan) (m *schedule.Matrix, n int) {
	switch {
	case p.Head != nil:
		return p.Head.Prob, p.Head.Prob.Elements()
	case !p.Y.Empty() && p.Y == p.Y.M.All():
		return p.Y.M, p.Y.M.Elements()
	case p.Whole != nil:
		return p.Whole.Y, p.Whole.Y.Elements()
	}
	m = p.Layer[p.Layers-1].shown(0)
	if p.Steps == 1 { // the run has copied it to where the next one begins
		return m, p.Batch * Emits(p.Problem)
	}
	return m, m.Elements()
}

// CallInputs returns the values of p.Given for the first calls of d, whose problem is the sequence
// of p's calls. It covers as many calls as fit into most values, and at least one.
func CallInputs(p *Plan, d *Data, most int) []float32 {
	n := min(d.Problem.Steps/p.Steps, max(1, most/p.Given.Elements()))
	rows := n * p.Steps * d.Distinct
	x := p.turn.turned(Tensor{"x", rows, p.Given.Cols, true, d.Get("x")[:rows*p.Given.Cols]})
	return Repeat(x.Values, p.Given.Cols, d.Distinct, p.Batch)
}

// callData is what is written before call k: the inputs of its steps and, before the first call,
// the states.
func (d *Data) CallData(p Problem, k int) *Data {
	out := DataFor(p, d.Distinct)
	for _, t := range d.Tensors {
		switch {
		case t.Name == "x" || t.Name == "target" || t.Name == "loss_weight":
			t.Rows = p.Steps * d.Distinct
			from := k * t.Rows * t.Cols
			t.Values = t.Values[from : from+t.Rows*t.Cols]
		case k > 0 || !t.PerSequence:
			continue
		}
		out.Tensors = append(out.Tensors, t)
	}
	return out
}
