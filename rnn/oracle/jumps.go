package oracle

import "rnnbench/rnn"

// Gradients jump where the input of relu, max, min or abs passes 0. Where FindKinks knows the kink, units
// within rounding of it may be on either side. Cells from files have other kinks. Two right answers may
// then differ by a whole jump, at a few units in single precision and at many in 16 bits. So gradients of
// such cells have a wide tolerance, and their states a narrow one, as always.

// mostJump bounds the tolerance of gradients that jump, so that an answer of zeros is never right.
const mostJump = 0.5

// jumps reports whether gradients of p jump at places that FindKinks does not know.
func jumps(p rnn.Problem) bool { return p.Pass == rnn.Train && p.Cell.Kinked() && !kinked(p) }

// in16Bits returns d for a problem in bf16. There many units are on the other side of a kink, so that an
// honest evaluation shows how large jumps are.
func in16Bits(d *rnn.Data) *rnn.Data {
	p := d.Problem
	p.Precision = rnn.BF16
	coarse := rnn.DataFor(p, d.Distinct)
	coarse.Tensors = d.Tensors
	return coarse
}

// widenJumps gives gradients that jump at least the errors that they have in 16 bits.
func widenJumps(all, in16Bits map[string]expectation) {
	for name, e := range all {
		if e.jumps {
			e.error = min(mostJump/margin, max(e.error, in16Bits[name].error))
			all[name] = e
		}
	}
}
