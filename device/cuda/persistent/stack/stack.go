// Package stack runs stacked persistent layers as one kernel, each layer in blocks of its own. The
// input of each layer must be a product of the states of the layer beneath, with nothing in
// between. That product never reaches memory, so the host must not read its matrix.
package stack

import (
	"fmt"
	"slices"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/persistent"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Stack says how such layers run: in groups of blocks. Each group has all layers and a part of
// the sequences. A block has 16 units of one layer.
type Stack struct {
	persistent.Layer
	layers  []schedule.Persistent
	lower   []schedule.Gemm // the products that feed each layer but the first
	states  int             // states of the cell
	takes   int             // gates with inputs
	free    int             // gates whose input products are kept apart from the recurrent ones
	blocks  int             // per layer and group
	groups  int
	samples int   // sequences that are multiplied together
	parts   int   // parts of samples sequences, which take turns
	split   int   // warps that share the columns
	chunks  int   // 64-byte pieces of a warp's columns
	own     int   // pieces of the layer's own weights in registers
	near    int   // and of the weights for the layer beneath
	places  int   // places for sums
	more    int   // registers of a multiplying thread
	fewer   int   // and of a thread that runs cells; 0: all have the same
	bulk    *bulk // for the kernel for many sequences; nil: the other kernel
}

// Units per block, warps per block that run cells, steps for which h stays in memory, and turns
// that inputs are read ahead.
const (
	blockUnits = 16
	cellWarps  = 4
	keptSteps  = 16
	aheadTurns = 4
)

// newStack configures n layers from node i on as a stack, or says why they are none.
func newStack(s *schedule.Schedule, i, n int, element []driver.Element, k knob.Params, p driver.Properties) (*Stack, string) {
	op := s.Nodes[i].Op.(schedule.Persistent)
	if !op.Keep.Empty() {
		return nil, "sequences begin anew at some steps"
	}
	r := kernels.NewRecurrence(&op.Sequence, op.Step(0, schedule.View{}).Program())
	free := r.Free()
	c := persistent.NewChooser(launch.NewTarget(&launch.Memory{Elements: element}, s.Precision, k, p), 1)
	st := &Stack{Layer: c.Layer(op), states: len(op.Cell.States), takes: len(op.Cell.Gates), free: len(free)}
	for l := range n {
		st.layers = append(st.layers, s.Nodes[i+2*l].Op.(schedule.Persistent))
		if l > 0 {
			st.lower = append(st.lower, s.Nodes[i+2*l-1].Op.(schedule.Gemm))
		}
	}
	for _, next := range st.layers[1:] {
		same := vectors(next)
		for i, v := range vectors(op) {
			if !v.Empty() && element[v.M.ID] != element[same[i].M.ID] {
				return nil, "the layers' inputs and states have different element types"
			}
		}
	}
	for g := range st.takes { // each input belongs to one sum
		apart := slices.ContainsFunc(free, func(f cell.Ref) bool { return f.Index == g })
		if r.Owns(g) == apart {
			return nil, fmt.Sprintf("an input of %v belongs to several sums, or to none", op.Cell)
		}
	}
	if st.Exact && op.Cell.Kinked() {
		return nil, fmt.Sprintf("states of %v may grow beyond what fp16 halves can hold", op.Cell)
	}
	if why := st.group(k["groups"], p); why != "" {
		return nil, why
	}
	switch many := *st; {
	case k["stack"] == 3:
		return st, st.configureBulk(k["samples"], p)
	case k["stack"] == 0 && k["samples"] == 0 && st.suitsBulk() && many.configureBulk(0, p) == "" && many.bulk.cluster == 2:
		return &many, ""
	}
	return st, st.configurePolling(k["samples"], p)
}

// group divides the sequences among so many groups; 0: as many as fit.
func (st *Stack) group(groups int, p driver.Properties) (why string) {
	st.blocks = ints.CeilDiv(st.Hidden, blockUnits)
	st.groups = min(st.Batch, p.SMs/(st.blocks*len(st.layers)))
	switch {
	case st.groups < 1:
		return fmt.Sprintf("%d layers of %d blocks are more than the GPU's %d multiprocessors", len(st.layers), st.blocks, p.SMs)
	case groups > st.groups:
		return fmt.Sprintf("%d groups of %d layers do not fit, at most %d do", groups, len(st.layers), st.groups)
	case groups > 0:
		st.groups = groups
	}
	return ""
}

// configurePolling configures the kernel whose warps poll the words of h that they multiply. It
// multiplies samples sequences at a time; 0: chosen by their number.
func (st *Stack) configurePolling(samples int, p driver.Properties) (why string) {
	if st.samples = samples; samples == 0 {
		st.samples = 8
		if st.sequences() > 16 {
			st.samples = 16
		}
	}
	if st.samples%8 != 0 {
		return fmt.Sprintf("%d sequences are not a multiple of 8", samples)
	}
	st.parts, st.split = ints.CeilDiv(st.sequences(), st.samples), 8
	lines := ints.CeilDiv(st.Hidden*st.Weights.Bytes(), 64)
	if lines <= 4 {
		st.split = 4
	}
	st.chunks = ints.CeilDiv(lines, st.split)
	registers := min(persistent.MaxRegisters, persistent.RegistersOfSM/st.threads()/8*8)
	if st.split == 8 && p.Hopper {
		st.more, st.fewer = 216, 72
		registers = st.more
	}
	room := max(0, registers-st.overhead())
	st.own = min(st.chunks, room/(8*st.Gates))
	st.near = min(st.chunks, (room-st.own*8*st.Gates)/(8*st.takes))
	for st.places = 3; st.places > 2 && st.shared() > p.Shared; st.places-- {
	}
	return st.fits(p)
}

// fits says why a block has too little shared memory; "": it has enough.
func (st *Stack) fits(p driver.Properties) (why string) {
	if st.shared() > p.Shared {
		return fmt.Sprintf("a block's %d units of %d layers take %d KiB of shared memory, and there are %d", blockUnits, len(st.layers), st.shared()>>10, p.Shared>>10)
	}
	return ""
}

// String describes how the layers run.
func (st *Stack) String() string {
	return fmt.Sprintf("%d layers of %d units by %s: %d groups of %d blocks a layer, %d sequences at a time", len(st.layers), st.Hidden, st.Kernel(), st.groups, st.blocks, st.samples)
}

// sequences returns the number of sequences per group.
func (st *Stack) sequences() int { return ints.CeilDiv(st.Batch, st.groups) }

func (st *Stack) threads() int {
	if st.bulk != nil {
		return 3 * 128
	}
	return 32 * (st.split + cellWarps)
}

// bounded is within, for 16-bit values; else 0. Unless it is 0, a state's own bits tell whether it
// is new.
func (st *Stack) bounded() int {
	if st.Weights == driver.Single {
		return 0
	}
	return st.Within
}

// mostWords is how many 32-bit words a word of a state takes in memory at most; see bounded.
func mostWords(bounded int) int { return 2 - ints.FromBool(bounded == 1) }

// overhead returns the registers of a multiplying thread besides weights: sums, and the states of
// both layers.
func (st *Stack) overhead() int {
	values := (st.Gates + st.free) * st.samples / 8
	chains := 1
	switch {
	case st.Exact:
		chains = 2 + ints.FromBool(values == 1)
	case values < 3:
		chains = 4 / values
	}
	return 24 + 4*chains*values + 8*st.chunks*st.samples/8*mostWords(st.bounded())
}

// shared returns the bytes of shared memory of a block: places for sums, with two barriers each,
// weights that do not fit registers, and states.
func (st *Stack) shared() int {
	if st.bulk != nil {
		return st.bulkShared()
	}
	sums := st.places * st.split * (st.Gates + st.free) * st.samples * 20 * 4
	far := 32 * st.split * 32 * ((st.chunks-st.own)*st.Gates + (st.chunks-st.near)*st.takes)
	return sums + far + 4*st.samples*blockUnits*(st.parts*st.states+aheadTurns*(st.Gates+st.free)) + 16*st.places
}

// Bytes returns the memory through which blocks communicate: each group's counters and, for each
// layer, a few steps of states.
func (st *Stack) Bytes() int64 {
	if st.bulk != nil {
		return st.bulkBytes()
	}
	step := int64(st.chunks*st.split*16) * int64(st.sequences())
	room := func(wide int64) int64 { return 32 + int64(len(st.layers))*(32+keptSteps*step*wide) }
	words := room(int64(mostWords(st.bounded())))
	if st.bounded() == 2 {
		words += room(1)
	}
	return 4 * (64 + int64(st.groups)*words)
}
