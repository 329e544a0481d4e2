package oracle

import (
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestDenseClips: no gradient passes units of a fully connected layer beyond the clip, nor those below 0.
func TestDenseClips(t *testing.T) {
	p := rnn.Problem{Cell: cell.GRU, Input: 3, Hidden: 4, Layers: 1, Batch: 2, Steps: 5, Output: 3, Dense: 3, Pass: rnn.Train}
	d := rnn.NewData(p, 1, 2, "normal")
	copy(d.Get("bias_dense"), []float32{rnn.MostDense + 10, 10, -10})
	for _, one := range Reference(d) {
		switch one.Name {
		case "dense":
			for i, v := range one.Values {
				if want := []bool{v == rnn.MostDense, v > 5 && v < 15, v == 0}; !want[i%3] {
					t.Errorf("unit %d gives %v", i%3, v)
				}
			}
		case "grad_bias_dense":
			if v := one.Values; v[0] != 0 || v[1] == 0 || v[2] != 0 {
				t.Errorf("gradients of biases are %v", v)
			}
		}
	}
}

// TestDenseSides: units of a fully connected layer within rounding of a kink are on the answer's side, and on
// no other one elsewhere.
func TestDenseSides(t *testing.T) {
	for _, near := range []bool{true, false} {
		for _, c := range []*cell.Cell{cell.LSTM, cell.RNNReLU} {
			p := rnn.Problem{Cell: c, Input: 5, Hidden: 8, Layers: 1, Batch: 3, Steps: 9, Output: 4, Dense: 30, Pass: rnn.Train}
			d := rnn.NewData(p, 1, 3, "normal")
			r := newReference(d)
			r.forward()
			at := 17 // in the answer, which has the sequences of the data
			if !near {
				at = slices.IndexFunc(r.dense.sums, func(v float64) bool { return v > 0.1 })
			}
			if near { // its sum is made 0
				d.Get("bias_dense")[at%p.Dense] -= float32(r.dense.sums[at])
			}
			r = newReference(d)
			r.forward()
			passes := passesAt(r.dense.out[at])
			r.dense.sidesOf(&r.dense.clippedUnits)
			r.dense.passes[at] = !passes
			r.dense.out[at] = 1e-9
			if passes {
				r.dense.out[at] = 0
			}
			r.backward()
			dev, found, err := CompareAgain(d, r.answer())
			if err != nil || dev.OK() != near || near && (found.Near == 0 || found.Other != 1) {
				t.Errorf("%v, near %v: %v, %+v, %v", p, near, dev, found, err)
			}
		}
	}
}
