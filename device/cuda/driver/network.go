package driver

import "encoding/binary"

// A Network is a stack of recurrent layers as the vendor's library knows it.
type Network struct {
	Cell      string // of package cell's
	Algorithm int    // as the library counts them
	Both      bool   // each layer runs both ways: see Runs
	Element   Element
	TF32      bool // products of single-precision values may be rounded to TF32
	Train     bool // the gradient follows

	Input, Hidden, Layers, Batch, Steps int

	Lengths Lengths // of the sequences; "": all have all steps
	Padded  bool    // there are rows of all sequences at all steps, which the library fills with 0
}

// Lengths are those of sequences, the longest first, in a form that can be compared: four bytes each. Rows
// are packed step after step; a step has those of the sequences that have it.
type Lengths string

// LengthsOf are those of the list.
func LengthsOf(list []int) Lengths {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return Lengths(b)
}

// Sequences lists the lengths of all sequences.
func (n Network) Sequences() []int32 {
	list := make([]int32, n.Batch)
	for i := range list {
		if list[i] = int32(n.Steps); n.Lengths != "" {
			list[i] = int32(binary.LittleEndian.Uint32([]byte(n.Lengths[4*i : 4*i+4])))
		}
	}
	return list
}

// Rows is how many rows the inputs have: of the steps of all sequences or, padded, of all steps.
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

// Ways is how many times each layer runs: once for each way in which it reads the steps.
func (n Network) Ways() int {
	if n.Both {
		return 2
	}
	return 1
}

// Runs is how many times layers run, each way counted. Number 2·l is layer l from the first step and 2·l+1
// from the last, in parameters and in states. cuDNN calls them pseudo-layers and counts them so.
func (n Network) Runs() int { return n.Layers * n.Ways() }

// Out is the number of features of a layer's output: both ways side by side.
func (n Network) Out() int { return n.Ways() * n.Hidden }

// Width is the number of features that a number of Runs reads.
func (n Network) Width(run int) int {
	if run < n.Ways() {
		return n.Input
	}
	return n.Out()
}

// Sizes are what a network takes on the GPU, in bytes.
type Sizes struct {
	Weights    int64        // the space of all parameters
	Parameters []Parameters // per number of Runs
	Workspace  int64        // during a call
	Kept       int64        // from a forward call to the backward call
}

// Parameters are offsets within the space of all parameters, in bytes, of
// row-major matrices with one gate after the other.
type Parameters struct{ W, R, BX, BR int64 }

// Networks is the part of a Driver that readies whole networks.
type Networks interface {
	// BeginNetwork begins what NewNetwork will wait for, where that takes long and
	// can be done beside other things.
	BeginNetwork(n Network)

	// NewNetwork readies a network, which stays until the driver is closed.
	// Errors wrap schedule.ErrUnsupported where the library declines.
	NewNetwork(n Network) (id int, s Sizes, err error)
}

// A NetworkRun is the forward pass of a network, or its backward pass. Of states the first is h and the second, of an LSTM
// alone, c.
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
