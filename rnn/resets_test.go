package rnn

import (
	"slices"
	"strings"
	"testing"

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
			p := Problem{Cell: c, Pass: Train, Input: 3, Hidden: 4, Layers: 1 + (i+j)%2, Batch: 3, Steps: 6, Resets: percent, Direction: Direction((i + j) % 4)}
			switch (i + j/2) % 3 {
			case 1:
				p.Output = 3
			case 2:
				p.OneHot, p.Output, p.Weighted = true, 4, true
			}
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			d := NewData(p, uint64(i), 3, "normal")
			want := Reference(d)
			sums := map[string][]float64{} // of the gradients of parameters
			reset := d.Get(resetName)
			for b := range p.Batch {
				for from, to := 0, 1; to <= p.Steps; to++ {
					if to == p.Steps || reset[to*p.Batch+b] == 1 {
						for _, one := range Reference(d.stretch(b, from, to)) {
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
func (d *Data) stretch(b, from, to int) *Data {
	q := d.Problem
	q.Resets, q.Batch, q.Steps = 0, 1, to-from
	out := &Data{Problem: q, Distinct: 1}
	for _, t := range d.tensors {
		if t.perSequence {
			t.values = (Part{b, 1}).Rows(t.values, t.cols, d.Distinct)
			if t.rows > d.Distinct {
				t.values = t.values[from*t.cols : to*t.cols]
			} else if later := backwardsState(t.name, q); later && to < d.Problem.Steps || !later && from > 0 {
				t.values = make([]float32, len(t.values))
			}
			t.rows = len(t.values) / t.cols
		}
		out.tensors = append(out.tensors, t)
	}
	if q.Output > 0 && !q.Weighted {
		share := make([]float32, q.Steps)
		for i := range share {
			share[i] = 1 / float32(d.Problem.Steps*d.Problem.Batch)
		}
		out.Problem.Weighted = true
		out.tensors = append(out.tensors, tensor{"loss_weight", q.Steps, 1, true, share})
	}
	return out
}

// backwardsState reports whether name is an initial state of a layer that begins at the last step.
func backwardsState(name string, p Problem) bool {
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
func compareStretch(t *testing.T, p Problem, one Tensor, want []Tensor, sums map[string][]float64, b, from, to int) {
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
	got := (Part{b, 1}).Rows64(w.Values, w.Cols, p.Batch)
	if w.Rows == p.Steps*p.Batch {
		got = got[from*w.Cols : to*w.Cols]
	} else if later := backwardsState(strings.TrimPrefix(one.Name, "grad_"), p); later && to < p.Steps || !later && from > 0 {
		return // of states that are none of the batch's
	}
	same(t, p, one.Name, one.Values, got)
}

// TestCheckResets: invalid percentages, and settings that do not go with resets, are declined in a sentence.
func TestCheckResets(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: 4, Layers: 1, Batch: 3, Steps: 5, Resets: 3}
	with := func(change func(*Problem)) Problem {
		q := p
		change(&q)
		return q
	}
	for want, q := range map[string]Problem{
		"":                       p,
		"they must be 0% (none)": with(func(q *Problem) { q.Resets = -1 }),
		"to 100% of the steps":   with(func(q *Problem) { q.Resets = 101 }),
		"set lengths to full":    with(func(q *Problem) { q.Lengths = "1+2+5" }),
		"set history to 0":       with(func(q *Problem) { q.Pass, q.History = Train, 2 }),
		"set calls to 0":         with(func(q *Problem) { q.Calls = 2 }),
		"at most 16777216 rows":  with(func(q *Problem) { q.Batch, q.Steps = 1<<12, 1<<12 }),
	} {
		if err := q.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", q, err, want)
		}
	}
}

// TestDrawResets: the share is as asked for, the first step has none, and another seed draws others.
func TestDrawResets(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 1, Hidden: 1, Layers: 1, Batch: 50, Steps: 400, Resets: 3}
	a, b := NewData(p, 1, 50, "normal").Get(resetName), NewData(p, 2, 50, "normal").Get(resetName)
	n := 0
	for i, v := range a {
		if v == 1 {
			n++
		}
		if i < p.Batch && v != 0 {
			t.Fatalf("sequence %d begins anew at step 0", i)
		}
	}
	if share := float64(n) / float64(len(a)); share < 0.025 || share > 0.035 || slices.Equal(a, b) {
		t.Errorf("%.3f of the steps are resets, or those of two seeds are the same", share)
	}
}
