package devicetest

import (
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// stackMakers returns the makers of operations that the vendor's library runs.
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

// vendor builds a small stack over fresh matrices.
func (t *trial) vendor(c *cell.Cell, train bool) schedule.Vendor {
	steps, layers, batch := 1+t.rng.IntN(6), 1+t.rng.IntN(3), 1+t.rng.IntN(9)
	lengths, rows := t.lengths(batch, steps)
	if lengths != nil && t.flip() {
		rows = batch * steps // padded
	}
	width, h, g := 1+t.rng.IntN(40), 1+t.rng.IntN(40), len(c.Gates)
	all := func(name string, rows, cols int) schedule.View { return t.b.Matrix(name, rows, cols).All() }
	op := schedule.Vendor{Stack: schedule.Stack{Cell: c, Steps: steps, Lengths: lengths, X: all("x", rows, width), Both: t.flip()}}
	ways := op.Ways()
	op.Y = all("y", rows, ways*h)
	for range c.States {
		op.First, op.Last = append(op.First, all("first", ways*layers*batch, h)), append(op.Last, all("last", ways*layers*batch, h))
	}
	for range layers {
		for range ways {
			op.W, op.R = append(op.W, all(weights, g*h, width)), append(op.R, all(weights, g*h, h))
			op.BX, op.BR = append(op.BX, all("bx", 1, g*h)), append(op.BR, all("br", 1, g*h))
		}
		width = ways * h
	}
	if train {
		op.Kept = t.b.Packed("kept", 1, 1).All()
	}
	return op
}

// kinked reports whether op computes states and their gradients by a function with a kink. If
// rounding moves a state across the kink, the gradient is quite another one.
func kinked(op schedule.Op) bool {
	v, ok := op.(schedule.VendorBackward)
	return ok && v.Cell == cell.RNNReLU
}

// whole returns a fresh matrix of the shape of v.
func (t *trial) whole(name string, v schedule.View) schedule.View {
	return t.b.Matrix(name, v.Rows, v.Cols).All()
}

// more returns v with one more matrix at the end, and a view of that matrix.
func (v values) more(rows, cols int) (values, schedule.View) {
	m := &schedule.Matrix{Name: "more", Rows: rows, Cols: cols, ID: len(v)}
	return append(v[:len(v):len(v)], make([]float64, m.Elements())), m.All()
}

// reorder copies steps of batch rows each from in to out: in the opposite order of steps, or as they
// are.
func (v values) reorder(out, in schedule.View, batch int, opposite bool) {
	for at := 0; at < out.Rows; at += batch {
		from := at
		if opposite {
			from = out.Rows - batch - at
		}
		v.eval(schedule.Map{Op: cell.Copy, Out: out.Band(at, batch), A: in.Band(from, batch)})
	}
}

// A stackRun is a layer's run in one direction. Its steps are in the order in which it reads them.
type stackRun struct {
	schedule.Sequence
	in        schedule.View
	backwards bool
}

// outputs returns the outputs of all steps, in the order of reading.
func (r *stackRun) outputs() schedule.View { return r.State[0].Band(r.X.Rows/r.Steps, r.X.Rows) }

// stack runs s layer by layer, in one direction or both, and returns v with more matrices at the
// end, and the runs.
func (v values) stack(s *schedule.Stack, train bool) (all values, runs []stackRun) {
	b, h, in, ways := s.Batch(), s.Hidden(), s.X, s.Ways()
	for i := range s.W {
		q := stackRun{Sequence: schedule.Sequence{Cell: s.Cell, Train: train, Steps: s.Steps, BX: s.BX[i], BR: s.BR[i]}, backwards: i%ways == 1}
		v, q.in = v.more(in.Rows, in.Cols)
		v.reorder(q.in, in, b, q.backwards)
		v, q.X = v.more(s.X.Rows, len(s.Cell.Gates)*h)
		v.eval(schedule.Gemm{A: q.in, B: s.W[i], TransB: true, C: q.X})
		for _, first := range s.First {
			var state schedule.View
			v, state = v.more(s.X.Rows+b, h)
			v.eval(schedule.Map{Op: cell.Copy, Out: state.Band(0, b), A: first.Band(i*b, b)})
			q.State = append(q.State, state)
		}
		if train && s.Cell.Saved > 0 {
			v, q.Saved = v.more(s.X.Rows, s.Cell.Saved*h)
		}
		var r schedule.View
		v, r = v.more(b, s.Cell.Recurrent*h)
		for t := range s.Steps {
			v.eval(schedule.Gemm{A: q.Before(t)[s.Cell.Through], B: s.R[i], TransB: true, C: r})
			v.eval(q.Step(t, r))
		}
		if runs = append(runs, q); (i+1)%ways == 0 { // the input of the next layer
			v, in = v.more(s.X.Rows, ways*h)
			v.join(in, runs[len(runs)-ways:])
		}
	}
	return v, runs
}

// join copies the outputs of a layer's runs side by side, in the order of time.
func (v values) join(out schedule.View, runs []stackRun) {
	for w, r := range runs {
		h := r.outputs().Cols
		v.reorder(out.Columns(w*h, h), r.outputs(), r.X.Rows/r.Steps, r.backwards)
	}
}

func (v values) vendor(op schedule.Vendor) {
	if op.Lengths != nil {
		v.raggedVendor(op)
		return
	}
	v, runs := v.stack(&op.Stack, false)
	b := op.Batch()
	for n, q := range runs {
		for i, last := range op.Last {
			v.eval(schedule.Map{Op: cell.Copy, Out: last.Band(n*b, b), A: q.Before(op.Steps)[i]})
		}
	}
	v.join(op.Y, runs[len(runs)-op.Ways():])
}

func (v values) vendorBackward(op schedule.VendorBackward) {
	if op.Lengths != nil {
		v.raggedVendorBackward(op)
		return
	}
	v, runs := v.stack(&op.Stack, true)
	ways, above := op.Ways(), op.DY
	for l := op.Layers() - 1; l >= 0; l-- {
		below := op.DX
		if l > 0 {
			v, below = v.more(op.X.Rows, ways*op.Hidden())
		}
		for w := range ways {
			v = v.runBack(op, l*ways+w, runs[l*ways+w], above.Columns(w*op.Hidden(), op.Hidden()), below, w > 0)
		}
		above = below
	}
}

// runBack computes the gradient of run n of op. It sets below to the gradient of the input, or adds
// to it.
func (v values) runBack(op schedule.VendorBackward, n int, q stackRun, above, below schedule.View, add bool) values {
	b, rows := op.Batch(), op.X.Rows
	g := schedule.PersistentBackward{Sequence: q.Sequence, R: op.R[n]}
	v, g.DOut = v.more(above.Rows, above.Cols)
	v.reorder(g.DOut, above, b, q.backwards)
	v, g.DX = v.more(q.X.Rows, q.X.Cols)
	dr := g.DX
	if op.Cell.SplitGrad {
		v, dr = v.more(rows, op.R[n].Rows)
		g.DR = dr
	}
	for _, first := range op.DFirst {
		carry := first.Band(n*b, b)
		v.eval(schedule.Map{Op: cell.Zero, Out: carry})
		g.Carry = append(g.Carry, carry)
	}
	v.eval(g)
	v.eval(schedule.Gemm{A: g.DX, TransA: true, B: q.in, C: op.DW[n]})
	v.eval(schedule.Gemm{A: dr, TransA: true, B: q.State[op.Cell.Through].Band(0, rows), C: op.DR[n]})
	v.eval(schedule.SumRows{A: g.DX, Out: op.DBX[n]})
	v.eval(schedule.SumRows{A: dr, Out: op.DBR[n]})
	v, one := v.more(below.Rows, below.Cols)
	v, turned := v.more(below.Rows, below.Cols)
	v.eval(schedule.Gemm{A: g.DX, B: op.W[n], C: one})
	v.reorder(turned, one, b, q.backwards)
	if add {
		v.eval(schedule.Map{Op: cell.Add, Out: below, A: below, B: turned})
	} else {
		v.eval(schedule.Map{Op: cell.Copy, Out: below, A: turned})
	}
	return v
}

// Evaluate runs op in double precision on the values of matrices, indexed by Matrix.ID.
func Evaluate(op schedule.Op, matrices [][]float64) { values(matrices).eval(op) }
