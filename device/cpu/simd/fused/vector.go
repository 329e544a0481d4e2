package fused

import "unsafe"

// A Vector is where a Loop finds one of its program's vectors, in floats.
type Vector struct {
	Data []float32
	From int // the first row's first unit
	Row  int // from a row to the next of the same step
	Step int // from a step's last row to the first row of the next step

	// While a row is computed the one that lies so far ahead is asked for: for each unit, Pace
	// floats on from the one before, this vector's part and Beside floats further each that of the
	// vectors that lie next to it. What is asked for may lie outside Data.
	Ahead, Pace, Beside int

	Shift int // of packed rows: bytes from a row's end to the next row
}

// A Pack is a vector of short rows, one after the other.
type Pack struct {
	Rows  int
	Bits  [17]uint32   // the lanes of all rows, and of each: bits, or
	Lanes [9][8]uint32 // ones in each of eight lanes
}

// Steps are what a Recurrence reads, and moves on with each step.
type Steps struct {
	At      []uintptr // of each vector, its first unit at the coming step
	By      []int     // bytes from there to the next step
	Weights []uintptr // of each product, its first strip
	Strip   int       // bytes of a strip
	State   uintptr   // of what the products multiply, before the coming step
	StateBy int
	Units   int // of the vectors
	Count   int // steps to come

	Own   Span      // of the state: what the band itself computes; none where it has all units
	After int       // units of the state after those
	Last  []Span    // the last units that each other band computes
	Part  []float32 // sums over Own by vectors of units and products; zeros where there are none

	Sure  int     // not 0: the others have computed the state before the coming step
	Turn  int     // what the band has counted
	Done  uintptr // where it counts
	Pairs int     // not 0: two vectors at once

	// A product of steps to come, which is formed meanwhile, tile by tile.
	Until        int       // what is left of Count when Run returns, with all tiles formed
	Tile         uintptr   // the one that is being formed
	Tiles        int       // those left, with it
	Depth        int       // terms of each sum
	OutBy        int       // bytes from row to row of what is formed
	Terms        int       // of the tile, to come
	RowOfWeights uintptr   // the next of them
	Inputs       uintptr   // and what they multiply
	Sums         []float32 // of those before, while no step runs; with AVX2, those of a second vector while the first is computed
}

// A Tile is TileRows rows of a product by a strip of packed weights.
type Tile struct {
	Weights uintptr // the strip, Depth × simd.StripWidth
	Inputs  uintptr // packed, Depth × TileRows
	Out     uintptr // its first row
	Columns uint32  // those that are stored, a bit each
	_       uint32
}

// A Span are N units.
type Span struct{ From, N int }

// Aligned reports whether each of v's rows begins on a cache line.
func (v *Vector) Aligned() bool {
	const bytes, floats = 64, 16
	return v.address()%bytes == 0 && v.Row%floats == 0 && v.Step%floats == 0
}

// address is that of the first row's first unit.
func (v *Vector) address() uintptr { return uintptr(unsafe.Pointer(&v.Data[v.From])) }
