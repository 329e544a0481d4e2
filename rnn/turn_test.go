package rnn_test

import (
	"math"
	"slices"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/oracle"
)

// turnProblems has a problem of every kind of tensor.
func turnProblems() []rnn.Problem {
	base := rnn.Problem{Cell: cell.LSTM, Pass: rnn.Train, Input: 3, Hidden: 6, Layers: 2, Batch: 8, Steps: 5}
	var all []rnn.Problem
	add := func(change func(*rnn.Problem)) {
		p := base
		change(&p)
		all = append(all, p)
	}
	for i, c := range cell.All() {
		add(func(p *rnn.Problem) { p.Cell, p.Direction = c, rnn.Direction(i%4) })
	}
	add(func(p *rnn.Problem) { p.Cell, p.Heads = cell.LSTM, 3 })
	add(func(p *rnn.Problem) { p.Projection = 4 })
	add(func(p *rnn.Problem) { p.Projection, p.Output, p.Direction = 4, 5, rnn.BothWays })
	add(func(p *rnn.Problem) { p.OneHot, p.Output, p.Weighted = true, 5, true })
	add(func(p *rnn.Problem) { p.Output, p.Groups = 6, 2 })
	add(func(p *rnn.Problem) { p.Symbols, p.Embedding, p.Input = 4, 3, 5 })
	add(func(p *rnn.Problem) { p.Lengths, p.Direction = "3*2+3+2*4+2*5", rnn.BothWays })
	add(func(p *rnn.Problem) { p.Resets = 30 })
	add(func(p *rnn.Problem) { p.History = 2 })
	add(func(p *rnn.Problem) { p.Hidden, p.Batch = 1, 2 })
	add(func(p *rnn.Problem) { p.Layers = 11 })
	add(func(p *rnn.Problem) { p.Layers, p.Skip = 5, 2 })
	add(func(p *rnn.Problem) { p.Output, p.Groups, p.Weighted, p.Transcript = 4, 0, false, 2 })
	add(func(p *rnn.Problem) { p.Layers, p.Skip, p.Input, p.Direction = 3, 1, 12, rnn.BothWays })
	add(func(p *rnn.Problem) { p.Layers, p.Skip, p.Input, p.Heads = 4, 2, 6, 3 })
	return all
}

// TestTurn: the reference's answer to turned data is its answer to the data, at other places. So is
// that of copies of sequences, whatever their number.
func TestTurn(t *testing.T) {
	for _, p := range turnProblems() {
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			d := rnn.NewData(p, 5, 8-k*k, "normal") // 8, 7 and 4 sequences
			turn := d.Turn(k)
			if turn.Units() == 0 && p.Hidden > 1 || slices.IsSorted(turn.From()) && p.Lengths == "" {
				t.Errorf("%v: turn %d changes units by %d and sequences to %v", p, k, turn.Units(), turn.From())
			}
			want := oracle.Reference(d)
			for i, got := range oracle.Reference(d.Turned(turn)) {
				compareTurned(t, p, turn, got, want[i], d.Distinct)
			}
		}
	}
}

// compareTurned compares an answer to turned data, turned back, with the answer to the data.
func compareTurned(t *testing.T, p rnn.Problem, turn *rnn.Turn, got, want oracle.Tensor, distinct int) {
	t.Helper()
	var values []float32
	for _, v := range got.Values {
		values = append(values, float32(v))
	}
	expected := want.Values
	if got.PerSequence {
		values, expected = rnn.Repeat(values, got.Cols, distinct, p.Batch), rnn.Repeat(expected, got.Cols, distinct, p.Batch)
		got.Rows = len(values) / max(1, got.Cols)
	}
	scale, same := 0.0, 0
	for _, v := range expected {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range turn.Back(rnn.Result{Name: got.Name, PerSequence: got.PerSequence}, got.Rows, values) {
		if math.Abs(float64(v)-expected[i]) > 1e-5*scale {
			t.Errorf("%v: %s[%d] is %v, not %v", p, got.Name, i, v, expected[i])
			return
		}
		if values[i] == float32(expected[i]) {
			same++
		}
	}
	if shown := p.Cell.States[0] + "_l0"; got.Name == shown && p.Hidden > 1 && same > len(expected)/2 {
		t.Errorf("%v: %d of %d values of %s are what they were", p, same, len(expected), shown)
	}
}
