package oracle

import "rnnbench/rnn"

// Gradients jump where the input of relu, max, min or abs passes 0. Where FindKinks knows the kink, units
// within rounding of it may be on either side. Cells from files have other kinks. Two right answers may
// then differ by a whole jump, at a few units in single precision and at many in 16 bits. So a gradient of
// such a cell may be far off at some values, but not in the mean of many. States are checked as always.

// What gradients that jump may be off, relative to the largest. A jump may be as large as any value. The
// root mean square of many errors may be some times that of one honest evaluation in bf16, or a little
// where that has few jumps by chance. An answer of zeros is further off.
const (
	mostJump      = 1.5
	marginOfJumps = 4
	leastOfJumps  = 0.02
)

// jumps reports whether gradients of p jump at places that FindKinks does not know.
func jumps(p rnn.Problem) bool { return p.Pass == rnn.Train && p.Cell.Kinked() && !kinked(p) }

// in16Bits returns d for a problem in bf16. There many units are on the other side of a kink, so that an
// honest evaluation shows what jumps do to the mean.
func in16Bits(d *rnn.Data) *rnn.Data {
	p := d.Problem
	p.Precision = rnn.BF16
	coarse := rnn.DataFor(p, d.Distinct)
	coarse.Tensors = d.Tensors
	return coarse
}

// widenJumps gives gradients that jump the tolerance of a jump, and in the mean what they have in 16 bits.
func widenJumps(all, in16Bits map[string]expectation) {
	for name, e := range all {
		if e.jumps {
			e.error, e.mean = mostJump/margin, max(e.mean, in16Bits[name].mean, leastOfJumps)
			all[name] = e
		}
	}
}
