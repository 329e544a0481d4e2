package persistent

import "math"

// The cost model of a step, in cycles of an H200, by which a Chooser picks a Config. Only ratios
// matter. Every constant was fitted to measurements on one H200 (132 multiprocessors, about 1.7
// GHz), unless it names an H100. Each group of constants states its known error. Other GPUs were not
// measured. The constants and cycles of a variant stand in its file.

// Exchange within a group of one block, which only has a barrier of its own. The second was fitted
// to eight layers of 32 to 64 units on an H100; layers of one gate were not measured.
const (
	exchangeAlone = 50
	exchangeWarp  = 50 // each warp after the fourth, with several gates
)

// waiting is how much longer groups over the GPU take beside other work, as measured. All of their
// blocks start together or none does, and other kernels free room block by block.
const waiting = 1.6

// sideBySide predicts the cycles of a step of so many layers that share n parts of the GPU, each in the
// configuration t. Clusters of a layer start one by one as there is room.
func (t Config) sideBySide(layers, n int) float64 {
	turns := max(1, float64(layers)/float64(n))
	if t.spread && layers > 1 {
		turns = waiting * math.Ceil(turns)
	}
	return t.cycles * turns
}
