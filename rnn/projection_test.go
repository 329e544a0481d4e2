package rnn

import (
	"testing"

	"rnnbench/rnn/cell"
)

// TestProjectionCounts: a step multiplies a row by the projection once. R and the layers above are
// as narrow as the outputs. Training takes three times as much.
func TestProjectionCounts(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: 8, Projection: 5, Layers: 2, Batch: 7, Steps: 11, Output: 2}
	for direction, want := range map[Direction]int64{
		FromFirst: 2 * 77 * (32*(3+5) + 5*8 + 32*(5+5) + 5*8 + 2*5),
		BothWays:  2 * 77 * (2*(32*(3+5)+5*8) + 2*(32*(10+5)+5*8) + 2*10),
	} {
		p.Direction, p.Pass = direction, Forward
		if got := p.FLOPs(); got != want {
			t.Errorf("%v: %d operations, want %d", direction, got, want)
		}
		if p.Pass = Train; p.FLOPs() != 3*want {
			t.Errorf("%v: %d operations where training, want %d", direction, p.FLOPs(), 3*want)
		}
	}
}

// TestProjectionIdentity compares a layer whose projection picks some units with a layer without
// one. In the latter the other units do not recur and are not read.
func TestProjectionIdentity(t *testing.T) {
	const hidden, narrow = 6, 4
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: hidden, Projection: narrow, Layers: 1, Batch: 2, Steps: 5, Pass: Train}
	d := NewData(p, 1, 2, "normal")
	pick := d.Get("weight_hr_l0")
	clear(pick)
	for k := range narrow {
		pick[k*hidden+k] = 1
	}
	q := p
	q.Projection = 0
	wide := NewData(q, 1, 2, "normal")
	for i := range wide.tensors {
		x := &wide.tensors[i]
		switch from := d.Get(x.name); {
		case len(from) == len(x.values):
			copy(x.values, from)
		default: // columns for the units that are not picked are 0
			clear(x.values)
			for row := range x.rows {
				copy(x.values[row*hidden:][:narrow], from[row*narrow:])
			}
		}
	}
	got, want := map[string]Tensor{}, Reference(wide)
	for _, a := range Reference(d) {
		got[a.Name] = a
	}
	for _, w := range want {
		g := got[w.Name]
		for row := range w.Rows {
			for k := range min(g.Cols, w.Cols) {
				if a, b := g.Values[row*g.Cols+k], w.Values[row*w.Cols+k]; a != b && (a-b > 1e-12 || b-a > 1e-12) {
					t.Fatalf("%s[%d,%d] is %v, want %v", w.Name, row, k, a, b)
				}
			}
		}
		if g.Rows != w.Rows {
			t.Errorf("%s has %d rows, want %d", w.Name, g.Rows, w.Rows)
		}
	}
}
