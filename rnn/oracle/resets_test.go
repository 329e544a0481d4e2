package oracle

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestResetsAlone compares sequences that begin anew with their parts, each run alone as a batch of
// one: outputs, states, losses and all gradients, in every direction.
func TestResetsAlone(t *testing.T) {
	parts := 0
	for i, c := range cell.All() {
		if c.Window > 1 {
			continue // which Layout declines
		}
		for j, percent := range []int{30, 100} {
			p := rnn.Problem{Cell: c, Pass: rnn.Train, Input: 3, Hidden: 4, Layers: 1 + (i+j)%2, Batch: 3, Steps: 6, Resets: percent, Direction: rnn.Direction((i + j) % 4)}
			switch (i + j/2) % 3 {
			case 1:
				p.Output = 3
			case 2:
				p.OneHot, p.Output, p.Weighted = true, 4, true
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			d := rnn.NewData(p, uint64(i), 3, "normal")
			want := Reference(d)
			sums := map[string][]float64{} // of the gradients of parameters
			reset := d.Get("reset")
			for b := range p.Batch {
				for from, to := 0, 1; to <= p.Steps; to++ {
					if to == p.Steps || reset[to*p.Batch+b] == 1 {
						for _, one := range Reference(stretch(d, b, from, to)) {
							compareStretch(t, p, one, want, sums, b, from, to)
						}
						from, parts = to, parts+1
					}
				}
			}
			for _, w := range want {
				if sum := sums[w.Name]; !w.PerSequence {
					same(t, p, w.Name, sum, w.Values)
				}
			}
		}
	}
	if parts < 200 {
		t.Errorf("%d parts: sequences hardly begin anew", parts)
	}
}

// stretch is steps [from, to) of sequence b of d alone. Its first states are 0 unless they are the
// initial ones. Its loss has the same weight as in the batch.
func stretch(d *rnn.Data, b, from, to int) *rnn.Data {
	q := d.Problem
	q.Resets, q.Batch, q.Steps = 0, 1, to-from
	out := &rnn.Data{Problem: q, Distinct: 1}
	for _, t := range d.Tensors {
		if t.PerSequence {
			t.Values = (rnn.Part{From: b, N: 1}).Rows(t.Values, t.Cols, d.Distinct)
			if t.Rows > d.Distinct {
				t.Values = t.Values[from*t.Cols : to*t.Cols]
			} else if later := backwardsState(t.Name, q); later && to < d.Problem.Steps || !later && from > 0 {
				t.Values = make([]float32, len(t.Values))
			}
			t.Rows = len(t.Values) / t.Cols
		}
		out.Tensors = append(out.Tensors, t)
	}
	if q.Output > 0 && !q.Weighted {
		share := make([]float32, q.Steps)
		for i := range share {
			share[i] = 1 / float32(d.Problem.Steps*d.Problem.Batch)
		}
		out.Problem.Weighted = true
		out.Tensors = append(out.Tensors, rnn.Tensor{Name: "loss_weight", Rows: q.Steps, Cols: 1, PerSequence: true, Values: share})
	}
	return out
}

// backwardsState reports whether name is an initial state of a layer that begins at the last step.
func backwardsState(name string, p rnn.Problem) bool {
	for i := range p.Reads() {
		for _, s := range p.Cell.States {
			if p.Named(s+"0", i) == name {
				return p.Backwards(i)
			}
		}
	}
	return false
}

// compareStretch compares the answer of steps [from, to) of sequence b alone with its share of the
// batch's. It sums up gradients of parameters.
func compareStretch(t *testing.T, p rnn.Problem, one Tensor, want []Tensor, sums map[string][]float64, b, from, to int) {
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
	if w.Rows == p.Steps*p.Batch {
		got = got[from*w.Cols : to*w.Cols]
	} else if later := backwardsState(strings.TrimPrefix(one.Name, "grad_"), p); later && to < p.Steps || !later && from > 0 {
		return // of states that are none of the batch's
	}
	same(t, p, one.Name, one.Values, got)
}
