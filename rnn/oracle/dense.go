package oracle

import (
	"math"
	"slices"

	"rnnbench/rnn"
)

// refDense holds the values of a fully connected layer: see rnn.Dense. Values are per new step and distinct
// sequence.
type refDense struct {
	sums, out []float64
	passes    []bool // where the gradient passes; nil: where out is between its bounds
	dW, dB    []float64
}

// clipped is the output of a unit of a fully connected layer.
func clipped(sum float64) float64 { return min(max(sum, 0), rnn.MostDense) }

// passesAt reports whether the gradient of a unit with that output passes.
func passesAt(out float64) bool { return out > 0 && out < rnn.MostDense }

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
	y := &refDense{sums: make([]float64, r.fresh*p.Dense), out: make([]float64, r.fresh*p.Dense)}
	r.lossy.mulTransposed(y.sums, top, r.Get("weight_dense"), r.fresh, p.Dense, p.Out())
	r.lossy.store(y.sums)
	bias := r.Get("bias_dense")
	for i := range y.sums {
		y.sums[i] += float64(bias[i%p.Dense])
		if r.Exists(i / p.Dense) {
			y.out[i] = clipped(y.sums[i])
		}
	}
	r.lossy.single(y.out)
	r.lossy.store(y.out)
	r.dense = y
	return y.out
}

// headBack sets above to the gradient of the last recurrent layer's output, given that of the logits.
func headBack(r *reference, above []float64) {
	p, y := r.p, r.dense
	clear(above)
	if y == nil {
		r.lossy.mul(above, r.prob, r.Get("weight_out"), r.fresh, p.Output, p.Out())
		return
	}
	d := make([]float64, len(y.out))
	r.lossy.mul(d, r.prob, r.Get("weight_out"), r.fresh, p.Output, p.Dense)
	for i, v := range y.out {
		if passes := passesAt(v); !passes && y.passes == nil || y.passes != nil && !y.passes[i] {
			d[i] = 0
		}
	}
	r.lossy.store(d)
	y.dW, y.dB = r.outer(d, r.top[(r.rows-r.fresh)*p.Out():], p.Dense, p.Out()), r.sum(d, p.Dense)
	r.lossy.mul(above, d, r.Get("weight_dense"), r.fresh, p.Dense, p.Out())
}

// sidesOf takes the sides of all kinks from another evaluation.
func (y *refDense) sidesOf(other *refDense) {
	if y == nil {
		return
	}
	y.passes = make([]bool, len(y.out))
	for i, v := range other.out {
		y.passes[i] = passesAt(v)
	}
}

// nearDense is how far the output of a unit may be from a kink for either gradient to be right, in largest
// errors of an honest evaluation.
const nearDense = 2

// denseKinks counts the units of a fully connected layer within rounding of a kink. These take the side of the
// answer's output, which always shows it. They may be many, since that output is compared, too.
func denseKinks(r *reference, answer []Tensor) (found Kinks) {
	if r.dense == nil || r.p.Pass != rnn.Train {
		return found
	}
	y, own := r.dense, r.p.Dense
	k := slices.IndexFunc(answer, func(t Tensor) bool { return t.Name == "dense" })
	unit := 0.0
	if k >= 0 {
		unit = answer[k].UnitError
	}
	e, _ := expect(r.Data, "dense", unit)
	most := nearDense * e.error * e.size
	y.passes = make([]bool, len(y.out))
	for i, sum := range y.sums {
		y.passes[i] = passesAt(y.out[i])
		row := i / own
		if !r.Exists(row) {
			continue
		}
		if found.Units++; min(math.Abs(sum), math.Abs(sum-rnn.MostDense)) > most {
			continue
		}
		found.Near++
		if k < 0 {
			continue
		}
		at := (row/r.Distinct*(answer[k].Rows/r.p.Steps) + row%r.Distinct) * own
		if passes := passesAt(answer[k].Values[at+i%own]); passes != y.passes[i] {
			y.passes[i] = passes
			found.Other++
		}
	}
	return found
}
