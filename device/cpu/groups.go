package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Workers that share a persistent operation of many sequences form groups. Each group has sequences
// of its own, and each worker of a group some of the units. In larger groups each worker reads
// fewer weights. In smaller groups fewer workers meet at each step, fewer states come from other
// workers, and cells run over longer rows.

// The model of a step's time, in nanoseconds, estimated from profiles on Sapphire Rapids. Only the
// ratios matter. The choices were compared with measured times of one to eight groups of 16
// workers: see docs/notebook/cpu-workers.md.
const (
	flopTime   = 1 / 150.  // of an operation of a product by vectors
	tileTime   = 1 / 1500. // of one by tiles, which multiply tileRows sequences in the time of one
	tileRows   = 16
	rowTime    = 60.  // of calling a cell for a sequence
	cellTime   = 3.5  // of a unit of a sequence in a cell
	fetchTime  = 0.25 // of a state that another worker has written
	meetTime   = 140. // of two workers that meet
	farVectors = 16   // by vectors, products of so many sequences take as long as reading weights that exceed L2
	farTiles   = 64   // the same by tiles
)

// groupsOf returns how many groups of workers run op, a persistent operation or its gradient. Each
// group runs its own sequences. The number divides members. If they are fewer than the groups that
// a knob asks for, as when one worker runs a small layer alone, they are one group.
func groupsOf(pl *planner, op schedule.Op, f simd.Format, k knob.Params, members int) int {
	batch := sequences(op)
	if batch < 2 || k["bands"] > 0 || k["sequences"] > 0 || k["crews"] == 0 && pl.ownSequences(op, f, k) {
		return 1
	}
	switch n := k["crews"]; {
	case n > members:
		return 1
	case n > 0:
		return n
	}
	return cheapest(pl, op, f, members, nearL2())
}

// cheapest returns the number of groups with the least time of a step of op. l2 is the size of a
// processor's L2 in bytes.
func cheapest(pl *planner, op schedule.Op, f simd.Format, members, l2 int) int {
	best, least := 1, stepTime(pl, op, f, members, 1, l2)
	for n := 2; n <= min(members/2, sequences(op)); n++ {
		if members%n > 0 {
			continue
		}
		if took := stepTime(pl, op, f, members, n, l2); took < least {
			best, least = n, took
		}
	}
	return best
}

// stepTime estimates the time of a step of op with so many groups of workers, in nanoseconds.
func stepTime(pl *planner, op schedule.Op, f simd.Format, members, groups, l2 int) float64 {
	weights, units := pl.weights(op, f), units(op)
	size := members / groups
	strips := ceil(units, line)
	bands := min(size, strips)
	own := ceil(strips, bands) * line // units of the largest band
	rows := ceil(sequences(op), groups)
	depth := units // values of each sequence that a product reads
	if b, ok := op.(schedule.PersistentBackward); ok {
		depth = b.R.Rows
	}
	elements := weights / 4 // weights of all bands
	multiplied, far, each := max(rows, enoughByVectors), farVectors, flopTime
	if f != simd.F32 {
		elements = weights / 2
	}
	if f == simd.BF16 && pl.kernels.Level() == simd.AMX {
		multiplied, far, each = ceil(rows, tileRows)*tileRows, farTiles, tileTime
	}
	if 4*weights/bands > 3*l2 {
		multiplied = max(multiplied, far)
	}
	took := 2*float64(multiplied)*float64(elements)*float64(own)/float64(units)*each + float64(rows)*(rowTime+cellTime*float64(own))
	if bands > 1 {
		took += float64(rows*depth)*fetchTime + meetTime*pl.times(bands)
	}
	return took
}

// A group says which group of an operation a worker is in, and its place in the group.
type group struct {
	of          int // number of the group
	place, size int // of the worker in the group; workers of the group
}

// group returns the group of worker part. If parts is not the number of workers that the operation
// was divided for, all workers are one group.
func (b *band) group(part, parts int) group {
	if n := len(b.meetings); n > 1 && parts == n*b.size {
		return group{part / b.size, part % b.size, b.size}
	}
	return group{0, part, parts}
}

// rowsOf returns the sequences of group g, when parts workers run the operation.
func (b *band) rowsOf(g group, parts int) fused.Span {
	from, to := span(b.batch, 1, g.of, parts/g.size)
	return fused.Span{From: from, N: to - from}
}
