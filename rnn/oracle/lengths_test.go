package oracle

import (
	"math"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestRaggedAlone compares a batch of sequences that have lengths of their own with the same
// sequences, each run alone. It compares outputs, states, losses and all gradients.
func TestRaggedAlone(t *testing.T) {
	for i, c := range cell.All() {
		for j, lengths := range []rnn.Lengths{"1+2*3+5", "2*1+2*5", "4*5", "uniform:60%@3"} {
			p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 1 + (i+j)%2, Batch: 4, Steps: 5, Lengths: lengths, Direction: rnn.Direction((i + j) % 4)}
			switch (i + j/2) % 3 {
			case 1:
				p.Output = 3
			case 2:
				p.OneHot, p.Output, p.Weighted = true, 4, true
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			d := rnn.NewData(p, 1, 1, "normal")
			want := Reference(d)
			sums := map[string][]float64{} // of the gradients of parameters
			for b, n := range rnn.SequenceLengths(p) {
				for _, one := range Reference(sequenceOf(d, b, n)) {
					compareSequence(t, p, one, want, sums, b, n)
				}
			}
			for _, w := range want {
				if sum := sums[w.Name]; !w.PerSequence {
					same(t, p, w.Name, sum, w.Values)
				}
			}
		}
	}
}

// sequence is sequence b of d alone, with its n steps. Its loss has the same weight as in the batch.
func sequenceOf(d *rnn.Data, b, n int) *rnn.Data {
	q := d.Problem
	q.Lengths, q.Batch, q.Steps = "", 1, n
	out := &rnn.Data{Problem: q, Distinct: 1}
	for _, t := range d.Tensors {
		if t.PerSequence {
			t.Values = (rnn.Part{From: b, N: 1}).Rows(t.Values, t.Cols, d.Distinct)
			if t.Rows > d.Distinct {
				t.Values = t.Values[:n*t.Cols]
			}
			t.Rows = len(t.Values) / t.Cols
		}
		out.Tensors = append(out.Tensors, t)
	}
	if q.Output > 0 && !q.Weighted {
		share := make([]float32, n)
		for i := range share {
			share[i] = 1 / float32(rnn.StepsBeyond(d.Problem, 0))
		}
		out.Problem.Weighted = true
		out.Tensors = append(out.Tensors, rnn.Tensor{Name: "loss_weight", Rows: n, Cols: 1, PerSequence: true, Values: share})
	}
	return out
}

// compareSequence compares the answer of sequence b, of n steps, with its share of the batch's
// answer, which is 0 past its end. It sums up gradients of parameters.
func compareSequence(t *testing.T, p rnn.Problem, one Tensor, want []Tensor, sums map[string][]float64, b, n int) {
	t.Helper()
	w := want[slices.IndexFunc(want, func(w Tensor) bool { return w.Name == one.Name })]
	if !one.PerSequence {
		if sums[one.Name] == nil {
			sums[one.Name] = make([]float64, len(one.Values))
		}
		for i, v := range one.Values {
			sums[one.Name][i] += v
		}
		return
	}
	got := rows64((rnn.Part{From: b, N: 1}), w.Values, w.Cols, p.Batch)
	same(t, p, one.Name, one.Values, got[:len(one.Values)])
	for _, v := range got[len(one.Values):] {
		if v != 0 {
			t.Fatalf("%v: %s of sequence %d of %d steps is %g past its end", p, one.Name, b, n, v)
		}
	}
}

// Rows64 is Rows of an answer.
func rows64(p rnn.Part, values []float64, cols, batch int) (out []float64) {
	for row := p.From * cols; row < len(values); row += batch * cols {
		out = append(out, values[row:row+p.N*cols]...)
	}
	return out
}

func same(t *testing.T, p rnn.Problem, name string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v: %s has %d values, not %d", p, name, len(got), len(want))
	}
	for i, v := range got {
		if math.Abs(v-want[i]) > 1e-6*max(1, math.Abs(v)) { // weights of the loss are rounded
			t.Fatalf("%v: %s[%d] is %g, alone %g", p, name, i, want[i], v)
		}
	}
}
