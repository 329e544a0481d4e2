package rnn

import "slices"

// CheckEach is Check that looks at each sequence of the batch by itself. Check takes copies of a sequence for
// equal. But where the order of a sum depends on a sequence's place in the batch, copies are rounded
// differently. At a kink of ReLU they may then be on different sides, each of them right. Gradients of weights
// are sums over the batch, so they are then not those of one copy times the number of copies.
//
// The sums here are of what the run left of every sequence, and each sequence is granted its own side
// of a kink alone. States of all copies are held to those of the first. No tolerance is another one.
// It takes StepwiseBytes of all sequences.
func (s Stepwise) CheckEach(p *Plan, mem Memory, d *Data) (Deviation, Covered, error) {
	all, _, err := p.ReadDistinct(mem, p.Batch)
	if err != nil {
		return Deviation{}, Covered{}, err
	}
	dev, covered, err := s.Check(p, mem, d.each(), all)
	if err != nil {
		return dev, covered, err
	}
	apart, err := copiesApart(p.Problem, d.Distinct, all)
	return dev.orWorse(apart), covered, err
}

// each is d with every sequence of the batch written out.
func (d *Data) each() *Data {
	out := dataOf(d.Problem, d.Problem.Batch)
	for _, t := range d.tensors {
		if t.perSequence {
			t.values = Repeat(t.values, t.cols, d.Distinct, d.Problem.Batch)
			t.rows = len(t.values) / t.cols
		}
		out.tensors = append(out.tensors, t)
	}
	return out
}

// copiesApart is how far the states of copies are from those of the first of them, in an answer
// that has every sequence of the batch.
func copiesApart(p Problem, distinct int, all []Tensor) (Deviation, error) {
	apart := Deviation{Tolerance: 1}
	for _, t := range all {
		if !t.PerSequence || t.Gradient {
			continue
		}
		own, first := t, t
		own.First, own.Later = 0, 0 // first leaves out the same steps
		first.Values = nil
		for block := range slices.Chunk(t.Values, p.Batch*t.Cols) {
			first.Values = append(first.Values, block[:distinct*t.Cols]...)
		}
		first.Rows = len(first.Values) / t.Cols
		d, err := deviation(p, own, t.Values, first)
		if err != nil {
			return apart, err
		}
		apart = apart.orWorse(d)
	}
	apart.Tolerance *= 2 // of two answers
	return apart, nil
}
