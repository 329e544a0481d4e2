package rnn

import (
	"fmt"
	"slices"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

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
