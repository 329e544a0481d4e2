package fused

import "unsafe"

// A Vector says where a Loop finds one of its program's vectors. Strides are in floats.
type Vector struct {
	Data []float32
	From int // index of the first row's first unit
	Row  int // from one row to the next of the same step
	Step int // from a step's last row to the first row of the next step

	// While a row is computed, the one Ahead floats further is prefetched. For each unit, the
	// address moves on by Pace floats. Adjacent vectors are prefetched at intervals of Beside
	// floats. These addresses may lie outside Data.
	Ahead, Pace, Beside int

	Shift int // for packed rows: bytes from a row's end to the next row
}

// A Pack describes a vector register that holds several short rows.
type Pack struct {
	Rows  int
	Bits  [17]uint32   // the lanes of all rows, and then of each row, as bits
	Lanes [9][8]uint32 // the same as ones in each of eight lanes
}

// Steps is the state of a Recurrence. The assembly advances it at each step.
type Steps struct {
	At      []uintptr // per vector, the address of its first unit at the next step
	By      []int     // per vector, bytes from step to step
	Weights []uintptr // per product, the address of its first strip
	Strip   int       // bytes of a strip
	State   uintptr   // address of the state before the next step, which the products multiply
	StateBy int
	Units   int // number of units of the band
	Count   int // number of steps left

	Own   Span      // the band's units of the state; empty if it has all units
	After int       // number of units of the state after Own
	Last  []Span    // the last units of each other band
	Part  []float32 // sums over Own, by vectors of units and products; zeros if Own is empty

	Sure  int     // not 0: the other bands have computed the state before the next step
	Turn  int     // the band's count
	Done  uintptr // address of the count
	Pairs int     // not 0: compute two vectors at once

	// An input product of later steps, which is computed meanwhile, tile by tile.
	Until        int       // the value of Count at which Run returns, with all tiles done
	Tile         uintptr   // address of the current tile
	Tiles        int       // number of tiles left, with the current one
	Depth        int       // terms of each sum
	OutBy        int       // bytes from row to row of the product
	Terms        int       // number of terms of the tile left
	RowOfWeights uintptr   // address of the next term's weights
	Inputs       uintptr   // address of the next term's inputs
	Sums         []float32 // the tile's sums so far, between runs; with AVX2, sums of a second vector while the first is computed

	Vectors []Vector // if the program is interpreted: where its vectors, the state and the weights are at the next step
}

// A Tile is a part of a product: TileRows rows by a strip of packed weights.
type Tile struct {
	Weights uintptr // address of the strip, Depth × simd.StripWidth
	Inputs  uintptr // address of packed inputs, Depth × TileRows
	Out     uintptr // address of the first row
	Columns uint32  // columns to store, a bit each
	_       uint32
}

// A Span is N units from From on.
type Span struct{ From, N int }

// Aligned reports whether each of v's rows begins on a cache line.
func (v *Vector) Aligned() bool {
	const bytes, floats = 64, 16
	return v.address()%bytes == 0 && v.Row%floats == 0 && v.Step%floats == 0
}

// address returns the address of the first row's first unit.
func (v *Vector) address() uintptr { return uintptr(unsafe.Pointer(&v.Data[v.From])) }

// Code is a program as handlers of assembly, each followed by its operands: numbers of vectors, then
// of temporaries, and then of copies of the last units of vectors. It has one form for each block of
// units.
type Code struct {
	Four, Two, One []uintptr // blocks of so many vector registers
	Last           []uintptr // the last units, fewer than a vector register
	Vectors        int
	Temps          int
	Tile           int // units that a temporary holds
}
