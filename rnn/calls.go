package rnn

import (
	"fmt"
	"slices"

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
	x := p.turn.turned(tensor{"x", rows, p.Given.Cols, true, d.Get("x")[:rows*p.Given.Cols]})
	return Repeat(x.values, p.Given.Cols, d.Distinct, p.Batch)
}

// callData is what is written before call k: the inputs of its steps and, before the first call,
// the states.
func (d *Data) callData(p Problem, k int) *Data {
	out := dataOf(p, d.Distinct)
	for _, t := range d.tensors {
		switch {
		case t.name == "x" || t.name == "target" || t.name == "loss_weight":
			t.rows = p.Steps * d.Distinct
			from := k * t.rows * t.cols
			t.values = t.values[from : from+t.rows*t.cols]
		case k > 0 || !t.perSequence:
			continue
		}
		out.tensors = append(out.tensors, t)
	}
	return out
}

// Serve makes as many calls of plan p as d has inputs for; d's problem is the sequence of their
// steps. run makes one run. got is the answer for that sequence, of distinct sequences alone:
// Compare takes d's problem with a batch of these. apart is how far all other rows are from the
// distinct ones that they copy.
func Serve(p *Plan, mem Memory, d *Data, run func() error) (got []Tensor, apart Deviation, err error) {
	apart = Deviation{Tolerance: 1}
	for k := range d.Problem.Steps / p.Steps {
		if err := p.Write(mem, d.callData(p.Problem, k)); err != nil {
			return nil, apart, err
		}
		if err := run(); err != nil {
			return nil, apart, err
		}
		one, far, err := p.ReadDistinct(mem, d)
		if err != nil {
			return nil, apart, err
		}
		got, apart = appendCall(got, one, d.Problem.Steps), apart.OrWorse(far)
	}
	return got, apart, nil
}

// appendCall appends a call's answer to that of the calls before; the sequence has so many steps in
// all. Where a call shows only its last step, the last call's counts.
func appendCall(all, one []Tensor, steps int) []Tensor {
	if all == nil {
		all = make([]Tensor, len(one))
	}
	for i, t := range one {
		if t.First > 0 {
			t.First = steps - 1
			all[i] = t
			continue
		}
		t.Rows += all[i].Rows
		t.Values = append(all[i].Values, t.Values...)
		all[i] = t
	}
	return all
}

// CompareCalls compares the answer of Serve with the reference's answer for d, a sequence of as
// many calls or of the first ones. Errors add up from call to call as from step to step, so the
// tolerance is that of the sequence.
func CompareCalls(d *Data, got, want []Tensor) (Deviation, error) {
	got = slices.Clone(got)
	for i := range got {
		if t := &got[i]; t.First == 0 && t.Rows > d.Problem.Steps*d.Distinct {
			t.Rows = d.Problem.Steps * d.Distinct
			t.Values = t.Values[:t.Rows*t.Cols]
		}
	}
	return Compare(d.distinct(), got, want)
}

// CompareCall compares the answer of call number k alone, the first being 1, with want, the
// reference's answer for d: a sequence of at least k calls of so many steps. Calls bring inputs but no
// targets, so losses are left out.
func CompareCall(d *Data, k, steps int, got, want []Tensor) (Deviation, error) {
	loss := func(t Tensor) bool { return t.Name == "loss" }
	got, want = slices.DeleteFunc(slices.Clone(got), loss), slices.DeleteFunc(slices.Clone(want), loss)
	for i := range want {
		w := &want[i]
		w.Rows = k * steps * d.Distinct
		w.Values = w.Values[:w.Rows*w.Cols]
		if i < len(got) {
			got[i].First = k*steps - got[i].Rows/d.Distinct
		}
	}
	p := d.distinct()
	p.Steps = k * steps
	return Compare(p, got, want)
}

// EveryStep reports whether an answer shows the states of all steps. CheckCalls needs them.
func EveryStep(got []Tensor) bool {
	return !slices.ContainsFunc(got, func(t Tensor) bool { return t.First > 0 })
}

// CheckCalls is Check of the answer that Serve returned for plan p.
func (s Stepwise) CheckCalls(p *Plan, d *Data, got []Tensor) (Deviation, Covered, error) {
	sequence := newPlan(d.distinct(), 1, 0)
	sequence.UnitError = p.UnitError
	return s.Check(sequence, nil, d, got)
}

// distinct is d's problem with a batch of the distinct sequences.
func (d *Data) distinct() Problem {
	p := d.Problem
	p.Batch = d.Distinct
	return p
}
