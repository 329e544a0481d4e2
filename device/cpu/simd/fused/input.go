package fused

import (
	"unsafe"

	"rnnbench/device/cpu/simd"
)

// TileRows is how many rows of an input product are computed together.
const TileRows = 16

// Forms reports whether recurrences of level l can compute the input product of later steps among
// the products of their steps.
func Forms(l simd.Level) bool { return l >= simd.AVX512 }

// NewTile returns the tile of a strip of packed weights and of inputs, packed as the transpose of
// TileRows rows. Only columns s are stored. out is where the first column of its first row is, or
// would be.
func NewTile(strip, inputs, out []float32, s Span) Tile {
	return Tile{Weights: address(strip), Inputs: address(inputs), Out: address(out), Columns: 1<<(s.From+s.N) - 1<<s.From}
}

func address(v []float32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(v))) }

// Form limits the next Run to so many steps and has it compute tiles of a product of depth terms
// meanwhile. Rows of the product are by floats apart. The tiles and their operands must stay valid
// until then.
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
