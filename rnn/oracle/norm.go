package oracle

import (
	"math"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A refNorm normalises what the cell of one layer reads of its products.
type refNorm struct {
	input, recurrent, inner normalised
	dRec                    []float64 // gradients of the recurrent products, rows × those of R
	dGainX, dGainR          []float64
}

// A normalised is values of all rows after normalisation, before gains. The gains come with each call.
type normalised struct {
	gain   []float32
	values []float64 // rows × cols
	by     []float64 // per row, one over the root of the variance
}

// normOf is the norm of layer i of Problem.Reads; nil: none.
func normOf(r *reference, i int) *refNorm {
	p := r.p
	if p.Norm != rnn.NormLayer {
		return nil
	}
	of := func(gain []float32) normalised {
		return normalised{gain, make([]float64, r.rows*len(gain)), make([]float64, r.rows)}
	}
	gain, outer := r.Get(p.Named("gain_hh", i)), p.Cell.Outer()*p.Hidden
	return &refNorm{input: of(r.Get(p.Named("gain_ih", i))), recurrent: of(gain[:outer]), inner: of(gain[outer:]), dRec: make([]float64, r.rows*outer)}
}

// forward normalises x, which has rows from first on, and scales it by the gains into out, whose rows
// have so many columns. out may be x.
func (n *normalised) forward(v *rounding, x, out []float64, first, stride int) {
	cols := len(n.gain)
	parallel.For(len(x)/cols, func(i int) {
		x, values := x[i*cols:(i+1)*cols], n.values[(first+i)*cols:][:cols]
		mean, variance := 0.0, 0.0
		for _, a := range x {
			mean += a / float64(cols)
		}
		for _, a := range x {
			variance += (a - mean) * (a - mean) / float64(cols)
		}
		by := 1 / math.Sqrt(variance+schedule.NormEpsilon)
		n.by[first+i] = by
		for j, a := range x {
			values[j] = (a - mean) * by
		}
		v.single(values)
		to := out[i*stride:][:cols]
		for j, a := range values {
			to[j] = a * float64(n.gain[j])
		}
		v.single(to)
	})
}

// backward turns d, the gradient of what forward left, with rows from first on of so many columns, into
// that of x.
func (n *normalised) backward(v *rounding, d []float64, first, stride int, dx []float64) {
	cols := len(n.gain)
	parallel.For(len(dx)/cols, func(i int) {
		values, d, dx := n.values[(first+i)*cols:][:cols], d[i*stride:][:cols], dx[i*cols:(i+1)*cols]
		sum, along := 0.0, 0.0
		for j, a := range d {
			g := a * float64(n.gain[j])
			sum, along = sum+g/float64(cols), along+g*values[j]/float64(cols)
		}
		for j, a := range d {
			dx[j] = n.by[first+i] * (a*float64(n.gain[j]) - sum - values[j]*along)
		}
		v.single(dx)
	})
}

// share is the gradient of the gains in each row, given d as backward reads it for all rows.
func (n *normalised) share(v *rounding, d []float64, stride int) []float64 {
	cols := len(n.gain)
	out := make([]float64, len(n.values))
	for i := range out {
		out[i] = d[i/cols*stride+i%cols] * n.values[i]
	}
	v.single(out)
	return out
}

// gains sums the gradients of both gains.
func (n *refNorm) gains(r *reference, y *refLayer) {
	gh, rh, outer := len(n.input.gain), r.p.Cell.Recurrent*r.p.Hidden, len(n.recurrent.gain)
	n.dGainX = r.sum(n.input.share(r.lossy, y.dPre, gh), gh)
	n.dGainR = r.sum(n.recurrent.share(r.lossy, y.dRec, rh), outer)
	if outer < rh {
		n.dGainR = append(n.dGainR, r.sum(n.inner.share(r.lossy, y.dRec[outer:], rh), rh-outer)...)
	}
}

// products is the gradient of the recurrent products of rows [from, to), as wide as R is high.
func (y *refLayer) products(p rnn.Problem, from, to int) []float64 {
	d := y.dRec
	if y.norm != nil {
		d = y.norm.dRec
	}
	mh := p.Cell.Multiplied() * p.Hidden
	return d[from*mh : to*mh]
}
