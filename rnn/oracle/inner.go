package oracle

import (
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// recur computes columns [from, to) of the recurrent products of step t, those of some gates. in has
// what these gates multiply.
func recur(r *reference, y *refLayer, t int, in []float64, from, to int) {
	b, n, units := r.Distinct, to-from, rnn.Emits(r.p)
	rh := r.p.Cell.Recurrent * r.p.Hidden
	rec := y.rec[t*b*rh : (t+1)*b*rh]
	out := rec
	if n < rh {
		out = make([]float64, b*n)
	}
	r.lossy.mulTransposed(out, in, y.weightR[from*units:], b, n, units)
	r.lossy.store(out)
	if y.norm != nil {
		y.norm.recurrent.forward(r.lossy, out, rec, t*b, rh)
		return
	}
	for j := 0; n < rh && j < b; j++ {
		copy(rec[j*rh+from:j*rh+to], out[j*n:])
	}
}

// recurBack adds to d, with a row for each sequence, the gradient of what columns [from, to) of the
// recurrent products of step t multiply.
func recurBack(r *reference, y *refLayer, t int, d []float64, from, to int) {
	b, h := r.Distinct, r.p.Hidden
	r.lossy.mul(d, columns(y.products(r.p, t*b, (t+1)*b), r.p.Cell.Multiplied()*h, from, to-from), y.weightR[from*h:], b, to-from, h)
}

// gradientOfR is the gradient of R, recurrent gates·H × units.
func gradientOfR(r *reference, y *refLayer) []float64 {
	p, h := r.p, r.p.Hidden
	mh := p.Cell.Multiplied() * h
	outer, products := p.Cell.Outer()*h, y.products(p, 0, r.rows)
	var d []float64
	if outer > 0 {
		d = r.outer(columns(products, mh, 0, outer), y.through(p, 0, r.rows), outer, rnn.Emits(p))
	}
	if outer < mh {
		d = append(d, r.outer(columns(products, mh, outer, mh-outer), y.inner, mh-outer, h)...)
	}
	return d
}

// innerValues computes what inner gates multiply at step t, for units [from, to) of distinct sequence j.
func (v *evaluator) innerValues(t, j, from, to int) {
	c, h, y := v.p.Cell, v.p.Hidden, v.y
	row := t*v.Distinct + j
	if !y.exists(row) {
		return
	}
	v.row, v.reset = row, y.restarts(row)
	first, _ := c.ForwardParts(v.program())
	for v.unit = from; v.unit < to; v.unit++ {
		if v.reference.lossy != nil {
			v.reference.lossy.run(first, v.at)
			continue
		}
		v.read()
		y.inner[row*h+v.unit] = c.Value(v.x, v.rec, v.peep, v.prev)
	}
}

// program is the forward program that the layer needs.
func (v *evaluator) program() cell.Program {
	if v.y.saved != nil {
		return v.p.Cell.Forward
	}
	return v.p.Cell.Inference
}
