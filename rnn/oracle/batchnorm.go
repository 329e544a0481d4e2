package oracle

import (
	"math"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A refBatchNorm normalises the input products of one layer over all steps and sequences.
type refBatchNorm struct {
	gain        []float32
	hat         []float64 // rows × gates·hidden
	root, dGain []float64
}

// batchNormOf is that of layer i of Problem.Reads; nil: none.
func batchNormOf(r *reference, i int) *refBatchNorm {
	if r.p.Norm != rnn.NormBatch {
		return nil
	}
	return &refBatchNorm{gain: r.Get(r.p.Named("gain_ih", i))}
}

// meanOf is the mean of the rows of all steps and sequences.
func meanOf(r *reference, rows []float64, cols int) []float64 {
	mean := r.sum(rows, cols)
	for k := range mean {
		mean[k] /= float64(r.p.Steps * r.p.Batch)
	}
	r.lossy.single(mean)
	return mean
}

// forward normalises pre in place.
func (m *refBatchNorm) forward(r *reference, pre []float64) {
	if m == nil {
		return
	}
	cols := len(m.gain)
	keep := func(values []float64) {
		r.lossy.single(values)
		r.lossy.store(values)
	}
	mean := meanOf(r, pre, cols)
	m.hat = make([]float64, len(pre))
	for i, v := range pre {
		m.hat[i] = v - mean[i%cols]
	}
	keep(m.hat)
	squares := make([]float64, len(pre))
	for i, v := range m.hat {
		squares[i] = v * v
	}
	keep(squares)
	m.root = meanOf(r, squares, cols)
	for k, v := range m.root {
		m.root[k] = math.Sqrt(v + schedule.NormEpsilon)
	}
	r.lossy.single(m.root)
	for i := range m.hat {
		m.hat[i] /= m.root[i%cols]
	}
	keep(m.hat)
	for i, v := range m.hat {
		pre[i] = v * float64(m.gain[i%cols])
	}
	keep(pre)
}

// backward turns d, the gradient of what forward left, into that of the products, and forms that of the gain.
func (m *refBatchNorm) backward(r *reference, d []float64) {
	if m == nil {
		return
	}
	cols := len(m.gain)
	along := make([]float64, len(d))
	for i, v := range d {
		along[i] = v * m.hat[i]
	}
	r.lossy.single(along)
	r.lossy.store(along)
	m.dGain = r.sum(along, cols)
	mean, slope := meanOf(r, d, cols), meanOf(r, along, cols)
	for i, v := range d {
		k := i % cols
		d[i] = float64(m.gain[k]) / m.root[k] * (v - mean[k] - m.hat[i]*slope[k])
	}
	r.lossy.single(d)
	r.lossy.store(d)
}
