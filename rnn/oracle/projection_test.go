package oracle

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestProjectionIdentity compares a layer whose projection picks some units with a layer without
// one. In the latter the other units do not recur and are not read.
func TestProjectionIdentity(t *testing.T) {
	const hidden, narrow = 6, 4
	p := rnn.Problem{Cell: cell.LSTM, Input: 3, Hidden: hidden, Projection: narrow, Layers: 1, Batch: 2, Steps: 5, Pass: rnn.Train}
	d := rnn.NewData(p, 1, 2, "normal")
	pick := d.Get("weight_hr_l0")
	clear(pick)
	for k := range narrow {
		pick[k*hidden+k] = 1
	}
	q := p
	q.Projection = 0
	wide := rnn.NewData(q, 1, 2, "normal")
	for i := range wide.Tensors {
		x := &wide.Tensors[i]
		switch from := d.Get(x.Name); {
		case len(from) == len(x.Values):
			copy(x.Values, from)
		default: // columns for the units that are not picked are 0
			clear(x.Values)
			for row := range x.Rows {
				copy(x.Values[row*hidden:][:narrow], from[row*narrow:])
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
