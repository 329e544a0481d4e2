package oracle

import (
	"fmt"
	"math"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
)

// refConvolution holds the values of a convolution: see rnn.Convolution.
type refConvolution struct {
	clippedUnits
	rnn.Convolution
	weight []float32
	in     []float64 // rows × Over·From
	dW, dB []float64
}

// convolved is what the convolutions give to the first recurrent layer, of rows of features.
func convolved(r *reference, in []float64) []float64 {
	all, err := rnn.Convolutions(r.p)
	if err != nil {
		panic(err) // Check has found none
	}
	for i, c := range all {
		y := &refConvolution{Convolution: c, in: in, weight: r.Get(fmt.Sprintf("weight_conv%d", i))}
		y.clippedUnits = clippedUnits{name: fmt.Sprintf("conv%d", i), cols: c.Cols(), sums: make([]float64, r.rows*c.Cols())}
		part := make([]float64, len(y.sums))
		for step := range c.Steps {
			r.lossy.mulTransposed(part, y.patches(r, y.in, step), y.taps(step), c.Wide*r.rows, c.Channels, c.Taps())
			for at, v := range byRow(part, c.Wide, c.Channels) {
				y.sums[at] += v
			}
			r.lossy.single(y.sums)
		}
		y.rectify(r, r.Get(fmt.Sprintf("bias_conv%d", i)))
		r.convolutions = append(r.convolutions, y)
		in = y.out
	}
	return in
}

// convolutionsBack forms the gradients of the convolutions, given that of what they give.
func convolutionsBack(r *reference, d []float64) {
	for i := len(r.convolutions) - 1; i >= 0; i-- {
		y := r.convolutions[i]
		own := append([]float64(nil), d...)
		y.passed(r, own)
		sums := byFeature(own, y.Wide, y.Channels)
		y.dB, y.dW = r.sum(sums, y.Channels), make([]float64, y.Channels*y.Convolution.Steps*y.Taps())
		d = make([]float64, len(y.in))
		for step := range y.Convolution.Steps {
			for k, v := range r.outer(sums, y.patches(r, y.in, step), y.Channels, y.Taps()) {
				y.dW[k/y.Taps()*y.Convolution.Steps*y.Taps()+step*y.Taps()+k%y.Taps()] = v
			}
			if i == 0 {
				continue
			}
			part := make([]float64, y.Wide*r.rows*y.Taps())
			r.lossy.mul(part, sums, y.taps(step), y.Wide*r.rows, y.Channels, y.Taps())
			y.visit(r, step, func(patch, at int) { d[at] += part[patch] })
			r.lossy.single(d)
		}
	}
}

// taps are the weights of one step of the kernel, Channels × Taps.
func (y *refConvolution) taps(step int) []float32 {
	out := make([]float32, 0, y.Channels*y.Taps())
	for c := range y.Channels {
		out = append(out, y.weight[(c*y.Convolution.Steps+step)*y.Taps():][:y.Taps()]...)
	}
	return out
}

// visit calls f with each place of the patches of a step of the kernel that lies in the input, and with its place
// there. A patch belongs to an output feature and a row: features come first.
func (y *refConvolution) visit(r *reference, step int, f func(patch, at int)) {
	_, left := y.Padded()
	width := y.Over * y.From
	for feature := range y.Wide {
		for row := range r.rows {
			from := row + (step-y.Earlier())*r.Distinct
			if from < 0 || from >= r.rows {
				continue
			}
			for k := range y.Taps() {
				if at := (feature*y.Stride-left)*y.From + k; at >= 0 && at < width {
					f((feature*r.rows+row)*y.Taps()+k, from*width+at)
				}
			}
		}
	}
}

// patches are what one step of the kernel reads of in, Wide·rows × Taps: 0 outside of the input.
func (y *refConvolution) patches(r *reference, in []float64, step int) []float64 {
	out := make([]float64, y.Wide*r.rows*y.Taps())
	y.visit(r, step, func(patch, at int) { out[patch] = in[at] })
	return out
}

// byRow puts the values of features, each of all rows, side by side in rows.
func byRow(v []float64, features, cols int) []float64 {
	out, rows := make([]float64, len(v)), len(v)/(features*cols)
	parallel.For(rows, func(row int) {
		for f := range features {
			copy(out[(row*features+f)*cols:][:cols], v[(f*rows+row)*cols:])
		}
	})
	return out
}

// byFeature is the inverse of byRow.
func byFeature(v []float64, features, cols int) []float64 {
	out, rows := make([]float64, len(v)), len(v)/(features*cols)
	parallel.For(rows, func(row int) {
		for f := range features {
			copy(out[(f*rows+row)*cols:][:cols], v[(row*features+f)*cols:])
		}
	})
	return out
}

// convolutionErrors are variances of the rounding errors of each convolution's sums, as those of
// reference.variances are.
func convolutionErrors(r *reference) (all [][]float64) {
	u := r.p.Precision.Epsilon()
	var below []float64 // of the input; nil: it is exact
	for _, y := range r.convolutions {
		each, part := ofTerm(r.p.Precision, y.Convolution.Steps*y.Taps()), make([]float64, len(y.sums))
		terms, errors := make([]float64, len(y.in)), make([]float64, len(y.sums))
		for i, v := range y.in {
			if terms[i] = each * v * v; below != nil {
				terms[i] += below[i]
			}
		}
		for step := range y.Convolution.Steps {
			mulTransposed(part, y.patches(r, terms, step), squares(y.taps(step)), y.Wide*r.rows, y.Channels, y.Taps())
			for at, v := range byRow(part, y.Wide, y.Channels) {
				errors[at] += v
			}
		}
		for i, sum := range y.sums {
			errors[i] += u * u * sum * sum
		}
		all, below = append(all, errors), y.carried(errors)
	}
	return all
}

// carried are variances of outputs, given those of the sums: outputs that are constant have none.
func (y *refConvolution) carried(errors []float64) []float64 {
	out := make([]float64, len(errors))
	for i, v := range errors {
		if most := deviations * math.Sqrt(v); y.sums[i] >= -most && y.sums[i] <= rnn.MostDense+most {
			out[i] = v
		}
	}
	return out
}

// convolvedErrors are those of what the convolutions give; nil: there are none.
func convolvedErrors(r *reference) []float64 {
	all := convolutionErrors(r)
	if all == nil {
		return nil
	}
	last := len(all) - 1
	return r.convolutions[last].carried(all[last])
}
