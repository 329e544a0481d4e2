package rnn

import "slices"

// CheckEach is Check of each sequence of the batch by itself. Check assumes that copies of a
// sequence are equal. But where the order of a sum depends on a sequence's place in the batch,
// copies are rounded differently. At a kink of ReLU they may then be on different sides, each of
// them right. Gradients of weights are sums over the batch, so they are then not those of one copy
// times the number of copies.
//
// CheckEach forms the sums from what the run left of every sequence, and grants each sequence its
// own side of a kink. States of all copies are compared with those of the first. Tolerances are the
// same. It takes StepwiseBytes of all sequences.
func (s Stepwise) CheckEach(p *Plan, mem Memory, d *Data) (Deviation, Covered, error) {
	each := d.each()
	all, _, err := p.ReadDistinct(mem, each)
	if err != nil {
		return Deviation{}, Covered{}, err
	}
	dev, covered, err := s.Check(p, mem, each, all)
	if err != nil {
		return dev, covered, err
	}
	apart, err := copiesApart(p.Problem, d, all)
	return dev.OrWorse(apart), covered, err
}

// each is d with every sequence of the batch written out.
func (d *Data) each() *Data {
	out := dataOf(d.Problem, d.Problem.Batch)
	out.measures = d.measures
	for _, t := range d.tensors {
		if t.perSequence {
			t.values = Repeat(t.values, t.cols, d.Distinct, d.Problem.Batch)
			t.rows = len(t.values) / t.cols
		}
		out.tensors = append(out.tensors, t)
	}
	return out
}

// copiesApart is how far copies' states are from those of the first copy. all has every sequence of
// the batch.
func copiesApart(p Problem, d *Data, all []Tensor) (Deviation, error) {
	apart := Deviation{Tolerance: 1}
	for _, t := range all {
		if !t.PerSequence || t.Gradient {
			continue
		}
		own, first := t, t
		own.First, own.Later = 0, 0 // first leaves out the same steps
		first.Values = nil
		for block := range slices.Chunk(t.Values, p.Batch*t.Cols) {
			first.Values = append(first.Values, block[:d.Distinct*t.Cols]...)
		}
		first.Rows = len(first.Values) / t.Cols
		first.data = d
		dev, err := deviation(p, own, t.Values, first.sized(t.UnitError))
		if err != nil {
			return apart, err
		}
		apart = apart.OrWorse(dev)
	}
	apart.Tolerance *= 2 // of two answers
	return apart, nil
}
