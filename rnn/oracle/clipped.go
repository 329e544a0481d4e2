package oracle

import (
	"math"
	"slices"

	"rnnbench/rnn"
)

// clippedUnits are units of a fully connected layer or of a convolution, whose outputs are sums clipped to
// 0 and rnn.MostDense. Values are per new step and distinct sequence.
type clippedUnits struct {
	name      string // of the outputs in an answer
	cols      int
	sums, out []float64
	passes    []bool // where the gradient passes; nil: where out is between its bounds
}

// clipped is the output of a unit.
func clipped(sum float64) float64 { return min(max(sum, 0), rnn.MostDense) }

// passesAt reports whether the gradient of a unit with that output passes.
func passesAt(out float64) bool { return out > 0 && out < rnn.MostDense }

// rectify forms the outputs of units from their sums, to which it adds biases, one for each of the last columns.
func (y *clippedUnits) rectify(r *reference, bias []float32) {
	y.out = make([]float64, len(y.sums))
	for i := range y.sums {
		y.sums[i] += float64(bias[i%len(bias)])
		if r.Exists(i / y.cols) {
			y.out[i] = clipped(y.sums[i])
		}
	}
	r.lossy.single(y.out)
	r.lossy.store(y.out)
}

// passed clears gradients of outputs where they do not pass.
func (y *clippedUnits) passed(r *reference, d []float64) {
	for i, v := range y.out {
		if passes := passesAt(v); !passes && y.passes == nil || y.passes != nil && !y.passes[i] {
			d[i] = 0
		}
	}
	r.lossy.store(d)
}

// sidesOf takes the sides of all kinks from another evaluation.
func (y *clippedUnits) sidesOf(other *clippedUnits) {
	y.passes = make([]bool, len(y.out))
	for i, v := range other.out {
		y.passes[i] = passesAt(v)
	}
}

// nearDense is how far the output of a fully connected unit may be from a kink for either gradient to be right, in
// largest errors of an honest evaluation.
const nearDense = 2

// kinks counts the units within rounding of a kink: at most that far. These take the side of the answer's output,
// which always shows it. They may be many, since that output is compared, too.
func (y *clippedUnits) kinks(r *reference, answer []Tensor, most func(i int) float64) (found Kinks) {
	k := slices.IndexFunc(answer, func(t Tensor) bool { return t.Name == y.name })
	y.sidesOf(y)
	for i, sum := range y.sums {
		row := i / y.cols
		if !r.Exists(row) {
			continue
		}
		if found.Units++; min(math.Abs(sum), math.Abs(sum-rnn.MostDense)) > most(i) {
			continue
		}
		found.Near++
		if k < 0 {
			continue
		}
		found.Shown++
		at := (row/r.Distinct*(answer[k].Rows/r.p.Steps) + row%r.Distinct) * y.cols
		if passes := passesAt(answer[k].Values[at+i%y.cols]); passes != y.passes[i] {
			y.passes[i] = passes
			found.Other++
		}
	}
	return found
}

// clippedLayers lists the units of all layers that clip.
func clippedLayers(r *reference) (all []*clippedUnits) {
	for _, y := range r.convolutions {
		all = append(all, &y.clippedUnits)
	}
	if r.dense != nil {
		all = append(all, &r.dense.clippedUnits)
	}
	return all
}

// clippedKinks counts the units within rounding of a kink in all of them, and puts these on the answer's side.
func clippedKinks(r *reference, answer []Tensor) (found Kinks) {
	if r.p.Pass != rnn.Train {
		return found
	}
	for k, errors := range convolutionErrors(r) {
		found.add(r.convolutions[k].kinks(r, answer, func(i int) float64 { return deviations * math.Sqrt(errors[i]) }))
	}
	if y := r.dense; y != nil {
		unit := 0.0
		if k := slices.IndexFunc(answer, func(t Tensor) bool { return t.Name == y.name }); k >= 0 {
			unit = answer[k].UnitError
		}
		e, _ := expect(r.Data, y.name, unit)
		most := nearDense * e.error * e.size
		found.add(y.kinks(r, answer, func(int) float64 { return most }))
	}
	return found
}
