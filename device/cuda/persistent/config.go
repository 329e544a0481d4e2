package persistent

import (
	"fmt"

	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/knob"
)

// A Config is a kernel and its division of a layer among groups of blocks. Each group has a copy of
// the weights and runs some of the sequences.
type Config struct {
	spread   bool         // over the GPU, not in clusters
	Order    WeightLayout // best layout of the packed weights
	few      bool         // launch no more groups than run at the same time; they take turns with the sequences
	blocks   int          // per group
	cluster  int          // blocks per cluster, if a spread group consists of clusters
	samples  int          // sequences that a group runs at a time
	threads  int          // per block
	shared   int          // bytes of shared memory per block
	beside   int          // blocks that a multiprocessor must have room for; 0: one
	together int          // groups that run at the same time
	cycles   float64      // predicted for a step of all sequences
	prior    int          // of equally fast configurations, the one with the highest comes first
	memory   int64        // bytes of weights that are streamed from memory at each step
	variant  *Variant     // nil: one group with a barrier
	sizes    string       // the kernel's constants
	Knobs    knob.Params
}

// Describe names the variant, its geometry and constants, and the predicted time of a step.
func (t Config) Describe() string {
	return t.variant.Name + " " + t.geometry()
}

func (t Config) geometry() string {
	return fmt.Sprintf("%d×%d %s, %.0f cycles", t.blocks, t.threads, t.sizes, t.cycles)
}

// ExchangeBytes bounds the memory through which groups exchange states. Each sequence has a
// counter, two buffers of words, twice the size of its states in shared memory, and two buffers of
// only 16-bit states.
func ExchangeBytes(hidden, batch int) int64 {
	return int64(batch+maxSamples-1) * (4*4*int64(hidden) + 6*maxPadding + launch.Alignment)
}

const maxSamples = 64

// maxPadding bounds the padding of a sequence's states in shared memory, in bytes.
const maxPadding = 64*8 + 64

// MaxRegisters is the most registers of a thread. RegistersOfSM is how many a multiprocessor has.
const MaxRegisters, RegistersOfSM = 255, 65536

// barrierConfig is one group with a barrier. Its cells use exact functions.
func barrierConfig() Config {
	return Config{Knobs: knob.Params{"resident": WithBarrier, "tensor": 2, "functions": 1}}
}

// Variant returns the kernel of t; nil: one group with a barrier.
func (t Config) Variant() *Variant { return t.variant }

// Cycles returns the predicted cycles of a step of all sequences.
func (t Config) Cycles() float64 { return t.cycles }

// Memory returns the bytes of weights that are streamed from memory at each step.
func (t Config) Memory() int64 { return t.memory }

// Grouped reports whether t divides a layer among groups of blocks.
func (t Config) Grouped() bool { return t.variant != nil }
