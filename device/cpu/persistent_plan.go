package cpu

import (
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// most is how many of so many workers take part in op at most, where one call may run all steps or not.
func (pl *planner) most(op schedule.Op, f simd.Format, k knob.Params, members int, inOneCall bool) int {
	weights := pl.weights(op, f)
	switch {
	case k["bands"] > 0:
		return k["bands"]
	case weights > nearest():
		return pl.payingBands(costPerStep(op), units(op), members)
	case inOneCall && 2*weights >= nearest():
		return 2 // halves side by side take less time, although workers wait for each other
	}
	return 1
}

// apart reports whether workers run sequences of op, a persistent operation or its gradient, from end to end,
// each its own, instead of units of all sequences: they need not meet, but each reads all weights. Those are near
// enough for one sequence, or some sequences at a time make up for it. Forward, in assembly, they may exceed the
// nearest cache by half.
func (pl *planner) apart(op schedule.Op, f simd.Format, k knob.Params) bool {
	batch := sequences(op)
	switch n := k["sequences"]; {
	case batch < 2:
		return false
	case n > 0:
		return n == 2
	case k["bands"] > 0 || k["crews"] > 0:
		return false
	}
	weights := pl.weights(op, f)
	if weights <= nearest() || weights <= gemm.DetectL2() && batch >= enough(weights, nearL2(), f, pl.kernels.Level())*pl.workers {
		return true
	}
	_, forward := op.(schedule.Persistent)
	return forward && pl.kernels.Level() >= simd.AVX2 && 2*weights <= 3*nearest()
}

// some is how many sequences make up for weights from L2 where vectors multiply.
const some = 4

// enough is how many sequences of a worker make up for weights from L2: a step reads them once for all. Tiles
// multiply sixteen sequences in the time of one, so few leave most of a tile empty. Weights that leave L2 no room for
// anything else come from further away.
func enough(weights, l2 int, f simd.Format, level simd.Level) int {
	n := some
	if f == simd.BF16 && level == simd.AMX {
		n = 8
	}
	if 4*weights > 3*l2 {
		n *= 4
	}
	return n
}

// nearL2 is the size of a processor's second cache, or a usual one where it is not known.
func nearL2() int {
	if n := gemm.DetectL2(); n > 0 {
		return n
	}
	return 1 << 20
}

// sequences is how many a persistent operation or its gradient has; 0: op is another.
func sequences(op schedule.Op) int {
	switch op := op.(type) {
	case schedule.Persistent:
		return op.Batch()
	case schedule.PersistentBackward:
		return op.Batch()
	}
	return 0
}

// weights are the bytes of those of a persistent operation; 0: op is another.
func (pl *planner) weights(op schedule.Op, f simd.Format) int {
	bytes := 0
	switch op := op.(type) {
	case schedule.Persistent:
		for _, r := range op.R {
			bytes += 4 * pl.floats(r.M, f)
		}
	case schedule.PersistentBackward:
		bytes = 4 * pl.floats(op.R.M, f)
	}
	return bytes
}

// units is how many a persistent operation or its gradient has; 0: op is another.
func units(op schedule.Op) int {
	switch op := op.(type) {
	case schedule.Persistent:
		return op.Hidden()
	case schedule.PersistentBackward:
		return op.Hidden()
	}
	return 0
}

// persistentWeights are the bytes of the weights of the persistent operation that
// has most; 0: there is none.
func (pl *planner) persistentWeights(s *schedule.Schedule, f simd.Format) int {
	most := 0
	for _, n := range s.Nodes {
		most = max(most, pl.weights(n.Op, f))
	}
	return most
}

// nearest is the size of a processor's nearest cache. Weights that it holds are
// read in less time than workers need to meet, so that one worker has all units.
func nearest() int { return max(cpuid.CPU.Cache.L1D, 16<<10) }

// persists reports whether s has a persistent operation.
func persists(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 0 })
}
