package oracle

import (
	"math"

	"rnnbench/rnn"
)

// rounds is how far apart rounding keeps two iterations, however many there are: a few units in the last place
// of the largest value.
var rounds = 8 * rnn.FP32.Epsilon()

// Unconverged reports whether a wrong answer is wrong because an Iterative technique has not converged: its
// last two iterations differ by more than rounding and a tenth of the tolerance. residual is by how much: see
// Residual.
func Unconverged(p *rnn.Plan, mem rnn.Memory, tolerance float64) (residual float64, yes bool, err error) {
	if len(p.Iterates) == 0 {
		return 0, false, nil
	}
	residual, err = Residual(p, mem)
	return residual, residual > max(tolerance/10, rounds), err
}

// Residual is the largest difference between the states of the last two iterations of an Iterative
// technique, each over the largest of its kind and layer, and the same of their gradients. It is infinite where
// the states of the last are not finite, and 0 where the technique has no iterations.
func Residual(p *rnn.Plan, mem rnn.Memory) (float64, error) {
	residual := 0.0
	for _, pair := range p.Iterates {
		apart, size := 0.0, 0.0
		var values [2][]float32
		for i, v := range pair {
			values[i] = make([]float32, v.M.Elements())
			if err := mem.Read(v.M, values[i]); err != nil {
				return 0, err
			}
		}
		last, before := pair[0], pair[1]
		for row := range last.Rows {
			a := values[0][(last.Row+row)*last.M.Cols+last.Col:][:last.Cols]
			b := values[1][(before.Row+row)*before.M.Cols+before.Col:][:before.Cols]
			for i, v := range a {
				d := math.Abs(float64(v) - float64(b[i]))
				if !(d <= math.MaxFloat32) { // it is no number either
					return math.Inf(1), nil
				}
				apart, size = max(apart, d), max(size, math.Abs(float64(v)))
			}
		}
		if apart > 0 {
			residual = max(residual, apart/size)
		}
	}
	return residual, nil
}
