package gemm

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/amx"
	"rnnbench/device/cpu/simd/amx/program"
)

// Products of BF16 round both factors if the kernels can multiply BF16 (see simd.Products.Rounds).
// Rows of A are rounded a block at a time, and multiplied by tiles of AMX or by pairs. B is packed
// as for other levels: in a strip of BF16, sixteen pairs of rows are one tile. If it was not packed
// ahead, it is packed block by block.

const (
	// leastStrips is the least number of strips of a block.
	leastStrips = 4
	// roundedDepth is the most k of a block: sums are added to C once per block.
	roundedDepth = 2048
	// transposedRows × transposedK elements of A are transposed before they are rounded.
	transposedK    = 8 * amx.StepK
	transposedRows = width
	// tallRows is the most rows that tiles multiply at once.
	tallRows = program.MaxTiles * amx.TileRows
	// roundedRows is the least number of rows, and of columns, of a product that is rounded
	// although its right factor was not packed ahead.
	roundedRows = 16
	// narrowWork is the most multiply-adds of pairs for each rounded row, or for each k of a product whose right
	// factor was not packed ahead, for which rounding takes longer than it saves.
	narrowWork = 1 << 10
)

// A rounder runs products with rounded factors, with the kernels of an engine.
type rounder struct{ *Engine }

// Rounds reports whether e rounds both factors of p to BF16. It also returns the number of blocks
// of tiles; 0: p is multiplied by pairs.
func Rounds(e *Engine, p *Product) (blocks int, ok bool) {
	r := rounder{e}
	if ok = r.rounds(p); ok && r.inTiles(p, p.M) {
		blocks = ceil(p.M, tallRows) * callsOf(p)
	}
	return blocks, ok
}

// callsOf returns how many calls of the unit run over all blocks of rows.
func callsOf(p *Product) int {
	calls := 1
	if restOf(p.K/2) > 0 {
		calls = 2
	}
	if strips, most := ceil(p.N, width), program.MaxStrips/ceil(min(p.M, tallRows), amx.TileRows); strips > most && p.N%(most*width) > 0 {
		calls *= 2
	}
	return calls
}

// rounds reports whether p multiplies BF16 in hardware, without widening.
func (e rounder) rounds(p *Product) bool {
	if p.Format != simd.BF16 || !e.k.Rounds() {
		return false
	}
	if p.Packed == nil {
		narrow := !e.inTiles(p, p.M) && p.M*p.columns() <= narrowWork
		return min(p.M, p.N) >= roundedRows && p.K >= amx.StepK && (e.always || !narrow)
	}
	return p.K > 1 && e.pays(p)
}

// pays reports whether p is large enough to make up for the overhead. In units of one multiply-add
// of the kernels that widen weights, a call of the unit costs thousands.
func (e rounder) pays(p *Product) bool {
	const start, call = 4 << 10, 5 << 10
	work := p.M * p.N * p.K
	if !e.inTiles(p, p.M) {
		return e.always || work >= start && p.N*p.K > narrowWork
	}
	return e.always || work >= start+callsOf(p)*call
}

// inTiles reports whether so many rows of p are multiplied by tiles. With one row, pairs read
// weights faster, unless the weights stay in the worker's own cache.
func (e rounder) inTiles(p *Product, rows int) bool {
	return e.k.Unit() != nil && (rows > 1 || p.K*p.N <= 4*e.blockA)
}

// tileHeight returns how many rows are multiplied at once.
func tileHeight(e *Engine, p *Product) int {
	if r := (rounder{e}); r.rounds(p) && r.inTiles(p, p.M) {
		return tallRows
	}
	return e.k.MaxRows()
}

// roundedStride returns the words from one rounded row to the next: an odd number of lines, so that
// neighbouring rows never share a set of the cache.
func roundedStride(k int) int {
	return (ceil(k, amx.StepK) | 1) * amx.TileWords
}

// A roundedBlock is the size of a block: rounded rows in a quarter of L2, and weights in half of
// it.
type roundedBlock struct{ m, n, k int }

func (e rounder) block(p *Product, m, n int) (b roundedBlock) {
	b.k = min(p.K, roundedDepth, max(amx.StepK, e.blockA/tallRows/amx.StepK*amx.StepK))
	b.m = max(tallRows, e.blockA/roundedStride(b.k)/tallRows*tallRows)
	b.n = max(leastStrips, 4*e.blockA/b.k/width/leastStrips*leastStrips) * width
	b.m, b.n = min(m, b.m), min(n, b.n)
	return b
}

// fewerRows returns b with fewer rows, if it has all n columns of weights that were packed ahead.
// Its results then take an eighth of L2: tiles write lines of many rows, and products with the last
// of an odd number of k are added to them later.
func (b roundedBlock) fewerRows(e rounder, p *Product, n int) roundedBlock {
	if p.Packed != nil && b.n >= n {
		b.m = min(b.m, max(tallRows, e.blockA/2/n/tallRows*tallRows))
	}
	return b
}

// scratch returns the floats of scratch for a share of m×n.
func (e rounder) scratch(p *Product, m, n int) int {
	b := e.block(p, m, n)
	floats := b.m * roundedStride(b.k)
	if p.A.Trans {
		floats += transposedRows * transposedK
	}
	if p.Packed == nil { // one strip more, since the product beside this one begins a new strip
		floats += (ceil(b.n, width) + 1) * width / 2 * ceil(b.k, amx.StepK) * amx.StepK
	}
	return floats
}

// run computes a rectangle of p.
func (e rounder) run(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	r := &s.rounding
	*r = rounding{rounder: e, product: p, scratch: s, next: next, roundedBlock: e.block(p, m1-m0, n1-n0).fewerRows(e, p, n1-n0)}
	r.stride = roundedStride(r.k)
	words, rest := r.m*r.stride, s.buf
	r.words, rest = rest[:words], rest[words:]
	if p.A.Trans {
		r.temp, rest = rest[:transposedRows*transposedK], rest[transposedRows*transposedK:]
	}
	once := r.m == m1-m0 && r.k == p.K
	again := once && p.Again
	for n := n0; n < n1; n += r.n {
		nEnd := min(n+r.n, n1)
		for k := 0; k < p.K; k += r.k {
			r.from, r.to = k, min(k+r.k, p.K)
			if p.Packed == nil {
				r.pack(rest, n, nEnd)
			}
			for m := m0; m < m1; m += r.m {
				r.row, r.rows = m, min(m+r.m, m1)-m
				if n == n0 && !again || !once {
					r.round()
				}
				r.multiply(rest, n, nEnd)
			}
		}
	}
}

// rounding is the state of a product under way.
type rounding struct {
	rounder
	roundedBlock
	product *Product
	scratch *Scratch
	next    []float32 // weights that are likely to be read next

	words, temp []float32

	stride    int // of a row of words
	row, rows int // the block's first row and number of rows
	from, to  int // the block's k
	tile      Product
}

// depth returns how many k of the block are multiplied as pairs. That is all of them, but not the
// last of an odd number in weights packed ahead: it is a row of its own.
func (r *rounding) depth() int {
	if r.product.Packed == nil {
		return ceil(r.to-r.from, amx.StepK) * amx.StepK
	}
	return (r.to - r.from) &^ 1
}

// round rounds the block's rows of A and pads them with zeros to whole steps.
func (r *rounding) round() {
	a := &r.product.A
	k := r.to - r.from
	if r.product.Packed != nil {
		k = r.depth()
	}
	if !a.Trans {
		for i := range r.rows {
			r.Engine.k.RoundRow(r.words[i*r.stride:], a.Data[(r.row+i)*a.Stride+r.from:][:k])
		}
		return
	}
	for first := 0; first < r.rows; first += transposedRows {
		rows := min(transposedRows, r.rows-first)
		for at := 0; at < k; at += transposedK {
			depth := min(transposedK, k-at)
			r.Engine.k.Transpose(r.temp, a.Data[(r.from+at)*a.Stride+r.row+first:], transposedK, a.Stride, rows, depth)
			for i := range rows {
				r.Engine.k.RoundRow(r.words[(first+i)*r.stride+at/2:], r.temp[i*transposedK:][:depth])
			}
		}
	}
}

// pack packs columns n … nEnd-1 of the block's k of B as BF16, padded with zeros to whole steps.
func (r *rounding) pack(dst []float32, n, nEnd int) {
	depth := r.depth()
	wide := r.scratch.room()
	r.product.each(n, nEnd, func(q *Product, from, to, before int) {
		for c := from; c < to; c += width {
			strip := dst[(before+c-from)/width*depth*width/2:][:depth*width/2]
			for k := r.from; k < r.to; k += wideRows {
				end := min(k+wideRows, r.to)
				r.Engine.pack(wide, q.B, k, end, c, min(c+width, to))
				rows := end - k
				if odd := rows % 2; odd > 0 {
					clear(wide[rows*width:][:width])
					rows++
				}
				r.Engine.k.Narrow(strip[(k-r.from)*width/2:], wide[:rows*width], simd.BF16)
			}
			clear(strip[(r.to-r.from+1)/2*width:])
		}
	})
}

// multiply multiplies the block by columns n … nEnd-1. packed holds them, if they were not packed
// ahead.
func (r *rounding) multiply(packed []float32, n, nEnd int) {
	depth := r.depth()
	r.product.each(n, nEnd, func(q *Product, from, to, before int) {
		b, strip := packed[before/width*depth*width/2:], depth*width/2
		if q.Packed != nil {
			b, strip = Columns(q.Packed, q.Format, q.K, from)[r.from*width/2:], q.K*width/2
		}
		c := q.C[r.row*q.LdC+from:]
		add := r.product.Accumulate || r.from > 0
		switch {
		case depth == 0: // there is only the last k
		case r.inTiles(r.product, r.rows):
			t := &r.scratch.panels
			t.unit, t.depth, t.add = r.Engine.k.Unit(), depth, add
			t.BStrip, t.ARow, t.CRow = strip, r.stride, q.LdC
			t.run(r.words, b, c, r.rows, to-from)
		default:
			r.pairs(b, c, strip, depth, to-from, q.LdC, add)
		}
		if r.to == q.K && q.Packed != nil && q.K%2 == 1 {
			r.last(q, from, to)
		}
	})
}

// pairs multiplies the block by so many columns without tiles.
func (r *rounding) pairs(b, c []float32, strip, depth, columns, ldc int, add bool) {
	r.tile = Product{A: Matrix{Data: r.words, Stride: r.stride}, C: c, LdC: ldc}
	t := &r.scratch.tile
	t.Format, t.BStep, t.BStrip = simd.Pairs, width, strip
	t.K, t.Accumulate = depth/2, add
	r.tilesOfRows(&r.tile, b, r.next, 0, 0, r.rows, 0, columns, t)
}

// last adds the products with the last of an odd number of k, whose weights are widened.
func (r *rounding) last(q *Product, n, nEnd int) {
	t := &r.scratch.tile
	t.Format, t.BStep, t.BStrip = simd.BF16, width/2, q.K*width/2
	t.K, t.Accumulate = 1, true
	r.tilesOfRows(q, Columns(q.Packed, q.Format, q.K, n)[(q.K-1)*width/2:], nil, q.K-1, r.row, r.row+r.rows, n, nEnd, t)
}
