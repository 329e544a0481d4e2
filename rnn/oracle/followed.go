package oracle

import (
	"slices"

	"rnnbench/rnn"
)

// Networks whose products are normalised over the minibatch amplify rounding errors from layer to layer. Without
// shortcuts they do so however many samples are normalised. With shortcuts, the fewer samples, the more. A right
// answer of many layers is then further from the reference than Tolerance allows.
//
// Such a network is judged layer by layer, as Stepwise judges a long run step by step. The reference reads, in each
// layer, what the run itself left of the layer below. So the errors of one layer reach no other, and its states may
// be off by the tolerance of a network of one layer. Gradients pass back through the reference's values at the run's
// own states. Their errors grow as gradients themselves do, so these have the tolerance of any network.
//
// A fault is found in the layer that has it. What is not found is an error within the tolerance of one layer, which
// the layers above amplify.

// follow has r, which has computed nothing yet, read in each layer what the answer shows of the layer below. It does
// so if the network amplifies rounding and the answer shows the outputs of all layers at all steps.
func follow(r *reference, answer []Tensor) {
	for i := range r.p.Reads() {
		if t := outputIn(answer, r.p, i); t == nil || t.First > 0 || t.Later > 0 || len(t.Values) < r.rows*rnn.Emits(r.p) {
			return
		}
	}
	if amplifies(r.Data, answer[0].UnitError) {
		r.run = answer
	}
}

// outputIn is the tensor of an answer that has the outputs of number i of Problem.Reads; nil: none.
func outputIn(answer []Tensor, p rnn.Problem, i int) *Tensor {
	k := slices.IndexFunc(answer, func(t Tensor) bool { return t.Name == p.Named(p.Cell.States[0], i) })
	if k < 0 {
		return nil
	}
	return &answer[k]
}

// leftBy is what the run that r follows left of the outputs of number i of Problem.Reads; nil: it follows none.
func leftBy(r *reference, i int) []float64 {
	if r.run == nil {
		return nil
	}
	t, frames := outputIn(r.run, r.p, i), r.p.Frames()
	block, out := len(t.Values)/frames, make([]float64, 0, r.rows*t.Cols)
	for step := range frames { // an answer has the rows of all copies
		out = append(out, t.Values[step*block:][:r.Distinct*t.Cols]...)
	}
	return out
}

// shallow is the number of layers up to which a network is never judged layer by layer. Right answers are within
// Tolerance of the reference there, and that finds more faults: those that the layers above amplify.
const shallow = 16

// amplified is the key under which data keep whether they amplify, by the unit error of functions.
type amplified float64

// amplifies reports whether a comparison with Reference cannot judge answers to d: the states of an honest
// evaluation, margin times as far off, are beyond Tolerance. It asks for single precision alone. Tolerances of
// 16 bits are so wide that few layers would do, of which the comparison finds more.
func amplifies(d *rnn.Data, unit float64) bool {
	if d.Problem.Norm != rnn.NormBatch || d.Problem.Precision != rnn.FP32 || d.Problem.Layers <= shallow {
		return false
	}
	return rnn.Once(d, amplified(unit), func(d *rnn.Data) bool {
		exact, honest := newReference(d), newReference(d)
		honest.lossy = &rounding{precision: d.Problem.Precision, unit: unit}
		exact.forward()
		honest.forward()
		for i := range exact.layers {
			var t tally
			t.add(exact.layers[i].shown(0, d.Problem.Hidden), honest.layers[i].shown(0, d.Problem.Hidden))
			if !(margin*t.relative() <= Tolerance(d.Problem, false, unit)) {
				return true
			}
		}
		return false
	})
}
