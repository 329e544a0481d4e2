package gemm

import (
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestTilesFetchWholeStrips: the tiles of a group prefetch every row of as many strips as the group
// has. Fewer tiles prefetch one strip each.
func TestTilesFetchWholeStrips(t *testing.T) {
	for _, f := range []simd.Format{simd.F32, simd.F16, simd.BF16} {
		for tiles := 1; tiles < 40; tiles++ {
			for strips := 1; strips <= 8; strips++ {
				for _, k := range []int{1, 2, 7, 64, 513} {
					row := f.RowFloats()
					tile := &simd.Tile{K: k, Strips: strips, BStep: row, BStrip: k * row, B: make([]float32, 1), Format: f}
					later := make([]float32, strips*tile.BStrip)
					asked := make([]bool, strips*k) // rows
					for i := range tiles {
						fetch(tile, later, i, tiles)
						at := len(later) - len(tile.Ahead)
						for j := 0; j < k && tile.AheadStep > 0; j++ {
							if r := (at + j*tile.AheadStep) / row; r < len(asked) {
								asked[r] = true
							}
						}
					}
					for r := range min(tiles, strips) * k {
						if !asked[r] {
							t.Fatalf("%v, %d tiles, %d strips, k of %d: row %d is not prefetched", f, tiles, strips, k, r)
						}
					}
				}
			}
		}
	}
}
