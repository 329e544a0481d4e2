package gemm

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/amx"
	"rnnbench/device/cpu/simd/amx/program"
)

// Products of BF16 take both factors rounded where the kernels can multiply BF16 (see simd.Products.Rounds). Rows of A
// are rounded a block at a time, and multiplied by tiles of AMX or by pairs. B is packed as for other levels: in a strip
// of BF16, sixteen pairs of rows are one tile.

const (
	// panelRows is the least number of rows for which tiles pay: with fewer, pairs read weights as fast.
	panelRows = 3
	// leastStrips is the least number of strips of a group.
	leastStrips = 4
	// transposedK is how much of rows is transposed before it is rounded, and transposedRows of how many.
	transposedK    = 8 * amx.StepK
	transposedRows = width
	// partialLen is a block's sums in the last strip, where that has columns of padding.
	partialLen = program.MaxTiles * amx.TileRows * width
)

// A rounder runs them with the kernels of an engine.
type rounder struct{ *Engine }

// takes reports whether p multiplies elements of BF16 as they are.
func (e rounder) takes(p *Product) bool {
	return p.Format == simd.BF16 && p.Packed != nil && p.K > 1 && e.k.Rounds()
}

// inTiles reports whether so many rows of a product that rounds are multiplied by tiles.
func (e rounder) inTiles(rows int) bool { return e.k.Unit() != nil && rows >= panelRows }

// tall is how many rows are multiplied at once.
func tall(e *Engine, p *Product) int {
	if r := (rounder{e}); r.takes(p) && r.inTiles(p.M) {
		return program.MaxTiles * amx.TileRows
	}
	return e.k.MaxRows()
}

// roundedStride is how many words apart rounded rows are: an odd number of lines, so that neighbours never share a set
// of the cache.
func roundedStride(k int) int {
	lines := ceil(k, amx.StepK)
	return (lines | 1) * amx.TileWords
}

// blocks are the rows that are rounded at a time, and the columns that they are multiplied with before the next:
// weights of half of L2.
func (e rounder) blocks(p *Product, m, n int) (mc, nc int) {
	const tall = program.MaxTiles * amx.TileRows
	mc = max(tall, e.blockA/roundedStride(p.K)/tall*tall)
	nc = max(leastStrips, 4*e.blockA/p.K/width/leastStrips*leastStrips) * width
	return min(m, mc), min(n, nc)
}

// scratch is how many floats a share of m×n takes.
func (e rounder) scratch(p *Product, m, n int) int {
	mc, _ := e.blocks(p, m, n)
	floats := mc*roundedStride(p.K) + partialLen
	if p.A.Trans {
		floats += transposedRows * transposedK
	}
	return floats
}

// run computes a rectangle of p.
func (e rounder) run(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	mc, nc := e.blocks(p, m1-m0, n1-n0)
	stride := roundedStride(p.K)
	words, rest := s.buf[:mc*stride], s.buf[mc*stride:]
	for n := n0; n < n1; n += nc {
		nEnd := min(n+nc, n1)
		for m := m0; m < m1; m += mc {
			mEnd := min(m+mc, m1)
			if n == n0 || mc < m1-m0 {
				e.roundRows(p, m, mEnd, words, rest)
			}
			switch {
			case e.inTiles(mEnd - m):
				e.panels(p, words, m, mEnd, n, nEnd, rest, s)
			default:
				e.pairs(p, words, m, mEnd, n, nEnd, next, s)
			}
			if p.K%2 == 1 {
				e.addLast(p, m, mEnd, n, nEnd, s)
			}
		}
	}
}

// roundRows rounds rows m … mEnd of A, but the last of an odd number of k, which B has in a row of its own.
func (e rounder) roundRows(p *Product, m, mEnd int, words, temp []float32) {
	k, stride := p.K&^1, roundedStride(p.K)
	if !p.A.Trans {
		for i := range mEnd - m {
			e.k.RoundRow(words[i*stride:], p.A.Data[(m+i)*p.A.Stride:][:k])
		}
		return
	}
	for from := m; from < mEnd; from += transposedRows {
		rows := min(transposedRows, mEnd-from)
		for at := 0; at < k; at += transposedK {
			depth := min(transposedK, k-at)
			e.k.Transpose(temp, p.A.Data[at*p.A.Stride+from:], transposedK, p.A.Stride, rows, depth)
			for i := range rows {
				e.k.RoundRow(words[(from-m+i)*stride+at/2:], temp[i*transposedK:][:depth])
			}
		}
	}
}

// pairs multiplies rounded rows by pairs.
func (e rounder) pairs(p *Product, words []float32, m, mEnd, n, nEnd int, next []float32, s *Scratch) {
	q := &s.rounded
	*q = Product{A: Matrix{Data: words, Stride: roundedStride(p.K)}, C: p.C[m*p.LdC:], LdC: p.LdC}
	t := &s.tile
	t.Format, t.BStep, t.BStrip = simd.Pairs, width, p.K*width/2
	t.K, t.Accumulate = p.K/2, p.Accumulate
	e.tilesOfRows(q, Columns(p.Packed, p.Format, p.K, n), next, 0, 0, mEnd-m, n, nEnd, t)
}

// addLast adds the products of the last of an odd number of k, which are widened.
func (e rounder) addLast(p *Product, m, mEnd, n, nEnd int, s *Scratch) {
	t := &s.tile
	t.Format, t.BStep, t.BStrip = simd.BF16, width/2, p.K*width/2
	t.K, t.Accumulate = 1, true
	e.tilesOfRows(p, Columns(p.Packed, p.Format, p.K, n)[(p.K-1)*width/2:], nil, p.K-1, m, mEnd, n, nEnd, t)
}

// panels multiplies rounded rows by tiles.
func (e rounder) panels(p *Product, words []float32, m, mEnd, n, nEnd int, partial []float32, s *Scratch) {
	const tall = program.MaxTiles * amx.TileRows
	r := &s.panels
	*r = panels{unit: e.k.Unit(), product: p, depth: p.K &^ 1}
	r.BStrip, r.ARow = p.K*width/2, roundedStride(p.K)
	rows := mEnd - m
	blocks := ceil(rows, tall)
	r.rows, r.program.Tiles = ceil(rows, blocks), program.MaxTiles
	if r.rows <= amx.TileRows {
		r.program.Tiles = 1
	}
	full := rows / r.rows // and the last one may have fewer
	r.bands(words, m, full, n, nEnd, partial)
	if left := rows - full*r.rows; left > 0 {
		m += full * r.rows
		words = words[full*r.rows*r.ARow:]
		r.rows, r.program.Tiles = left, ceil(left, amx.TileRows)
		r.bands(words, m, 1, n, nEnd, partial)
	}
}

// panels are those of a block of rounded rows.
type panels struct {
	amx.Panel
	unit    *amx.Unit
	program program.Program
	product *Product
	rows    int // of a block
	depth   int // an even number of k
}

// bands multiplies so many blocks of rows from m on by columns n … nEnd.
func (r *panels) bands(words []float32, m, blocks, n, nEnd int, partial []float32) {
	r.Blocks, r.BlockRows = blocks, r.rows
	p := r.product
	most := program.MaxStrips / r.program.Tiles
	for at := n; at < nEnd; {
		r.CRow, r.Groups, r.program.Strips = p.LdC, (nEnd-at)/(most*width), most
		if r.Groups == 0 {
			r.Groups, r.program.Strips = 1, (nEnd-at)/width
		}
		if r.program.Strips == 0 {
			r.last(words, m, at, nEnd, partial)
			return
		}
		r.A, r.B, r.C = words, Columns(p.Packed, p.Format, p.K, at), p.C[m*p.LdC+at:]
		r.multiply(p.Accumulate)
		at += r.Groups * r.program.Strips * width
	}
}

// last multiplies by a strip with padding, whose sums go elsewhere first.
func (r *panels) last(words []float32, m, at, nEnd int, partial []float32) {
	p := r.product
	r.Groups, r.program.Strips = 1, 1
	blocks := r.Blocks
	r.Blocks = 1
	for i := range blocks {
		r.A, r.B = words[i*r.rows*r.ARow:], Columns(p.Packed, p.Format, p.K, at)
		r.C, r.CRow = partial, width
		r.multiply(false)
		for row := range r.rows {
			sums := partial[row*width:][:nEnd-at]
			to := p.C[(m+i*r.rows+row)*p.LdC+at:][:nEnd-at]
			if !p.Accumulate {
				copy(to, sums)
				continue
			}
			for j, v := range sums {
				to[j] += v
			}
		}
	}
	r.Blocks = blocks
}

// multiply goes through whole steps of k, and then through the rest.
func (r *panels) multiply(add bool) {
	steps, rest := r.depth/amx.StepK, r.depth%amx.StepK/2
	r.Accumulate = add
	if steps > 0 {
		r.K = steps
		r.Config.Set(&r.program, r.rows, amx.TileWords)
		r.unit.Run(&r.Panel, r.program.Tiles, r.program.Strips)
		r.Accumulate = true
	}
	if rest > 0 {
		r.A, r.B = r.A[steps*amx.TileWords:], r.B[steps*amx.TileRows*amx.TileWords:]
		r.K = 1
		r.Config.Set(&r.program, r.rows, rest)
		r.unit.Run(&r.Panel, r.program.Tiles, r.program.Strips)
	}
}
