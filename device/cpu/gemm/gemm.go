// Package gemm multiplies matrices over any number of workers, without barriers or allocation.
// Every worker computes its own rectangle of the result.
//
// Weights are packed ahead into strips (see simd.StripWidth). Other operands are packed block by
// block into the worker's scratch, or read in place if they have too few rows to pay for packing.
// The method follows K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", ACM TOMS 34(3), 2008. The package starts no goroutines and knows no streams:
// the device runs the workers.
package gemm

import "rnnbench/device/cpu/simd"

// A Matrix is an operand: row-major data whose rows are Stride floats apart. Trans means that
// the operand is the transpose of what is stored.
type Matrix struct {
	Data   []float32
	Stride int
	Trans  bool
}

// A Product is C = A·B, or C += A·B. C overlaps no operand. All sizes are at least 1.
type Product struct {
	M, N, K    int
	A          Matrix    // [M, K]
	B          Matrix    // [K, N]; not read if Packed is given
	Packed     []float32 // [K, N] as Engine.Pack leaves it, or nil
	Format     simd.Format
	C          []float32 // [M, N] through LdC
	LdC        int
	Accumulate bool
	Sums       []float32 // [M] of the rows of A, which is transposed, set or added to as C is; nil: none

	// Backward says that the pieces of the product are taken from the last to the first.
	Backward bool

	// Beside is a product by the same A, of which nothing else is read but N, B, C and LdC: its columns
	// follow those of this one, whose N is then a multiple of StripWidth, and A is packed for both. A is
	// transposed, and neither B was packed ahead; nil: there is none.
	Beside *Product
}

// columns are those of p and of the product beside it.
func (p *Product) columns() int {
	if p.Beside == nil {
		return p.N
	}
	return p.N + p.Beside.N
}

// each calls f for p and for the product beside it, where columns n0 … n1 of both have some of its own:
// with these, and how many columns come before them.
func (p *Product) each(n0, n1 int, f func(q *Product, from, to, before int)) {
	if n0 < p.N {
		f(p, n0, min(p.N, n1), 0)
	}
	if n1 > p.N {
		from := max(n0, p.N)
		f(p.Beside, from-p.N, n1-p.N, from-n0)
	}
}

// Engine multiplies with the kernels of one level. It is immutable and safe for concurrent use.
type Engine struct {
	k      *simd.Kernels
	depth  int // most k of a block
	blockA int // floats of a block of A, a quarter of L2
	blockB int // floats of a packed block of B, twice L2: a few strips at a time are in use
	ones   []float32
}

const (
	width = simd.StripWidth
	// depth is the most k of a block: a tile's sums are added to C once per block.
	depth = 512
	// packedDepths quarters of depth is the most k of a block of weights that were packed ahead, of
	// which few columns are in use at a time.
	packedDepths = 9
	// dotRows is the most rows for which rows of Bᵀ are read in place, and inPlaceTiles the most
	// tiles of rows for which strips of B are. Beyond, packing pays: on a Xeon of 2023 the
	// strips win up to 128 rows with 16 floats to the vector, up to 48 with 8.
	dotRows      = 32
	inPlaceTiles = 8
	// inPlaceDepth is the most k of a block of strips read in place: rows of B are often a power
	// of two apart, and then more of them evict each other.
	inPlaceDepth = 128
	// widenTiles is the most tiles of rows that widen elements of 16 bits each by itself.
	widenTiles = 2
	// bandTiles is the most tiles of rows in a piece, and widenBands of how many times as many where
	// each piece widens its weights anew.
	bandTiles  = 8
	widenBands = 4
	// inTurn is with how many bands a group of columns is multiplied before the next group.
	inTurn = 4
	// wideRows is how much of a strip is packed before it is narrowed.
	wideRows = 64
	// defaultL2 is the size of L2 that New assumes where none is given.
	defaultL2 = 1 << 20
)

// New returns an engine for the given kernels and l2 bytes of L2 cache per core, 0 if unknown.
func New(k *simd.Kernels, l2 int) *Engine {
	if l2 <= 0 {
		l2 = defaultL2
	}
	e := &Engine{k: k, depth: depth, blockA: l2 / 4 / 4, blockB: l2 / 2, ones: make([]float32, packedDepths*depth/4+1)}
	for i := range e.ones {
		e.ones[i] = 1
	}
	return e
}

// Kernels returns the kernels that the engine multiplies with.
func (e *Engine) Kernels() *simd.Kernels { return e.k }

// A Scratch is the memory of one worker. It may serve any number of products, one at a time.
type Scratch struct {
	buf  []float32
	wide [wideRows * width]float32 // of a strip about to be narrowed
	part [1024]float32             // of sums of rows
	tile simd.Tile
	sums simd.Tile
	dot  simd.Dot
}

// NewScratch returns a scratch of n floats: the largest ScratchLen of the products to come.
func NewScratch(n int) *Scratch { return &Scratch{buf: make([]float32, n)} }

func ceil(a, b int) int { return (a + b - 1) / b }

// part returns the bounds of part i of n things in w parts, whose sizes differ by at most one.
func part(n, i, w int) (from, to int) { return n * i / w, n * (i + 1) / w }

// PackedLen returns how many floats of memory a packed K×N matrix takes.
func (e *Engine) PackedLen(f simd.Format, k, n int) int { return k * ceil(n, width) * f.RowFloats() }

// Columns returns the columns of a packed matrix of k rows from a multiple of StripWidth on.
func Columns(packed []float32, f simd.Format, k, from int) []float32 {
	return packed[from/width*k*f.RowFloats():]
}

// Pack packs the worker's share of b, a K×N operand, into dst. Strip s, columns s·StripWidth to
// (s+1)·StripWidth, starts at dst[s·K·f.RowFloats()], so that a tail of dst is a packed matrix of
// the columns from there on. A worker packs the strips that it reads in a product of few rows.
func (e *Engine) Pack(dst []float32, f simd.Format, b Matrix, k, n, worker, workers int, s *Scratch) {
	from, to := part(ceil(n, width), worker, workers)
	switch {
	case from == to:
	case f == simd.F32:
		e.pack(dst[from*width*k:], b, 0, k, from*width, min(n, to*width))
	default:
		for strip := from; strip < to; strip++ {
			for at := 0; at < k; at += wideRows {
				end := min(k, at+wideRows)
				e.pack(s.wide[:], b, at, end, strip*width, min(n, (strip+1)*width))
				e.k.Narrow(dst[(strip*k+at)*f.RowFloats():], s.wide[:(end-at)*width], f)
			}
		}
	}
}

// pack packs rows k0 … k1 and columns n0 … n1 of b.
func (e *Engine) pack(dst []float32, b Matrix, k0, k1, n0, n1 int) {
	strip := (k1 - k0) * width
	if b.Trans {
		e.k.PackTransposed(dst, b.Data[n0*b.Stride+k0:], strip, b.Stride, k1-k0, n1-n0)
	} else {
		e.k.Pack(dst, b.Data[k0*b.Stride+n0:], strip, b.Stride, k1-k0, n1-n0)
	}
}

// Share returns the rectangle of C that a worker computes: rows m0 … m1 and columns n0 … n1,
// possibly empty. With packed weights it is a band of columns that depends on N alone.
func (e *Engine) Share(p *Product, worker, workers int) (m0, m1, n0, n1 int) {
	if workers == 1 {
		return 0, p.M, 0, p.columns()
	}
	wn := e.columns(p, workers)
	m0, m1 = 0, p.M
	if wn < workers {
		t0, t1 := part(ceil(p.M, e.k.MaxRows()), worker/wn, workers/wn)
		m0, m1 = t0*e.k.MaxRows(), min(p.M, t1*e.k.MaxRows())
		worker %= wn
	}
	unit := width
	if wide := e.k.MaxStrips(e.k.MaxRows()) * width; p.columns() >= 8*wide*wn {
		unit = wide // whole tiles: a share may be a tile larger than another, which must be little
	}
	s0, s1 := part(ceil(p.columns(), unit), worker, wn)
	return m0, m1, min(p.columns(), s0*unit), min(p.columns(), s1*unit)
}

// columns returns how many bands of columns the workers form; it divides workers. It weighs the
// largest share of multiply-adds against the packing that bands of rows or columns repeat.
func (e *Engine) columns(p *Product, workers int) int {
	strips := ceil(p.columns(), width)
	if p.Packed != nil && (p.M <= e.k.MaxRows() || strips >= 8*workers) {
		return workers
	}
	// packing one float takes about as long as this many multiply-adds
	const packing = 24
	rows := e.k.MaxRows()
	tiles := ceil(p.M, rows)
	cost := func(wn int) int {
		m, n := ceil(tiles, workers/wn)*rows, ceil(strips, wn)*width
		c := m * n
		if p.Packed == nil {
			c += packing * n
		}
		if p.A.Trans {
			c += packing * m
		}
		return c
	}
	best, least := workers, cost(workers)
	try := func(wn int) {
		if c := cost(wn); c < least || c == least && wn > best {
			best, least = wn, c
		}
	}
	for d := 1; d*d <= workers; d++ {
		if workers%d == 0 {
			try(workers / d)
			try(d)
		}
	}
	return best
}

// A way is how a share is multiplied.
type way int

const (
	packed  way = iota // B was packed ahead
	widened            // and elements of 16 bits are widened block by block
	inPlace            // strips of B are read where they are
	byDots             // rows of Bᵀ are read where they are
	blocked            // B is packed block by block
)

func (e *Engine) way(p *Product, rows int) way {
	switch {
	case p.Beside != nil:
		return blocked
	case p.Packed != nil && p.Format != simd.F32 && rows > widenTiles*e.k.MaxRows():
		return widened
	case p.Packed != nil:
		return packed
	case p.B.Trans && !p.A.Trans && rows <= dotRows:
		return byDots
	case !p.B.Trans && rows <= inPlaceTiles*e.k.MaxRows():
		return inPlace
	}
	return blocked
}

// Packs reports whether workers pack their rows of A.
func (e *Engine) Packs(p *Product, workers int) bool {
	return p.A.Trans && p.Packed == nil && p.M > workers*inPlaceTiles*e.k.MaxRows()
}

// blocks returns the block of a share of m×n: rows, columns and depth.
func (e *Engine) blocks(p *Product, m, n int) (mc, nc, kc int) {
	kc = p.K
	if m > e.k.MaxRows() {
		most := e.depth
		switch e.way(p, m) {
		case inPlace:
			most = min(most, inPlaceDepth)
		case packed:
			most = packedDepths * most / 4
		}
		kc = ceil(p.K, ceil(p.K, most))
		kc += kc % 2 // rows of 16 bits may come in pairs
	}
	even := func(n, most int) int { return ceil(ceil(n, ceil(n, max(width, most))), width) * width }
	return min(m, even(m, e.blockA/kc)), even(n, e.blockB/kc), kc
}

// ScratchLen returns how many floats of scratch the hungriest worker needs for p.
func (e *Engine) ScratchLen(p *Product, workers int) int {
	most := 0
	for w := range workers {
		m0, m1, n0, n1 := e.Share(p, w, workers)
		if m0 >= m1 || n0 >= n1 {
			continue
		}
		a, b := e.scratch(p, m1-m0, n1-n0)
		most = max(most, a+b)
	}
	return most
}

// scratch returns the floats for blocks of A and B in a share of m×n.
func (e *Engine) scratch(p *Product, m, n int) (a, b int) {
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

// Run computes the worker's share of p. Shares are disjoint, and which sums are added in what
// order depends on p, the worker and workers alone.
func (e *Engine) Run(p *Product, worker, workers int, s *Scratch) {
	m0, m1, n0, n1 := e.Share(p, worker, workers)
	if m0 < m1 && n0 < n1 {
		e.run(p, m0, m1, n0, n1, p.from(n1), s)
	}
}

// Pieces returns in how many pieces a product by packed weights falls where workers take one after the
// other: bands of rows times groups of columns, each group as wide as the widest tile of so many rows, or a
// little less where a group more for one worker than for another would be much.
func (e *Engine) Pieces(p *Product, workers int) int {
	groups := ceil(p.N, e.group(p))
	if groups < 64*workers {
		groups = ceil(groups, workers) * workers
	}
	return e.bands(p) * min(groups, ceil(p.N, width))
}

// group is the most columns of a group.
func (e *Engine) group(p *Product) int { return e.k.MaxStrips(min(p.M, e.k.MaxRows())) * width }

// bands is the number of bands.
func (e *Engine) bands(p *Product) int {
	tiles := bandTiles
	if p.Format != simd.F32 {
		tiles *= widenBands
	}
	return ceil(p.M, tiles*e.k.MaxRows())
}

// RunPiece computes piece i of so many. Pieces go through the groups with some bands at a time, whose rows
// stay in a cache meanwhile.
func (e *Engine) RunPiece(p *Product, i, pieces int, s *Scratch) {
	bands := e.bands(p)
	groups := pieces / bands
	first := i / (inTurn * groups) * inTurn
	i -= first * groups
	turn := min(inTurn, bands-first)
	m0, m1 := e.band(p, first+i%turn, bands)
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

// columnsOf are those of a group.
func (p *Product) columnsOf(group, groups int) (n0, n1 int) {
	s0, s1 := part(ceil(p.N, width), group, groups)
	return s0 * width, min(p.N, s1*width)
}

// band returns the rows of a band.
func (e *Engine) band(p *Product, i, bands int) (m0, m1 int) {
	t0, t1 := part(ceil(p.M, e.k.MaxRows()), i, bands)
	return t0 * e.k.MaxRows(), min(p.M, t1*e.k.MaxRows())
}

// PieceScratchLen returns how many floats of scratch the hungriest piece of p needs. Bands differ by a tile at
// most, and the last one may end within a tile.
func (e *Engine) PieceScratchLen(p *Product) int {
	rows, bands := e.k.MaxRows(), e.bands(p)
	tiles := ceil(p.M, rows)
	m0, m1 := e.band(p, bands-1, bands)
	most := 0
	for _, m := range [...]int{tiles / bands * rows, ceil(tiles, bands) * rows, m1 - m0} {
		a, b := e.scratch(p, min(m, p.M), min(p.N, e.group(p)))
		most = max(most, a+b)
	}
	return most
}

// sumRows sums rows m0 … m1 of A where it is.
func (e *Engine) sumRows(p *Product, m0, m1 int, s *Scratch) {
	sums := p.Sums[m0:m1]
	if !p.Accumulate {
		clear(sums)
	}
	e.k.SumRows(sums, p.A.Data[m0:], p.A.Stride, p.K, s.part[:])
}

// sumStrips sums, or adds, the columns of a packed block that t multiplies with: a product of a row of ones.
func (e *Engine) sumStrips(sums, a []float32, t, ones *simd.Tile) {
	ones.A, ones.ACol = e.ones, 1
	ones.BStrip, ones.BStep = t.K*width, width
	ones.K, ones.Rows, ones.Accumulate = t.K, 1, t.Accumulate
	for n := 0; n < len(sums); n += ones.Strips * width {
		rest := len(sums) - n
		ones.Strips = min(ceil(rest, width), e.k.MaxStrips(1))
		ones.Last = min(width, rest-(ones.Strips-1)*width)
		ones.B, ones.C = a[n*t.K:], sums[n:]
		ones.Ahead = ones.B
		e.k.Tile(ones)
	}
}

// run computes a rectangle of p. What it multiplies with next is likely to be the strips of next.
func (e *Engine) run(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	if p.Sums != nil && n0 == 0 {
		if a, _ := e.scratch(p, m1-m0, n1-n0); a == 0 { // no rows are packed, which sums them
			e.sumRows(p, m0, m1, s)
		}
	}
	switch e.way(p, m1-m0) {
	case packed:
		if m1-m0 <= e.k.MaxRows() {
			e.runPacked(p, m0, m1, n0, n1, next, s)
		} else {
			e.runBlocks(p, m0, m1, n0, n1, next, s)
		}
	case byDots:
		e.runDots(p, m0, m1, n0, n1, s)
	case inPlace:
		e.runInPlace(p, m0, m1, n0, n1, s)
	default:
		e.runBlocks(p, m0, m1, n0, n1, next, s)
	}
}

// runPacked multiplies few rows with packed weights: one tile high, all of K at once.
func (e *Engine) runPacked(p *Product, m0, m1, n0, n1 int, next []float32, s *Scratch) {
	t := &s.tile
	t.K = p.K
	t.BStep = p.Format.RowFloats()
	t.BStrip = p.K * t.BStep
	t.Format = p.Format
	t.Accumulate = p.Accumulate
	e.tilesOfRows(p, Columns(p.Packed, p.Format, p.K, n0), next, 0, m0, m1, n0, n1, t)
}

// from returns the packed strips from column n on; nil if there are none.
func (p *Product) from(n int) []float32 {
	if p.Packed == nil || n >= p.N {
		return nil
	}
	return Columns(p.Packed, p.Format, p.K, n)
}

func (e *Engine) runBlocks(p *Product, m0, m1, n0, n1 int, after []float32, s *Scratch) {
	mc, nc, kc := e.blocks(p, m1-m0, n1-n0)
	a := 0
	if p.A.Trans {
		a, _ = e.scratch(p, m1-m0, n1-n0)
	}
	bufA, bufB := s.buf[:a], s.buf[a:]
	t := &s.tile
	way := e.way(p, m1-m0)
	if way == packed {
		nc = n1 - n0
	}
	for n := n0; n < n1; n += nc {
		nEnd := min(n+nc, n1)
		for k := 0; k < p.K; k += kc {
			kEnd := min(k+kc, p.K)
			b, next := bufB, []float32(nil)
			t.Format, t.BStep = simd.F32, width
			t.BStrip = (kEnd - k) * width
			switch way {
			case packed:
				t.Format, t.BStep = p.Format, p.Format.RowFloats()
				t.BStrip = p.K * t.BStep
				b = Columns(p.Packed, p.Format, p.K, n)
				if next = after; kEnd < p.K {
					next = b[kEnd*t.BStep:]
				}
				b = b[k*t.BStep:]
			case widened:
				row := p.Format.RowFloats()
				for s := range ceil(nEnd-n, width) {
					e.k.Widen(b[s*t.BStrip:][:t.BStrip], p.Packed[((n/width+s)*p.K+k)*row:], p.Format)
				}
			default:
				p.each(n, nEnd, func(q *Product, from, to, before int) {
					e.pack(b[before*(kEnd-k):], q.B, k, kEnd, from, to)
				})
			}
			t.K = kEnd - k
			t.Accumulate = p.Accumulate || k > 0
			for m := m0; m < m1; m += mc {
				mEnd := min(m+mc, m1)
				if a > 0 {
					e.k.Pack(bufA, p.A.Data[k*p.A.Stride+m:], t.K*width, p.A.Stride, t.K, mEnd-m)
					if p.Sums != nil && n == 0 {
						e.sumStrips(p.Sums[m:mEnd], bufA, t, &s.sums)
					}
					p.each(n, nEnd, func(q *Product, from, to, before int) {
						e.tilesOfStrips(q, bufA, b[before*t.K:], m, mEnd, from, to, t)
					})
				} else {
					p.each(n, nEnd, func(q *Product, from, to, before int) {
						e.tilesOfRows(q, b[before*t.K:], next, k, m, mEnd, from, to, t)
					})
				}
			}
		}
	}
}

// tilesOfRows covers rows m … mEnd and columns n … nEnd of C with tiles, reading A in place. While it
// multiplies with some strips of b it has those fetched that follow, and at the end the first of next.
func (e *Engine) tilesOfRows(p *Product, b, next []float32, k, m, mEnd, n, nEnd int, t *simd.Tile) {
	t.CRow = p.LdC
	origin := m*p.A.Stride + k
	t.ARow, t.ACol = p.A.Stride, 1
	if p.A.Trans {
		origin = k*p.A.Stride + m
		t.ARow, t.ACol = 1, p.A.Stride
	}
	rows := mEnd - m
	tiles, few, many := 1, rows, 0 // many tiles have a row more than few
	if rows > e.k.MaxRows() {
		tiles = ceil(rows, e.k.MaxRows())
		few = rows / tiles
		many = rows - few*tiles
	}
	strips, groups := ceil(nEnd-n, width), 1
	if most := e.k.MaxStrips(few + min(many, 1)); strips > most {
		groups = ceil(strips, most)
	}
	for g, s := 0, 0; g < groups; g++ {
		end := strips
		if g < groups-1 {
			end = strips * (g + 1) / groups
		}
		t.Strips = end - s
		t.Last = min(width, nEnd-n-(end-1)*width)
		t.B = b[s*t.BStrip:]
		later := next // a strip with each tile
		if end < strips {
			later = b[end*t.BStrip:]
		}
		a, c := origin, m*p.LdC+n+s*width
		for i := range tiles {
			t.Rows = few
			if i < many {
				t.Rows++
			}
			t.A, t.C = p.A.Data[a:], p.C[c:]
			t.Ahead = t.B
			if i < t.Strips && i*t.BStrip < len(later) {
				t.Ahead = later[i*t.BStrip:]
			}
			e.k.Tile(t)
			a += t.Rows * t.ARow
			c += t.Rows * p.LdC
		}
		s = end
	}
}

// tilesOfStrips does the same with a packed block of A, whose strips are rows of C.
func (e *Engine) tilesOfStrips(p *Product, a, b []float32, m, mEnd, n, nEnd int, t *simd.Tile) {
	t.CRow = p.LdC
	t.ARow, t.ACol = 1, width
	strips := ceil(nEnd-n, width)
	perStrip := ceil(width, e.k.MaxRows())
	groups := ceil(strips, e.k.MaxStrips(ceil(width, perStrip)))
	for g, s := 0, 0; g < groups; g++ {
		end := strips * (g + 1) / groups
		t.Strips = end - s
		t.Last = min(width, nEnd-n-(end-1)*width)
		t.B = b[s*t.BStrip:]
		t.Ahead = t.B
		for row := m; row < mEnd; row += width {
			rows := min(width, mEnd-row)
			tiles := ceil(rows, e.k.MaxRows())
			for i := range tiles {
				from, to := part(rows, i, tiles)
				t.Rows = to - from
				t.A = a[(row-m)*t.K+from:]
				t.C = p.C[(row+from)*p.LdC+n+s*width:]
				e.k.Tile(t)
			}
		}
		s = end
	}
}

// runInPlace multiplies few rows with strips read where B has them.
func (e *Engine) runInPlace(p *Product, m0, m1, n0, n1 int, s *Scratch) {
	_, _, kc := e.blocks(p, m1-m0, n1-n0)
	t := &s.tile
	t.Format = simd.F32
	whole := n0 + (n1-n0)/width*width
	for k := 0; k < p.K; k += kc {
		kEnd := min(k+kc, p.K)
		t.K = kEnd - k
		t.Accumulate = p.Accumulate || k > 0
		if n0 < whole {
			t.BStrip, t.BStep = width, p.B.Stride
			e.tilesOfRows(p, p.B.Data[k*p.B.Stride+n0:], nil, k, m0, m1, n0, whole, t)
		}
		if whole < n1 {
			e.pack(s.buf, p.B, k, kEnd, whole, n1)
			t.BStrip, t.BStep = width*t.K, width
			e.tilesOfRows(p, s.buf, nil, k, m0, m1, whole, n1, t)
		}
	}
}

// runDots multiplies few rows with rows of Bᵀ.
func (e *Engine) runDots(p *Product, m0, m1, n0, n1 int, s *Scratch) {
	d := &s.dot
	d.K = p.K
	d.ARow, d.BRow, d.CRow = p.A.Stride, p.B.Stride, p.LdC
	d.Accumulate = p.Accumulate
	for n := n0; n < n1; n += d.Cols {
		d.Cols = simd.DotCols
		if n+d.Cols > n1 {
			d.Cols = 1
		}
		d.B = p.B.Data[n*p.B.Stride:]
		for m := m0; m < m1; m += d.Rows {
			d.Rows = min(e.k.MaxDotRows(), m1-m)
			d.A, d.C = p.A.Data[m*p.A.Stride:], p.C[m*p.LdC+n:]
			e.k.Dot(d)
		}
	}
}
