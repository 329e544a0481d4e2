package barrier

import (
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// Costs of the kernels, in cycles at persistent.CycleRate. They are estimated from the loops, not
// measured, and only rank these kernels behind grouped ones.
const (
	readCost   = 500  // per warp, for four pieces of 32 columns: their states come from the L2 cache
	reduceCost = 300  // per warp, to add up its sums
	cellsCost  = 600  // per block, for the cells of 256 threads
	meetCost   = 2890 // per barrier: an arrival and a release, each as long as persistent.GridExchange
)

// Seconds predicts the barrier kernel's time for op, a persistent layer or its gradient, on
// sms multiprocessors. It is 0 for other operations.
func Seconds(op schedule.Op, sms int) float64 {
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
	products := ints.CeilDiv(items, warps) * (reduceCost + readCost*ints.CeilDiv(length, 128))
	cells := cellsCost * ints.CeilDiv(batch*units, launch.BlockSize)
	return persistent.StartTime + float64(steps)*float64(meetCost+products+cells)/persistent.CycleRate
}
