package cpu

import (
	"slices"

	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// most returns the most workers, of so many, that take part in op. inOneCall says whether one call
// may run all steps.
func (pl *planner) most(op schedule.Op, f simd.Format, k knob.Params, members int, inOneCall bool) int {
	weights := pl.weights(op, f)
	switch {
	case k["bands"] > 0:
		return k["bands"]
	case weights > nearest():
		return pl.payingBands(costPerStep(op), units(op), members)
	case inOneCall && 2*weights >= nearest():
		return 2 // two halves take less time, although the workers wait for each other
	}
	return 1
}

// ownSequences reports whether each worker runs all steps of its own sequences, instead of some
// units of all sequences. op is a persistent operation or its gradient. Workers then need not meet,
// but each reads all weights. It pays if the weights are near enough for one sequence, or if each
// worker has enough sequences at a time. Forward, in assembly, weights may exceed the nearest cache
// by half.
func (pl *planner) ownSequences(op schedule.Op, f simd.Format, k knob.Params) bool {
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

// enoughByVectors is the number of sequences that make up for reading weights from L2, if vectors
// multiply.
const enoughByVectors = 4

// enough returns how many sequences of a worker make up for reading weights from L2, which a step
// does once for all of them. Tiles multiply sixteen sequences in the time of one, so with few
// sequences most of a tile is empty. Weights that leave no room in L2 come from further away.
func enough(weights, l2 int, f simd.Format, level simd.Level) int {
	n := enoughByVectors
	if f == simd.BF16 && level == simd.AMX {
		n = 8
	}
	if 4*weights > 3*l2 {
		n *= 4
	}
	return n
}

// nearL2 returns the size of a processor's L2 in bytes, or a usual one if it is unknown.
func nearL2() int {
	if n := gemm.DetectL2(); n > 0 {
		return n
	}
	return 1 << 20
}

// sequences returns the sequences of a persistent operation or its gradient; 0: op is neither.
func sequences(op schedule.Op) int {
	switch op := op.(type) {
	case schedule.Persistent:
		return op.Batch()
	case schedule.PersistentBackward:
		return op.Batch()
	}
	return 0
}

// weights returns the bytes of the weights of a persistent operation or its gradient; 0: op is
// neither.
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

// units returns the units of a persistent operation or its gradient; 0: op is neither.
func units(op schedule.Op) int {
	switch op := op.(type) {
	case schedule.Persistent:
		return op.Hidden()
	case schedule.PersistentBackward:
		return op.Hidden()
	}
	return 0
}

// persistentWeights returns the most weights, in bytes, of any persistent operation; 0: there is
// none.
func (pl *planner) persistentWeights(s *schedule.Schedule, f simd.Format) int {
	most := 0
	for _, n := range s.Nodes {
		most = max(most, pl.weights(n.Op, f))
	}
	return most
}

// nearest returns the bytes of a processor's nearest cache. One worker runs all units if it holds
// the weights, since reading them takes less time than a meeting of workers.
func nearest() int { return max(cpuid.CPU.Cache.L1D, 16<<10) }

// persists reports whether s has a persistent operation or a gradient of one.
func persists(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Nodes, func(n schedule.Node) bool { return sequences(n.Op) > 0 })
}
