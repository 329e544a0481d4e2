package oracle

import (
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
)

// A refBatchNorm normalises the input products of one layer over all steps and sequences.
type refBatchNorm struct {
	gain        []float32
	hat         []float64 // rows × gates·hidden
	mean        []float64 // of the products
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
	m.mean = meanOf(r, pre, cols)
	m.hat = make([]float64, len(pre))
	for i, v := range pre {
		m.hat[i] = v - m.mean[i%cols]
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

// product is the product that value i of pre comes from.
func (m *refBatchNorm) product(pre []float64, i int) float64 {
	if m == nil {
		return pre[i]
	}
	k := i % len(m.gain)
	return m.hat[i]*m.root[k] + m.mean[k]
}

// errors turns the variances of the rounding errors of products into those of what is normalised. See
// reference.variances for the terms.
//
//   - The product, its difference from the mean and that over the root are stored, each with an error of
//     up to u of itself.
//   - The root errs as the products do, since a weight errs alike in all rows. The mean errs as one of N
//     rows does: inputErrors has the weights' part.
//   - The sums over N rows err by up to N·ε² of the terms' mean square.
func (m *refBatchNorm) errors(r *reference, variances []float64) {
	if m == nil {
		return
	}
	cols, rows, u, ε := len(m.gain), float64(r.p.Steps*r.p.Batch), r.p.Precision.Epsilon(), rnn.FP32.Epsilon()
	mean, sums := meanOf(r, variances, cols), rows*ε*ε
	for i, hat := range m.hat {
		k, product, gain := i%cols, m.product(nil, i), float64(m.gain[i%cols])
		moved := variances[i] + (hat*hat+1/rows)*mean[k] + u*u*product*product + sums*(m.mean[k]*m.mean[k]+m.root[k]*m.root[k])
		variances[i] = m.slope(k)*m.slope(k)*moved + hat*hat*gain*gain*(2*u*u+sums)
	}
}

// slope is by how much what is normalised changes with a product, if mean and root stay.
func (m *refBatchNorm) slope(k int) float64 { return float64(m.gain[k]) / m.root[k] }

// along turns d into the change of what a gate reads of its products. d has how these change, each row as
// often as the batch repeats its sequence. gain has how the gain changes.
func (m *refBatchNorm) along(r *search, d, gain []float64, gate int) {
	if m == nil {
		return
	}
	h, cols := r.p.Hidden, len(m.gain)
	mean, slope := make([]float64, h), make([]float64, h)
	hat := func(i int) float64 { return m.hat[i/h*cols+gate*h+i%h] }
	for i, v := range d {
		mean[i%h] += v / float64(r.p.Steps*r.p.Batch)
		slope[i%h] += v * hat(i) / float64(r.p.Steps*r.p.Batch)
	}
	for i := range d {
		k, n := i%h, r.Copies(i/h%r.Distinct)
		d[i] = m.slope(gate*h+k) * (d[i] - n*(mean[k]+hat(i)*slope[k]))
		if gain != nil {
			d[i] += n * hat(i) * gain[gate*h+k]
		}
	}
}

// mark does the same with the squares of changes. It leaves out what changes in other rows, which is little.
func (m *refBatchNorm) mark(r *search, d []float64, gain float64, gate int) {
	if m == nil {
		return
	}
	h := r.p.Hidden
	for i := range d {
		k, n := gate*h+i%h, r.Copies(i/h%r.Distinct)
		hat := m.hat[i/h*len(m.gain)+k]
		d[i] = m.slope(k)*m.slope(k)*d[i] + n*n*hat*hat*gain
	}
}

// centred returns rows less their mean over all steps and sequences.
func centred(r *reference, rows []float64, cols int) []float64 {
	if rows == nil { // one-hot
		return nil
	}
	out, mean := slices.Clone(rows), meanOf(r, rows, cols)
	for i := range out {
		out[i] -= mean[i%cols]
	}
	return out
}
