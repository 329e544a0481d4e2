package stack

import (
	"fmt"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
)

// For many sequences, stacks have another kernel (stack_bulk.cu). The copy engine copies h to the
// shared memory of two blocks at once. A warpgroup multiplies the four gates of a block's units
// together, which is Hopper's fastest product.

// A bulk is the part of a Stack that only this kernel needs.
type bulk struct {
	cluster int // blocks that copy for each other
	stages  int // places for h of the layer beneath
	own     int // places for the layer's own h
}

// bulkSums is how many sums of a unit are multiplied, even if the cell has fewer. bulkStages is the
// most places for h of either kind.
const (
	bulkSums   = 4
	bulkStages = 3
	bulkInputs = bulkSums*(blockUnits+4) + 4 // words of a sequence's inputs, with gaps
)

// suitsBulk reports whether a group has so many sequences that this kernel was measured to be
// faster.
func (st *Stack) suitsBulk() bool {
	least := 32
	if st.free > 0 { // a quarter of its products multiplies zeros
		least = 33
	}
	return st.Hidden >= 256 && st.sequences() >= least
}

// configureBulk configures this kernel, or says why it cannot run. It needs Hopper, 16-bit values,
// a cell of three or four sums, at most 512 units, and 16 or 32 sequences at a time; samples = 0:
// chosen by their number.
func (st *Stack) configureBulk(samples int, p driver.Properties) (why string) {
	switch sums := st.Gates + st.free; {
	case !p.Hopper:
		return "the kernel that copies all of h needs a Hopper GPU"
	case st.Weights.Bytes() != 2:
		return "the kernel that copies all of h multiplies 16-bit values: set bf16 or fp16, or stack=1"
	case sums > bulkSums || sums < bulkSums-1:
		return fmt.Sprintf("the kernel that copies all of h runs cells with three or four sums, not %d: set stack=1", sums)
	case st.blocks > 32:
		return fmt.Sprintf("the kernel that copies all of h runs up to 512 units, not %d: set stack=1", st.Hidden)
	case samples != 0 && samples != 16 && samples != 32:
		return fmt.Sprintf("the kernel that copies all of h multiplies 16 or 32 sequences at a time, not %d", samples)
	}
	b := bulk{cluster: 1}
	if st.blocks%2 == 0 && p.Clusters[2]*2 >= st.groups*len(st.layers)*st.blocks {
		b.cluster = 2
	}
	if st.samples = samples; samples == 0 {
		st.samples = 16
		if st.sequences() > 32 {
			st.samples = 32
		}
	}
	st.parts = ints.CeilDiv(st.sequences(), st.samples)
	st.more, st.fewer, st.places = 216, 72, 2
	st.bulk = &b
	for b.stages = bulkStages; b.stages > 0; b.stages-- {
		for b.own = b.stages; b.own >= b.stages-1 && b.own > 0; b.own-- {
			if st.shared() <= p.Shared {
				return ""
			}
		}
	}
	return st.fits(p)
}

// piece returns the bytes of the h of a part, which is copied at once.
func (st *Stack) piece() int { return st.blocks * st.samples * 2 * blockUnits }

// room returns the bytes of the buffers for the h of the layer beneath, or for inputs.
func (st *Stack) room() int {
	return max(st.bulk.stages*st.piece(), 4*aheadTurns*st.samples*bulkInputs)
}

// bulkShared returns the bytes of shared memory of a block.
func (st *Stack) bulkShared() int {
	b := st.bulk
	floats := st.places*bulkSums*blockUnits + st.parts*st.states*(blockUnits+2)
	return st.room() + b.own*st.piece() + 4*st.samples*floats + 8*((b.stages+b.own)*(b.cluster+1)+3*st.parts+2*st.places)
}

// bulkBytes returns the memory through which blocks communicate.
func (st *Stack) bulkBytes() int64 {
	layers := len(st.layers)
	words := 32 * (1 + layers + layers*st.parts*st.bulk.cluster)
	return 4*64 + int64(st.groups)*(4*int64(words)+int64(layers*keptSteps*st.parts*st.piece()))
}

// bulkSizes returns the kernel's constants.
func bulkSizes(t *launch.Target, st *Stack) string {
	x := st.layers[0].X
	return codegen.Constants(
		"SPREAD", 1, "ORDERED", 1, "CLUSTER", st.bulk.cluster, "BAND", blockUnits, "LAYERS", len(st.layers),
		"BLOCKS", st.blocks, "SEQUENCES", st.sequences(), "SAMPLES", st.samples, "PARTS", st.parts, "TAKES", st.takes,
		"DEPTH", keptSteps, "STAGES", st.bulk.stages, "OWN", st.bulk.own, "PLACES", st.places, "LOWER", st.room(),
		"AHEAD", aheadTurns, "MORE", st.more, "FEWER", st.fewer, "EXACT", ints.FromBool(st.Exact),
		"CLOCKS", t.Knobs["clocks"],
		"ALIGNED", ints.FromBool(st.Hidden%blockUnits == 0 && x.Col%8 == 0 && x.M.Cols%8 == 0),
	)
}
