package rnn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// alone is the answer of one layer of a network, run as a network of its own from the first step.
// For a layer that reads from the last step, rows of in and of the answer are turned.
func alone(d *Data, i int, in []float64) (y []float64) {
	p := d.Problem
	q := p
	q.Direction, q.Layers, q.Input, q.OneHot, q.Output, q.Symbols, q.Embedding, q.Pass = FromFirst, 1, len(in)/(p.Steps*d.Distinct), false, 0, 0, 0, Forward
	one := &Data{Problem: q, Distinct: d.Distinct}
	var x []float32
	for _, v := range turned(in, d.Distinct*q.Input, p.Backwards(i)) {
		x = append(x, float32(v))
	}
	one.tensors = append(one.tensors, tensor{"x", p.Steps * d.Distinct, q.Input, true, x})
	for _, t := range d.tensors {
		what, of, ok := strings.Cut(t.name, "_l")
		if ok && p.Named(what, i) == what+"_l"+of {
			t.name = what + "_l0"
			one.tensors = append(one.tensors, t)
		}
	}
	for _, t := range Reference(one) {
		if t.Name == "h_l0" {
			y = turned(t.Values, d.Distinct*p.Hidden, p.Backwards(i))
		}
	}
	return y
}

// turned are blocks of values in the opposite order, or as they are.
func turned(v []float64, block int, opposite bool) []float64 {
	if !opposite {
		return v
	}
	var out []float64
	for at := len(v) - block; at >= 0; at -= block {
		out = append(out, v[at:at+block]...)
	}
	return out
}

// TestDirections compares the outputs of networks of every direction with those of their layers,
// each run from its first step on turned rows.
func TestDirections(t *testing.T) {
	for i, c := range cell.All() {
		for _, direction := range []Direction{FromLast, BothWays, Alternating} {
			p := Problem{Cell: c, Input: 3, Hidden: 4, Layers: 1 + i%3, Batch: 3, Steps: 5, Direction: direction}
			d := NewData(p, 1, 2, "normal")
			in := widen(d.Get("x"))
			for l := range p.Layers {
				var parts [][]float64
				for w := range p.Ways() {
					parts = append(parts, alone(d, l*p.Ways()+w, in))
				}
				in = beside(parts, p.Hidden)
			}
			for _, got := range Reference(d) {
				if got.Name != "y" {
					continue
				}
				want := Tensor{Name: "y", Rows: p.Steps * 2, Cols: p.Out(), PerSequence: true, Values: in}
				if dev, err := Compare(p, []Tensor{{Name: "y", Rows: 15, Cols: p.Out(), PerSequence: true, Values: Repeat(got.Values, p.Out(), 2, 3)}}, []Tensor{want}); err != nil || dev.Error > 1e-6 { // inputs are rounded
					t.Errorf("%v: %v %v", p, dev, err)
				}
				in = nil
			}
			if in != nil {
				t.Errorf("%v: the answer has no y", p)
			}
		}
	}
}

// TestDirectionsCount: both ways count twice, and the layers above read twice as much.
func TestDirectionsCount(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: 5, Layers: 2, Batch: 7, Steps: 11, Output: 2}
	for direction, want := range map[Direction]int64{
		FromFirst:   2 * 77 * (20*(3+5) + 20*(5+5) + 2*5),
		FromLast:    2 * 77 * (20*(3+5) + 20*(5+5) + 2*5),
		Alternating: 2 * 77 * (20*(3+5) + 20*(5+5) + 2*5),
		BothWays:    2 * 77 * (2*20*(3+5) + 2*20*(10+5) + 2*10),
	} {
		p.Direction = direction
		if got := p.FLOPs(); got != want {
			t.Errorf("%v: %d operations, want %d", direction, got, want)
		}
	}
	p.Direction = BothWays
	var names []string
	for i := range p.Reads() {
		names = append(names, p.Named("h", i))
	}
	if want := []string{"h_l0", "h_l0_reverse", "h_l1", "h_l1_reverse"}; !slices.Equal(names, want) {
		t.Errorf("names %v, want %v", names, want)
	}
	p.Direction = 9
	if err := p.Check(); err == nil {
		t.Error("direction 9 passes")
	}
}

// TestFlips: rows are flipped exactly by look-ups whose index counts no further than a limit.
func TestFlips(t *testing.T) {
	for _, c := range []struct{ steps, batch, most, ops int }{
		{1, 1, 100, 1}, {5, 3, 100, 1}, {5, 3, 15, 1}, {5, 3, 14, 2}, {6, 3, 8, 3}, {7, 3, 8, 4}, {7, 3, 3, 7}, {8, 4, 13, 3},
	} {
		rows := c.steps * c.batch
		at := &composer{Plan: &Plan{Matrices: Matrices{Problem: Problem{Steps: c.steps, Batch: c.batch}}, Builder: schedule.NewBuilder(1)}}
		n := flipSteps(c.steps, c.batch, c.most)
		at.flip = at.Matrix("flip", n*c.batch, 1)
		from, to := at.Matrix("from", rows, 1), at.Matrix("to", rows, 1)
		at.bring(to.All(), from.All(), true)
		s, err := at.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		index, have := flipIndex(n, c.batch), make([]float32, rows)
		for op := range s.Operations() {
			g := op.(schedule.Gather)
			for row := range g.Out.Rows {
				i := int(index[g.Index.Row+row])
				if i >= c.most || i >= g.Table.Rows {
					t.Errorf("%+v: index %d", c, i)
				}
				have[g.Out.Row+row] = float32(g.Table.Row + i)
			}
		}
		want := make([]float32, rows)
		for row := range want {
			want[row] = float32(row)
		}
		if reverseBlocks(want, c.batch); !slices.Equal(have, want) || len(s.Nodes) != c.ops {
			t.Errorf("%+v: %d look-ups bring rows %v, want %d and %v", c, len(s.Nodes), have, c.ops, want)
		}
	}
}

// TestReverseBlocks: blocks change places, and a middle one stays.
func TestReverseBlocks(t *testing.T) {
	for steps := range 6 {
		var v, want []float32
		for i := range 3 * steps {
			v, want = append(v, float32(i)), append(want, float32(3*(steps-1-i/3)+i%3))
		}
		if reverseBlocks(v, 3); !slices.Equal(v, want) {
			t.Errorf("%d steps: %v, want %v", steps, v, fmt.Sprint(want))
		}
	}
}
