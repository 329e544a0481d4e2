package devicetest

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// stackMakers build the operations of a library of the device's maker.
func stackMakers(c *cell.Cell) map[string]maker {
	return map[string]maker{
		"vendor": func(t *trial) schedule.Op { return t.vendor(c, t.flip()) },
		"vendorbackward": func(t *trial) schedule.Op {
			op := t.vendor(c, true)
			t.b.Do(0, op)
			g := schedule.VendorBackward{Stack: op.Stack, DY: t.whole("dy", op.Y), DX: t.whole("dx", op.X)}
			for _, v := range op.First {
				g.DFirst = append(g.DFirst, t.whole("dfirst", v))
			}
			for l := range op.W {
				g.DW, g.DR = append(g.DW, t.whole("dw", op.W[l])), append(g.DR, t.whole("dr", op.R[l]))
				g.DBX, g.DBR = append(g.DBX, t.whole("dbx", op.BX[l])), append(g.DBR, t.whole("dbr", op.BR[l]))
			}
			return g
		},
	}
}

// vendor is a small stack over fresh matrices.
func (t *trial) vendor(c *cell.Cell, train bool) schedule.Vendor {
	steps, layers, rows := 1+t.rng.IntN(6), 1+t.rng.IntN(3), 1+t.rng.IntN(9)
	width, h, g := 1+t.rng.IntN(40), 1+t.rng.IntN(40), len(c.Gates)
	all := func(name string, rows, cols int) schedule.View { return t.b.Matrix(name, rows, cols).All() }
	op := schedule.Vendor{Stack: schedule.Stack{Cell: c, Steps: steps, X: all("x", steps*rows, width), Y: all("y", steps*rows, h)}}
	for range c.States {
		op.First, op.Last = append(op.First, all("first", layers*rows, h)), append(op.Last, all("last", layers*rows, h))
	}
	for range layers {
		op.W, op.R = append(op.W, all(weights, g*h, width)), append(op.R, all(weights, g*h, h))
		op.BX, op.BR = append(op.BX, all("bx", 1, g*h)), append(op.BR, all("br", 1, g*h))
		width = h
	}
	if train {
		op.Kept = t.b.Packed("kept", 1, 1).All()
	}
	return op
}

// kinked reports whether op computes states and their gradients by a function with
// a kink: a state that rounding lifts over it has another gradient altogether.
func kinked(op schedule.Op) bool {
	v, ok := op.(schedule.VendorBackward)
	return ok && v.Cell == cell.RNNReLU
}

// whole is a fresh matrix of the shape of v.
func (t *trial) whole(name string, v schedule.View) schedule.View {
	return t.b.Matrix(name, v.Rows, v.Cols).All()
}

// more is v with one more matrix behind.
func (v values) more(rows, cols int) (values, schedule.View) {
	m := &schedule.Matrix{Name: "more", Rows: rows, Cols: cols, ID: len(v)}
	return append(v[:len(v):len(v)], make([]float64, m.Elements())), m.All()
}

// stack runs s layer by layer and returns what each layer ran, with its input.
func (v values) stack(s *schedule.Stack, train bool) (all values, layers []schedule.Sequence, inputs []schedule.View) {
	b, h, in := s.Batch(), s.Hidden(), s.X
	for l := range s.W {
		q := schedule.Sequence{Cell: s.Cell, Train: train, Steps: s.Steps, BX: s.BX[l], BR: s.BR[l]}
		v, q.X = v.more(s.X.Rows, len(s.Cell.Gates)*h)
		v.eval(schedule.Gemm{A: in, B: s.W[l], TransB: true, C: q.X})
		for _, first := range s.First {
			var state schedule.View
			v, state = v.more(s.X.Rows+b, h)
			v.eval(schedule.Map{Op: cell.Copy, Out: state.Band(0, b), A: first.Band(l*b, b)})
			q.State = append(q.State, state)
		}
		if train && s.Cell.Saved > 0 {
			v, q.Saved = v.more(s.X.Rows, s.Cell.Saved*h)
		}
		var r schedule.View
		v, r = v.more(b, s.Cell.Recurrent*h)
		for t := range s.Steps {
			v.eval(schedule.Gemm{A: q.Before(t)[s.Cell.Through], B: s.R[l], TransB: true, C: r})
			v.eval(q.Step(t, r))
		}
		layers, inputs = append(layers, q), append(inputs, in)
		in = q.State[0].Band(b, s.X.Rows)
	}
	return v, layers, inputs
}

func (v values) vendor(op schedule.Vendor) {
	v, layers, _ := v.stack(&op.Stack, false)
	b := op.Batch()
	for l, q := range layers {
		for i, last := range op.Last {
			v.eval(schedule.Map{Op: cell.Copy, Out: last.Band(l*b, b), A: q.Before(op.Steps)[i]})
		}
		if l == len(layers)-1 {
			v.eval(schedule.Map{Op: cell.Copy, Out: op.Y, A: q.State[0].Band(b, op.Y.Rows)})
		}
	}
}

func (v values) vendorBackward(op schedule.VendorBackward) {
	v, layers, inputs := v.stack(&op.Stack, true)
	b, rows, above := op.Batch(), op.X.Rows, op.DY
	for l := len(layers) - 1; l >= 0; l-- {
		q := layers[l]
		g := schedule.PersistentBackward{Sequence: q, R: op.R[l]}
		g.DOut = above
		v, g.DX = v.more(q.X.Rows, q.X.Cols)
		dr := g.DX
		if op.Cell.SplitGrad {
			v, dr = v.more(rows, op.R[l].Rows)
			g.DR = dr
		}
		for _, first := range op.DFirst {
			carry := first.Band(l*b, b)
			v.eval(schedule.Map{Op: cell.Zero, Out: carry})
			g.Carry = append(g.Carry, carry)
		}
		v.eval(g)
		v.eval(schedule.Gemm{A: g.DX, TransA: true, B: inputs[l], C: op.DW[l]})
		v.eval(schedule.Gemm{A: dr, TransA: true, B: q.State[op.Cell.Through].Band(0, rows), C: op.DR[l]})
		v.eval(schedule.SumRows{A: g.DX, Out: op.DBX[l]})
		v.eval(schedule.SumRows{A: dr, Out: op.DBR[l]})
		if above = op.DX; l > 0 {
			v, above = v.more(rows, op.Hidden())
		}
		v.eval(schedule.Gemm{A: g.DX, B: op.W[l], C: above})
	}
}

// Evaluate runs op in double precision on the values of matrices, by number.
func Evaluate(op schedule.Op, matrices [][]float64) { values(matrices).eval(op) }
