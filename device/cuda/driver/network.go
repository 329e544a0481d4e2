package driver

import "encoding/binary"

// A Network is a stack of recurrent layers that the vendor's library runs.
type Network struct {
	Cell      string // a name in package cell
	Algorithm int    // the library's number for it
	Both      bool   // each layer runs both ways: see Runs
	Element   Element
	TF32      bool // products of single-precision values may be rounded to TF32
	Train     bool // the gradient follows

	Input, Hidden, Layers, Batch, Steps int

	Lengths Lengths // "": all sequences have all steps
	Padded  bool    // inputs and outputs have a row for every sequence and step; the library fills unused rows with 0
}

// Lengths holds the number of steps of each sequence, the longest first, four bytes each, as a
// string so that networks can be compared. Rows are packed step by step: each step has a row for
// each sequence that reaches it.
type Lengths string

// LengthsOf encodes list.
func LengthsOf(list []int) Lengths {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return Lengths(b)
}

// Sequences returns the number of steps of every sequence.
func (n Network) Sequences() []int32 {
	list := make([]int32, n.Batch)
	for i := range list {
		if list[i] = int32(n.Steps); n.Lengths != "" {
			list[i] = int32(binary.LittleEndian.Uint32([]byte(n.Lengths[4*i : 4*i+4])))
		}
	}
	return list
}

// Rows returns how many rows the inputs have: one for each step of each sequence, padded to all
// steps if Padded.
func (n Network) Rows() int {
	if n.Padded {
		return n.Batch * n.Steps
	}
	sum := 0
	for _, length := range n.Sequences() {
		sum += int(length)
	}
	return sum
}

// Ways returns how many directions each layer reads: 1 or 2.
func (n Network) Ways() int {
	if n.Both {
		return 2
	}
	return 1
}

// Runs returns the number of pseudo-layers, as cuDNN calls them: layers times directions. In
// parameters and states, number 2·l is layer l from the first step, and 2·l+1 is layer l from the
// last.
func (n Network) Runs() int { return n.Layers * n.Ways() }

// Out returns the number of features of a layer's output: both directions side by side.
func (n Network) Out() int { return n.Ways() * n.Hidden }

// Width returns the number of features that pseudo-layer run reads.
func (n Network) Width(run int) int {
	if run < n.Ways() {
		return n.Input
	}
	return n.Out()
}

// Sizes are what a network needs on the GPU, in bytes.
type Sizes struct {
	Weights    int64        // the space of all parameters
	Parameters []Parameters // per pseudo-layer: see Runs
	Workspace  int64        // during a call
	Kept       int64        // from a forward call to the backward call
}

// Parameters are byte offsets within the space of all parameters. Each matrix is row-major, one
// gate after the other.
type Parameters struct{ W, R, BX, BR int64 }

// Networks is the part of a Driver that prepares whole networks.
type Networks interface {
	// BeginNetwork starts slow preparations of n, which run in the background until NewNetwork
	// waits for them.
	BeginNetwork(n Network)

	// NewNetwork prepares a network, which stays until the driver is closed. The error wraps
	// schedule.ErrUnsupported if the library declines.
	NewNetwork(n Network) (id int, s Sizes, err error)
}

// A NetworkRun is a forward or backward pass of a network. Of two states, the first is h and the
// second is c, which only an LSTM has.
type NetworkRun struct {
	ID              int
	Backward        bool
	X, Y            Pointer
	First           [2]Pointer // states before the first step
	Last            [2]Pointer // after the last; forward alone
	Weights         Pointer
	Workspace, Kept Pointer

	DY, DX   Pointer // backward alone
	DFirst   [2]Pointer
	DWeights Pointer
}
