package cpu

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Workers that share a persistent operation of many sequences form groups. Each group has sequences of its own, and each
// of its workers some of the units. Larger groups read fewer weights a worker; in smaller ones fewer meet at each step,
// less is fetched from others, and cells run over longer rows.

// What a step takes about, in nanoseconds: estimates from profiles on Sapphire Rapids. Only their ratios matter. The
// choice by them was held to times of one to eight groups of 16 workers: see docs/notebook/many-cores.md.
const (
	flopTime   = 1 / 150.  // of products by vectors
	tileTime   = 1 / 1500. // by tiles, which multiply tileRows sequences in the time of one
	tileRows   = 16
	rowTime    = 60.  // of calling a cell for a sequence
	cellTime   = 3.5  // of a unit of it
	fetchTime  = 0.25 // of a state that another worker has written
	meetTime   = 140. // of two workers
	farVectors = 16   // sequences whose products take as long as reading weights that L2 does not hold, by vectors
	farTiles   = 64   // and by tiles
)

// groupsOf is how many groups of workers run op, a persistent operation or its gradient, each its own sequences. It
// divides the members.
func groupsOf(pl *planner, op schedule.Op, f simd.Format, k knob.Params, members int) int {
	batch := sequences(op)
	if batch < 2 || k["bands"] > 0 || k["sequences"] > 0 || k["crews"] == 0 && pl.apart(op, f, k) {
		return 1
	}
	if n := k["crews"]; n > 0 {
		return n
	}
	return cheapest(pl, op, f, members, nearL2())
}

// cheapest is how many groups a step of op takes least by, on processors with so many bytes of second cache.
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

// stepTime is about how long a step of op takes by so many groups of workers, in nanoseconds.
func stepTime(pl *planner, op schedule.Op, f simd.Format, members, groups, l2 int) float64 {
	weights, units := pl.weights(op, f), units(op)
	size := members / groups
	strips := ceil(units, line)
	bands := min(size, strips)
	own := ceil(strips, bands) * line // units of the largest band
	rows := ceil(sequences(op), groups)
	depth := units // values that a product reads for each sequence
	if b, ok := op.(schedule.PersistentBackward); ok {
		depth = b.R.Rows
	}
	elements := weights / 4 // of all bands
	multiplied, far, each := max(rows, some), farVectors, flopTime
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

// A group is the part of a worker's group in an operation.
type group struct {
	of          int // which one
	place, size int // of the worker, and how many the group has
}

// group is that of a worker of so many: one of all, where they are not as many as the operation was divided for.
func (b *band) group(part, parts int) group {
	if n := len(b.meetings); n > 1 && parts == n*b.size {
		return group{part / b.size, part % b.size, b.size}
	}
	return group{0, part, parts}
}

// rowsOf are the sequences of the group of one of so many workers.
func (b *band) rowsOf(g group, parts int) fused.Span {
	from, to := span(b.batch, 1, g.of, parts/g.size)
	return fused.Span{From: from, N: to - from}
}
