package fused

import (
	"unsafe"

	"rnnbench/device/cpu/simd"
)

// TileRows is how many rows of an input product are formed together.
const TileRows = 16

// Forms reports whether the steps of recurrences of level l can form the input product of steps to come
// among their own products.
func Forms(l simd.Level) bool { return l >= simd.AVX512 }

// NewTile is the tile of a strip of packed weights and of inputs, packed as the transpose of TileRows rows.
// Of its columns those of s are stored. Its first row begins at out, where its first column is or would be.
func NewTile(strip, inputs, out []float32, s Span) Tile {
	return Tile{Weights: address(strip), Inputs: address(inputs), Out: address(out), Columns: 1<<(s.From+s.N) - 1<<s.From}
}

func address(v []float32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(v))) }

// Form has Run do no more than so many steps, and meanwhile form tiles of a product of depth terms, whose
// rows are by floats apart. The tiles and what they are made of must outlive it.
func (k *Recurrence) Form(s *Steps, steps int, tiles []Tile, depth, by int) {
	const float = 4
	s.Until, s.Tiles, s.Terms = s.Count-steps, len(tiles), 0
	if len(tiles) == 0 {
		return
	}
	s.Tile, s.Depth, s.OutBy = uintptr(unsafe.Pointer(&tiles[0])), depth, float*by
	s.RowOfWeights, s.Inputs, s.Terms = tiles[0].Weights, tiles[0].Inputs, depth
	clear(s.Sums)
}
