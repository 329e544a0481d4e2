// Package barrier runs a persistent layer, or its gradient, in one group of all blocks, which wait
// at a barrier between steps: what runs if no variant fits, or if a knob asks for it. The kernels
// keep recurrent weights in shared memory over all steps (Diamos et al. 2016, section 3). Each block
// owns a band of units and holds their weights. At each step it reads the states of all units from
// memory, forms the products of its own units, and runs their cell. All blocks must be resident at
// once.
package barrier

import (
	"fmt"

	"rnnbench/device"
	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/schedule"
)

// tileRows is how many rows of weights a warp multiplies at a time.
const tileRows = 4

// chunkBatch is how many sequences a block handles between its own barriers.
const chunkBatch = 64

// bands divides hidden units among blocks, as evenly as possible.
func bands(t *launch.Target, hidden int) (units, blocks int) {
	units = ints.CeilDiv(hidden, t.Properties.SMs)
	return units, ints.CeilDiv(hidden, units)
}

// bandsOf says how the blocks of a kernel divide the work of s.
func bandsOf(t *launch.Target, s *schedule.Sequence) (of kernels.Bands, blocks int) {
	units, blocks := bands(t, s.Hidden())
	return kernels.Bands{Units: units, Chunk: min(s.Batch(), chunkBatch), Rows: tileRows, Samples: samples(s.Batch())}, blocks
}

// samples returns how many sequences a warp multiplies at a time.
func samples(batch int) int { return min(8, ints.PowerOfTwo(batch)) }

// sharedBytes returns the shared memory of a block: the weights of its units, the products of a
// chunk of sequences, and the barrier's word.
func sharedBytes(rows, length int, weights driver.Element, chunk int) int {
	rows = ints.RoundUp(rows, tileRows)
	return ints.RoundUp(rows*length*weights.Bytes(), 16) + 4*rows*chunk + 16
}

// Fits declines op, a persistent layer or its gradient, if its kernel would need more shared memory than the GPU has.
func Fits(t *launch.Target, op schedule.Op) error {
	need := 0
	switch op := op.(type) {
	case schedule.Persistent:
		need = forwardShared(t, op)
	case schedule.PersistentBackward:
		need = backwardShared(t, op)
	}
	if need > t.Properties.Shared {
		return fmt.Errorf("cuda: %w: the weights of a multiprocessor's units and their products take %d KiB of shared memory, and there are %d",
			schedule.ErrUnsupported, need>>10, t.Properties.Shared>>10)
	}
	return nil
}

func forwardShared(t *launch.Target, op schedule.Persistent) int {
	units, _ := bands(t, op.Hidden())
	return sharedBytes(units*op.Cell.Recurrent, op.Hidden(), t.Element(op.R[0]), min(op.Batch(), chunkBatch))
}

func backwardShared(t *launch.Target, op schedule.PersistentBackward) int {
	units, _ := bands(t, op.Hidden())
	return sharedBytes(units, op.Cell.Recurrent*op.Hidden(), t.Element(op.R), min(op.Batch(), chunkBatch))
}

// LaunchForward runs op.
func LaunchForward(t *launch.Target, op schedule.Persistent, control uint64) launch.Command {
	bands, blocks := bandsOf(t, &op.Sequence)
	src, args := kernels.Barrier(t, op, bands, control)
	return launchIn("barrier", src, args, blocks, forwardShared(t, op), &op.Sequence)
}

// LaunchBackward runs the gradient op.
func LaunchBackward(t *launch.Target, op schedule.PersistentBackward, control uint64) launch.Command {
	bands, blocks := bandsOf(t, &op.Sequence)
	src, args := kernels.BackwardBarrier(t, op, bands, control)
	return launchIn("backward-barrier", src, args, blocks, backwardShared(t, op), &op.Sequence)
}

// launchIn launches so many blocks that meet at a barrier.
func launchIn(variant string, src *codegen.Source, args []uint64, blocks, shared int, s *schedule.Sequence) launch.Command {
	c := launch.New(src, [3]int{blocks, 1, 1}, [3]int{launch.BlockSize, 1, 1}, args...)
	c.Launch.Cooperative, c.Launch.Shared = true, shared
	c.About = launch.About{Variant: variant, Config: persistent.Config{}.Words(), Group: device.Group{Blocks: blocks, Samples: s.Batch(), Spread: true, Steps: s.Steps}}
	return c
}
