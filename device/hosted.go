package device

import (
	"unsafe"

	"rnnbench/rnn/schedule"
)

// A Hosted program runs inside another program, the host program: on its memory, in parts, and on
// a GPU in order with its other work.
type Hosted interface {
	Program

	// Place prepares moves between the rows of v, whole rows of a matrix that is not Private, and
	// memory of the host program. Element 0 of row r lies offsets[r] elements behind the address of
	// a move; nil: rows lie one after another. A row with a negative offset has no memory there:
	// zeros come in, and nothing goes out.
	Place(v schedule.View, offsets []int) (Place, error)

	// Do does the work w. A CPU has done it when Do returns. A GPU does it in order with the other
	// work of a stream, a CUstream; 0 is the default stream. It may be part of a graph that the
	// host program captures on this stream.
	Do(w Work, stream uintptr) error

	// Settle waits for all work and returns the error of any, since a GPU's Do returns before its
	// work is done.
	Settle() error
}

// A Threaded device must be entered on each thread that calls it, one at a time, or its programs.
type Threaded interface {
	// Enter prepares the calling thread. leave restores what was there before. Close needs no Enter.
	Enter() (leave func(), err error)
}

// A Place is the number of a place, from 0.
type Place int

// Work is what one call of the host program does, in the order of the fields.
type Work struct {
	In      []Move // into matrices
	Prepare bool   // run the schedule's preparation, since weights have changed
	Part    int    // of the schedule, which schedule.Pause divides: run it; -1: run nothing
	Out     []Move // out of matrices
}

// A Move copies the rows of a place.
type Move struct {
	Place Place
	At    unsafe.Pointer // memory of the host program, on the device; nil: zeros come in, and nothing goes out
	Type  Type           // of the values there
}

// A Type is the number format of values in the host program's memory.
type Type int

// The types.
const (
	Float32 Type = iota
	Float16
	BFloat16
)

// Types lists the types by name, as in PyTorch.
func Types() []string { return []string{"float32", "float16", "bfloat16"} }

func (t Type) String() string { return Types()[t] }

// Bytes is the size of a value.
func (t Type) Bytes() int {
	if t == Float32 {
		return 4
	}
	return 2
}
