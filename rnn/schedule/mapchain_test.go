package schedule

import (
	"slices"
	"testing"

	"rnnbench/rnn/cell"
)

// TestMaps: which maps join, and what the chain reads and writes.
func TestMaps(t *testing.T) {
	b := NewBuilder(1)
	x, y, z := b.Matrix("x", 4, 6), b.Matrix("y", 4, 6), b.Matrix("z", 1, 3)
	left, right := x.All().Columns(0, 3), x.All().Columns(3, 3)
	out := y.All().Columns(1, 3)
	var m MapChain
	for _, s := range []struct {
		Map
		joins bool
	}{
		{Map{Op: cell.Add, Out: out, A: left, B: z.All()}, true},
		{Map{Op: cell.Tanh, Out: out, A: out}, true},
		{Map{Op: cell.Mul, Out: right, A: out, B: left}, true},
		{Map{Op: cell.Copy, Out: left, A: right}, true},
		{Map{Op: cell.Copy, Out: right, A: y.All().Columns(2, 3)}, false}, // part of what is written
		{Map{Op: cell.Zero, Out: x.All().Columns(2, 3)}, false},           // over part of what is read
		{Map{Op: cell.Zero, Out: z.All()}, false},                         // of another shape
		{Map{Op: cell.Zero, Out: x.All()}, false},
	} {
		if m.Append(s.Map) != s.joins {
			t.Errorf("%v: joins is %v, want %v", s.Map, !s.joins, s.joins)
		}
	}
	if len(m.Steps) != 4 || !slices.Equal(m.Reads(), []View{left, z.All()}) || !slices.Equal(m.Writes(), []View{out, right, left}) {
		t.Fatalf("%v reads %v and writes %v", m, m.Reads(), m.Writes())
	}
	p, vector := m.Program()
	for i, in := range p {
		if s := m.Steps[i]; in.Op != s.Op || vector(in.Out) != s.Out || vector(in.A) != s.A {
			t.Errorf("instruction %d is %v, of %v", i, in, s)
		}
	}
	if reads, writes := p.Vectors(); len(reads) != 2 || len(writes) != 3 {
		t.Errorf("the program reads %v and writes %v", reads, writes)
	}
	b.Do(0, MapChain{[]Map{m.Steps[0], {Op: cell.Zero, Out: z.All()}}})
	if _, err := b.Schedule(); err == nil {
		t.Error("steps of two shapes are accepted")
	}
}
