package oracle

import (
	"slices"

	"rnnbench/rnn"
)

// Serve makes as many calls of plan p as d has inputs for; d's problem is the sequence of their
// steps. run makes one run. got is the answer for that sequence, of distinct sequences alone:
// Compare takes d's problem with a batch of these. apart is how far all other rows are from the
// distinct ones that they copy.
func Serve(p *rnn.Plan, mem rnn.Memory, d *rnn.Data, run func() error) (got []Tensor, apart Deviation, err error) {
	apart = Deviation{Tolerance: 1}
	for k := range d.Problem.Steps / p.Steps {
		if err := p.Write(mem, d.CallData(p.Problem, k)); err != nil {
			return nil, apart, err
		}
		if err := run(); err != nil {
			return nil, apart, err
		}
		one, far, err := ReadDistinct(p, mem, d)
		if err != nil {
			return nil, apart, err
		}
		got, apart = appendCall(got, one, d.Problem.Steps-p.Steps), apart.OrWorse(far)
	}
	return got, apart, nil
}

// appendCall appends a call's answer to that of the calls before; the sequence has so many more steps
// than a call. Where a call leaves out its first steps, or all, the last call's answer counts.
func appendCall(all, one []Tensor, more int) []Tensor {
	if all == nil {
		all = make([]Tensor, len(one))
	}
	for i, t := range one {
		if t.First > 0 {
			t.First += more
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
func CompareCalls(d *rnn.Data, got, want []Tensor) (Deviation, error) {
	got = slices.Clone(got)
	for i := range got {
		if t := &got[i]; t.First == 0 && t.Rows > d.Problem.Steps*d.Distinct {
			t.Rows = d.Problem.Steps * d.Distinct
			t.Values = t.Values[:t.Rows*t.Cols]
		}
	}
	return Compare(distinctBatch(d), got, want)
}

// CompareCall compares the answer of call number k alone, the first being 1, with want, the
// reference's answer for d: a sequence of at least k calls of so many steps. Calls bring inputs but no
// targets, so losses are left out.
func CompareCall(d *rnn.Data, k, steps int, got, want []Tensor) (Deviation, error) {
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
	p := distinctBatch(d)
	p.Steps = k * steps
	return Compare(p, got, want)
}

// EveryStep reports whether CheckCalls can check an answer of p: it shows the states of all steps, and
// the cell has no inner gates (see Steps).
func EveryStep(p rnn.Problem, got []Tensor) bool {
	return p.Cell.Inner == 0 && p.Norm == "" && !slices.ContainsFunc(got, func(t Tensor) bool { return t.First > 0 })
}

// CheckCalls is Check of the answer that Serve returned for plan p.
func (s Stepwise) CheckCalls(p *rnn.Plan, d *rnn.Data, got []Tensor) (Deviation, Covered, error) {
	sequence := rnn.NewPlan(distinctBatch(d))
	sequence.UnitError = p.UnitError
	return s.Check(sequence, nil, d, got)
}

// distinct is d's problem with a batch of the distinct sequences.
func distinctBatch(d *rnn.Data) rnn.Problem {
	p := d.Problem
	p.Batch = d.Distinct
	return p
}
