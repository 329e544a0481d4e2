package gemm

import "rnnbench/device/cpu/simd"

// Pieces returns the number of pieces of a product by packed weights, if workers take them one by
// one. A piece is a band of rows times a group of columns. A group is as wide as the widest tile of
// such rows. It is a little narrower if one group more or less would make workers uneven.
func (e *Engine) Pieces(p *Product, workers int) int {
	groups := ceil(p.N, e.group(p, workers))
	if groups < 64*workers {
		groups = ceil(groups, workers) * workers
	}
	return bandsOf(e, p) * min(groups, ceil(p.N, width))
}

// group returns the most columns of a group. If each piece rounds its rows anew, a group is a
// worker's part of all columns, or the columns whose weights stay in its cache.
func (e *Engine) group(p *Product, workers int) int {
	if r := (rounder{e}); r.rounds(p) {
		return r.block(p, p.M, ceil(ceil(p.N, workers), width)*width).n
	}
	return e.k.MaxStrips(min(p.M, e.k.MaxRows())) * width
}

// bandsOf returns the number of bands of rows.
func bandsOf(e *Engine, p *Product) int {
	tiles := bandTiles
	if p.Format != simd.F32 && !(rounder{e}).rounds(p) {
		tiles *= widenBands
	}
	return ceil(p.M, tiles*tileHeight(e, p))
}

// RunPiece computes piece i of so many. Successive pieces multiply a few bands with one group of
// columns after another, while the rows of these bands stay in a cache.
func (e *Engine) RunPiece(p *Product, i, pieces int, s *Scratch) {
	bands := bandsOf(e, p)
	groups := pieces / bands
	first := i / (inTurn * groups) * inTurn
	i -= first * groups
	turn := min(inTurn, bands-first)
	m0, m1 := p.band(tileHeight(e, p), first+i%turn, bands)
	group := i / turn
	n0, n1 := p.columnsOf(group, groups)
	after := n1
	if p.Backward {
		if after = p.N; group > 0 {
			after, _ = p.columnsOf(group-1, groups)
		}
	}
	e.run(p, m0, m1, n0, n1, p.from(after), s)
}

// columnsOf returns columns n0 … n1-1 of a group.
func (p *Product) columnsOf(group, groups int) (n0, n1 int) {
	s0, s1 := part(ceil(p.N, width), group, groups)
	return s0 * width, min(p.N, s1*width)
}

// band returns rows m0 … m1-1 of a band. Its tiles have so many rows.
func (p *Product) band(rows, i, bands int) (m0, m1 int) {
	t0, t1 := part(ceil(p.M, rows), i, bands)
	return t0 * rows, min(p.M, t1*rows)
}

// PieceScratchLen returns the most floats of scratch that any piece of p needs. Bands differ by at
// most a tile, and the last one may end within a tile.
func (e *Engine) PieceScratchLen(p *Product) int {
	rows := tileHeight(e, p)
	bands := bandsOf(e, p)
	tiles := ceil(p.M, rows)
	m0, m1 := p.band(rows, bands-1, bands)
	most := 0
	for _, m := range [...]int{tiles / bands * rows, ceil(tiles, bands) * rows, m1 - m0} {
		most = max(most, scratchLen(e, p, min(m, p.M), min(p.N, e.group(p, 1))))
	}
	return most
}
