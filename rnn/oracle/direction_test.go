package oracle

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// alone is the answer of one layer of a network, run as a network of its own from the first step.
// For a layer that reads from the last step, rows of in and of the answer are turned.
func alone(d *rnn.Data, i int, in []float64) (y []float64) {
	p := d.Problem
	q := p
	q.Skip = 0
	q.Direction, q.Layers, q.Input, q.OneHot, q.Output, q.Symbols, q.Embedding, q.Pass = rnn.FromFirst, 1, len(in)/(p.Steps*d.Distinct), false, 0, 0, 0, rnn.Forward
	one := &rnn.Data{Problem: q, Distinct: d.Distinct}
	var x []float32
	for _, v := range turned(in, d.Distinct*q.Input, p.Backwards(i)) {
		x = append(x, float32(v))
	}
	one.Tensors = append(one.Tensors, rnn.Tensor{Name: "x", Rows: p.Steps * d.Distinct, Cols: q.Input, PerSequence: true, Values: x})
	for _, t := range d.Tensors {
		what, of, ok := strings.Cut(t.Name, "_l")
		if ok && p.Named(what, i) == what+"_l"+of {
			t.Name = what + "_l0"
			one.Tensors = append(one.Tensors, t)
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

// TestDirections compares the outputs of networks of every direction, with shortcuts and without, with those
// of their layers, each run from its first step on turned rows.
func TestDirections(t *testing.T) {
	for i, c := range cell.All() {
		for j, direction := range []rnn.Direction{rnn.BothWays, rnn.FromLast, rnn.Alternating, rnn.FromFirst} {
			p := rnn.Problem{Cell: c, Input: 4, Hidden: 4, Layers: 1 + i%3, Batch: 3, Steps: 5, Direction: direction, Skip: (i + j) % 3}
			if direction == rnn.FromFirst {
				p.Skip = 1 + i%2
			}
			d := rnn.NewData(p, 1, 2, "normal")
			in := widen(d.Get("x"))
			module := in
			for l := range p.Layers {
				var parts [][]float64
				for w := range p.Ways() {
					parts = append(parts, alone(d, l*p.Ways()+w, in))
				}
				if in = joinColumns(parts, p.Hidden); p.Skip > 0 && (l+1)%p.Skip == 0 {
					if in = slices.Clone(in); len(in) == len(module) {
						for k, v := range module {
							in[k] += v
						}
					}
					module = in
				}
			}
			for _, got := range Reference(d) {
				if got.Name != "y" {
					continue
				}
				want := Tensor{Name: "y", Rows: p.Steps * 2, Cols: p.Out(), PerSequence: true, Values: in}
				if dev, err := Compare(p, []Tensor{{Name: "y", Rows: 15, Cols: p.Out(), PerSequence: true, Values: rnn.Repeat(got.Values, p.Out(), 2, 3)}}, []Tensor{want}); err != nil || dev.Error > 1e-6 { // inputs are rounded
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
