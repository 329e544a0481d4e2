package oracle

import "rnnbench/rnn"

// A refProjection is the projection of one layer of the reference. The rows of h and d are those of
// the layer's states, initial ones included.
type refProjection struct {
	width  int
	weight []float32 // width × hidden
	h      []float64 // the outputs
	d      []float64 // their gradients, complete once the steps that read them are done
	dW     []float64
}

// projectionOf is the projection of layer i of Problem.Reads; nil: none.
func projectionOf(r *reference, y *refLayer, i int) *refProjection {
	p := r.p
	if p.Projection == 0 {
		return nil
	}
	j := &refProjection{width: p.Projection, weight: r.Get(p.Named("weight_hr", i))}
	j.h = make([]float64, (r.rows+r.Distinct)*j.width)
	copy(j.h[y.initial*j.width:], widen(r.Get(p.Named(p.Cell.States[0]+"0", i))))
	return j
}

// through is what the recurrent product multiplies in rows [from, to).
func (y *refLayer) through(p rnn.Problem, from, to int) []float64 {
	if j := y.projection; j != nil {
		return j.h[(y.before+from)*j.width : (y.before+to)*j.width]
	}
	return y.prior(p.Cell.Through, from*p.Hidden, to*p.Hidden, p.Hidden)
}

// project computes the outputs of step t.
func (y *refLayer) project(t int) {
	if j := y.projection; j != nil {
		b, h := y.batch, len(j.weight)/j.width
		m := y.state[0][(t*b+y.after)*h:][:b*h]
		out := j.h[(t*b+y.after)*j.width:][:b*j.width]
		y.lossy.mulTransposed(out, m, j.weight, b, j.width, h)
		y.lossy.store(out)
		y.carryOver(j.h[y.after*j.width:], j.h[(t*b+y.before)*j.width:], t, j.width)
	}
}

// shown is state s after the steps of all rows, as answers have it.
func (y *refLayer) shown(s, hidden int) []float64 {
	if j := y.projection; s == 0 && j != nil {
		return y.existing(j.h[y.after*j.width:][:y.rows*j.width], j.width)
	}
	return y.later(s, hidden)
}

// shownGrad is the gradient of that state before the first step, of b sequences.
func (y *refLayer) shownGrad(s, b int) []float64 {
	if j := y.projection; s == 0 && j != nil {
		return j.d[y.initial*j.width:][:b*j.width]
	}
	return y.dState[s]
}

// receive stores the gradient of the outputs, and returns room for that of what is projected.
// Without a projection it returns dout itself.
func (y *refLayer) receive(p rnn.Problem, dout []float64) []float64 {
	j := y.projection
	if j == nil {
		return dout
	}
	j.d = make([]float64, len(j.h))
	copy(j.d[y.after*j.width:], y.existing(dout, j.width))
	return make([]float64, y.rows*p.Hidden)
}

// projectBack sets the gradient of what is projected at step t.
func (y *refLayer) projectBack(t int, dM []float64) {
	if j := y.projection; j != nil {
		b, h := y.batch, len(j.weight)/j.width
		y.lossy.mul(dM[t*b*h:(t+1)*b*h], j.d[(t*b+y.after)*j.width:][:b*j.width], j.weight, b, j.width, h)
	}
}

// carryBack adds the recurrent product's share, from rh columns, to the gradient of the outputs
// before step t. It reports whether there is a projection.
func (y *refLayer) carryBack(t, rh int) bool {
	j := y.projection
	if j == nil {
		return false
	}
	b := y.batch
	before, after := j.d[(t*b+y.before)*j.width:], j.d[(t*b+y.after)*j.width:]
	y.lossy.mul(before[:b*j.width], y.dRec[t*b*rh:(t+1)*b*rh], y.weightR, b, rh, j.width)
	for i := range b * j.width {
		if !y.exists(t*b + i/j.width) {
			before[i] += after[i]
		}
	}
	clear(y.dState[0])
	return true
}
