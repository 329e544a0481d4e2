package gemm

import "rnnbench/device/cpu/simd"

// A way is a method of multiplying a share.
type way int

const (
	packed   way = iota // B was packed ahead
	widened             // the same, and elements of 16 bits are widened block by block
	inPlace             // strips of B are read from B itself
	byDots              // rows of Bᵀ are read from B itself, by dot products
	blocked             // B is packed block by block
	rounded             // A is rounded block by block
	integers            // rows of A are rounded to 8-bit integers
)

func (e *Engine) way(p *Product, rows int) way {
	switch {
	case p.Packed != nil && p.Format == simd.I8:
		return integers
	case rounder{e}.rounds(p):
		return rounded
	case p.Second != nil:
		return blocked
	case p.Packed != nil && p.Format != simd.F32 && rows > widenTiles*e.k.MaxRows():
		return widened
	case p.Packed != nil:
		return packed
	case p.B.Trans && !p.A.Trans && rows <= dotRows && dotDepth*rows <= p.K:
		return byDots
	case !p.B.Trans && rows <= inPlaceTiles*e.k.MaxRows():
		return inPlace
	}
	return blocked
}

// Packs reports whether workers pack their rows of A for p.
func (e *Engine) Packs(p *Product, workers int) bool {
	return p.A.Trans && p.Packed == nil && p.M > workers*inPlaceTiles*e.k.MaxRows()
}

// blocks returns the block of a share of m×n: rows, columns and depth. The depth bounds how many terms are added in
// one order. Gradients of weights, whose A is transposed, are sums over all rows of a batch. Rows may be alike, and the
// rounding errors of equal terms add up.
func (e *Engine) blocks(p *Product, m, n int) (mc, nc, kc int) {
	kc = p.K
	if m > e.k.MaxRows() || p.A.Trans && p.Packed == nil {
		most := e.depth
		switch way := e.way(p, m); {
		case m <= e.k.MaxRows():
			most = min(most, lowDepth)
		case way == inPlace:
			most = min(most, inPlaceDepth)
		case way == packed:
			most = packedDepths * most / 4
		}
		kc = ceil(p.K, ceil(p.K, most))
		kc += kc % 2 // even, since rows of 16 bits may come in pairs
	}
	even := func(n, most int) int { return ceil(ceil(n, ceil(n, max(width, most))), width) * width }
	return min(m, even(m, e.blockA/kc)), even(n, e.blockB/kc), kc
}

// ScratchLen returns the most floats of scratch that any of the workers needs for p.
func (e *Engine) ScratchLen(p *Product, workers int) int {
	most := 0
	for w := range workers {
		m0, m1, n0, n1 := e.Share(p, w, workers)
		if m0 >= m1 || n0 >= n1 {
			continue
		}
		most = max(most, scratchLen(e, p, m1-m0, n1-n0))
	}
	return most
}

// scratchLen returns the floats of scratch for a share of m×n. It also allows for a share of fewer
// columns, which may be too small to be rounded.
func scratchLen(e *Engine, p *Product, m, n int) int {
	a, b := e.scratch(p, m, n)
	if (rounder{e}).rounds(p) && p.Packed != nil {
		wide := *p
		wide.Format = simd.F16 // the same scratch as BF16 that is widened
		x, y := e.scratch(&wide, m, n)
		return max(a+b, x+y)
	}
	return a + b
}

// scratch returns the floats for blocks of A and B in a share of m×n.
func (e *Engine) scratch(p *Product, m, n int) (a, b int) {
	switch e.way(p, m) {
	case rounded:
		return 0, rounder{e}.scratch(p, m, n)
	case integers:
		return 0, scratchI8(p, m)
	}
	if m <= e.k.MaxRows() && p.Packed != nil {
		return 0, 0
	}
	mc, nc, kc := e.blocks(p, m, n)
	switch e.way(p, m) {
	case byDots:
		return 0, 0
	case inPlace:
		if n%width != 0 {
			b = kc * width
		}
		return 0, b
	case blocked, widened:
		b = nc * kc
	}
	if p.A.Trans && m > e.k.MaxRows() {
		a = ceil(mc, width) * width * kc
	}
	return a, b
}
