package rnn

import (
	"math"
	"slices"
	"testing"

	"rnnbench/rnn/cell"
)

// turnProblems has a problem of every kind of tensor.
func turnProblems() []Problem {
	base := Problem{Cell: cell.LSTM, Pass: Train, Input: 3, Hidden: 6, Layers: 2, Batch: 8, Steps: 5}
	var all []Problem
	add := func(change func(*Problem)) {
		p := base
		change(&p)
		all = append(all, p)
	}
	for i, c := range cell.All() {
		add(func(p *Problem) { p.Cell, p.Direction = c, Direction(i%4) })
	}
	add(func(p *Problem) { p.Cell, p.Heads = cell.LSTM, 3 })
	add(func(p *Problem) { p.Projection = 4 })
	add(func(p *Problem) { p.Projection, p.Output, p.Direction = 4, 5, BothWays })
	add(func(p *Problem) { p.OneHot, p.Output, p.Weighted = true, 5, true })
	add(func(p *Problem) { p.Output, p.Groups = 6, 2 })
	add(func(p *Problem) { p.Symbols, p.Embedding, p.Input = 4, 3, 5 })
	add(func(p *Problem) { p.Lengths, p.Direction = "3*2+3+2*4+2*5", BothWays })
	add(func(p *Problem) { p.Resets = 30 })
	add(func(p *Problem) { p.History = 2 })
	add(func(p *Problem) { p.Hidden, p.Batch = 1, 2 })
	add(func(p *Problem) { p.Layers = 11 })
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
			d := NewData(p, 5, 8-k*k, "normal") // 8, 7 and 4 sequences
			turn := d.Turn(k)
			if turn.units == 0 && p.Hidden > 1 || slices.IsSorted(turn.from) && p.Lengths == "" {
				t.Errorf("%v: turn %d changes units by %d and sequences to %v", p, k, turn.units, turn.from)
			}
			want := Reference(d)
			for i, got := range Reference(d.Turned(turn)) {
				compareTurned(t, p, turn, got, want[i], d.Distinct)
			}
		}
	}
}

// compareTurned compares an answer to turned data, turned back, with the answer to the data.
func compareTurned(t *testing.T, p Problem, turn *Turn, got, want Tensor, distinct int) {
	t.Helper()
	var values []float32
	for _, v := range got.Values {
		values = append(values, float32(v))
	}
	expected := want.Values
	if got.PerSequence {
		values, expected = Repeat(values, got.Cols, distinct, p.Batch), Repeat(expected, got.Cols, distinct, p.Batch)
		got.Rows = len(values) / max(1, got.Cols)
	}
	scale, same := 0.0, 0
	for _, v := range expected {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range turn.back(got, values, new([]float32)) {
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
