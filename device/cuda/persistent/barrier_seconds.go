package persistent

import (
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// Costs of the barrier kernels, in cycles at cycleRate. They are estimated from the loops, not
// measured, and only rank these kernels behind grouped ones.
const (
	barrierRead   = 500  // per warp, for four pieces of 32 columns: their states come from the L2 cache
	barrierReduce = 300  // per warp, to add up its sums
	barrierCells  = 600  // per block, for the cells of 256 threads
	barrierMeets  = 2890 // per barrier: an arrival and a release, each as long as gridTo
)

// BarrierSeconds predicts the barrier kernel's time for op, a persistent layer or its gradient, on
// sms multiprocessors. It is 0 for other operations.
func BarrierSeconds(op schedule.Op, sms int) float64 {
	var hidden, batch, steps, rows, length int // rows and length of one unit's weights
	switch op := op.(type) {
	case schedule.Persistent:
		hidden, batch, steps = op.Hidden(), op.Batch(), op.Steps
		rows, length = op.Cell.Recurrent, hidden
	case schedule.PersistentBackward:
		hidden, batch, steps = op.Hidden(), op.Batch(), op.Steps
		rows, length = 1, op.Cell.Recurrent*hidden
	default:
		return 0
	}
	const warps = launch.BlockSize / 32
	units := ints.CeilDiv(hidden, sms)
	items := ints.CeilDiv(units*rows, tileRows) * ints.CeilDiv(batch, samples(batch))
	products := ints.CeilDiv(items, warps) * (barrierReduce + barrierRead*ints.CeilDiv(length, 128))
	cells := barrierCells * ints.CeilDiv(batch*units, launch.BlockSize)
	return startTime + float64(steps)*float64(barrierMeets+products+cells)/cycleRate
}
