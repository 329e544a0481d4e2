package rnn

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
)

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
