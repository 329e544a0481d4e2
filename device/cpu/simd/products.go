package simd

import "rnnbench/device/cpu/simd/amx"

// Products are the micro-kernels of one level for products.
type Products struct {
	tiles               [formats]tileTable
	dots                [MaxRows + 1][DotCols + 1]func(*Dot)
	maxRows, maxDotRows int
	maxStrips           [MaxRows + 1]int
	peak                func(n int)
	peakFLOPs           int // of one round of peak

	maxI8Strips int
	mostBits    func(src []float32) uint32
	quantize    func(dst, src []float32, inverse float32)

	roundRow  func(dst, src []float32) // nil: no products of BF16
	peakPairs func(n int)              // like peak, for pairs
	unit      *amx.Unit
}

// A tileTable holds the kernels by rows and strips.
type tileTable [MaxRows + 1][MaxRows + 1]func(*Tile)

// MaxRows returns the most rows of a Tile.
func (k *Products) MaxRows() int { return k.maxRows }

// MaxStrips returns the most strips of a Tile of the given rows.
func (k *Products) MaxStrips(rows int) int { return k.maxStrips[rows] }

// Tile runs t. It does not check that the slices of t are long enough.
func (k *Products) Tile(t *Tile) { k.tiles[t.Format][t.Rows][t.Strips](t) }

// MaxDotRows returns the most rows of a Dot.
func (k *Products) MaxDotRows() int { return k.maxDotRows }

// Dot runs t. It does not check that the slices of t are long enough.
func (k *Products) Dot(t *Dot) { k.dots[t.Rows][t.Cols](t) }

// FMAPeak runs about n multiply-adds on registers alone and returns the number of floating-point
// operations. Divided by the time it took, this is the machine's peak.
func (k *Products) FMAPeak(n int) int64 {
	rounds := max(1, 2*n/k.peakFLOPs)
	k.peak(rounds)
	return int64(rounds) * int64(k.peakFLOPs)
}

// Rounds reports whether the level multiplies BF16 in hardware, without widening it. Its products
// then round both factors.
//
// A product of two BF16 is exact in single precision, and each addition rounds to the nearest once.
// So the error is that of single precision, in any order of additions. Terms, sums and factors
// below 2⁻¹²⁶ count as zero.
func (k *Products) Rounds() bool { return k.roundRow != nil }

// RoundRow stores src as BF16, two elements to a float of dst, with zeros up to a multiple of 32
// elements. Ties go to even. Values below 2⁻¹²⁶ may become zero.
func (k *Products) RoundRow(dst, src []float32) {
	if len(src) > 0 {
		_ = dst[(len(src)+amx.StepK-1)/amx.StepK*amx.TileWords-1]
		k.roundRow(dst, src)
	}
}

// Unit returns the unit that multiplies tiles of BF16, or nil if the level has none.
func (k *Products) Unit() *amx.Unit { return k.unit }

// BF16Peak is like FMAPeak, for the level's fastest products of BF16.
func (k *Products) BF16Peak(n int) int64 {
	switch {
	case k.unit != nil:
		return k.unit.Peak(n)
	case k.peakPairs == nil:
		return k.FMAPeak(n)
	}
	rounds := max(1, n/k.peakFLOPs)
	k.peakPairs(rounds)
	return 2 * int64(rounds) * int64(k.peakFLOPs)
}
