package oracle

// refDense holds the values of a fully connected layer: see rnn.Dense.
type refDense struct {
	clippedUnits
	dW, dB []float64
}

// headInput is what the output layer reads. It runs the fully connected layer once, if there is one.
func headInput(r *reference) []float64 {
	p := r.p
	top := r.top[(r.rows-r.fresh)*p.Out():]
	if p.Dense == 0 {
		return top
	}
	if r.dense != nil {
		return r.dense.out
	}
	y := &refDense{clippedUnits: clippedUnits{name: "dense", cols: p.Dense, sums: make([]float64, r.fresh*p.Dense)}}
	r.lossy.mulTransposed(y.sums, top, r.Get("weight_dense"), r.fresh, p.Dense, p.Out())
	r.lossy.store(y.sums)
	y.rectify(r, r.Get("bias_dense"))
	r.dense = y
	return y.out
}

// headBack adds to above the gradient of the last recurrent layer's output, given that of the logits.
func headBack(r *reference, above []float64) {
	p, y := r.p, r.dense
	if y == nil {
		r.lossy.mul(above, r.prob, r.Get("weight_out"), r.fresh, p.Output, p.Out())
		return
	}
	d := make([]float64, len(y.out))
	r.lossy.mul(d, r.prob, r.Get("weight_out"), r.fresh, p.Output, p.Dense)
	y.passed(r, d)
	y.dW, y.dB = r.outer(d, r.top[(r.rows-r.fresh)*p.Out():], p.Dense, p.Out()), r.sum(d, p.Dense)
	r.lossy.mul(above, d, r.Get("weight_dense"), r.fresh, p.Dense, p.Out())
}
