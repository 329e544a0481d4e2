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

// A Matrix is an operand: row-major data whose rows are Stride floats apart. With Trans, the
// operand is the transpose of the stored matrix.
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
	Packed     []float32 // [K, N] as Engine.Pack writes it, or nil
	Format     simd.Format
	C          []float32 // [M, N] through LdC
	LdC        int
	Accumulate bool
	Again      bool      // A is unchanged since the last run with this scratch, so its rounded rows can be reused
	Sums       []float32 // [M] sums of the rows of A, which must be transposed; set or added to, like C; nil: none

	// Backward says that pieces run from the last to the first.
	Backward bool

	// Second is a second product with the same A, or nil. Only its N, B, C and LdC are read. Its
	// columns follow those of this product, whose N must then be a multiple of StripWidth. A is
	// packed once for both. A is transposed, and neither B is packed ahead.
	Second *Product
}

// columns returns the number of columns of p and of the product beside it.
func (p *Product) columns() int {
	if p.Second == nil {
		return p.N
	}
	return p.N + p.Second.N
}

// each calls f for p and for the product beside it, if columns n0 … n1-1 of both include some of
// its own. from and to are its own columns; before is how many of the range come before them.
func (p *Product) each(n0, n1 int, f func(q *Product, from, to, before int)) {
	if n0 < p.N {
		f(p, n0, min(p.N, n1), 0)
	}
	if n1 > p.N {
		from := max(n0, p.N)
		f(p.Second, from-p.N, n1-p.N, from-n0)
	}
}

// An Engine multiplies with the kernels of one level. It is immutable and safe for concurrent use.
type Engine struct {
	k      *simd.Kernels
	depth  int // most k of a block
	blockA int // floats of a block of A, a quarter of L2
	blockB int // floats of a packed block of B, twice L2: only a few strips are in use at a time
	ones   []float32
	always bool // for tests: round products however small they are
}

const (
	width = simd.StripWidth
	// depth is the most k of a block: a tile's sums are added to C once per block.
	depth = 512
	// packedDepths quarters of depth is the most k of a block of weights that were packed ahead. It
	// can be more, since few of their columns are in use at a time.
	packedDepths = 9
	// dotRows is the most rows for which rows of Bᵀ are read in place. k must be at least dotDepth
	// times as large: a dot product of few k mostly adds up the lanes of its vectors. inPlaceTiles
	// is the most tiles of rows for which strips of B are read in place. Beyond that, packing pays:
	// on a Xeon of 2023 reading in place wins up to 128 rows with 16 floats to the vector, and up
	// to 48 with 8.
	dotRows      = 32
	dotDepth     = 8
	inPlaceTiles = 8
	// inPlaceDepth is the most k of a block of strips read in place. Rows of B are often a power of
	// two apart, so with more k they would evict each other.
	inPlaceDepth = 128
	// lowDepth is the most k of a block of one tile's rows, which no other tile shares. It bounds rounding errors.
	lowDepth = 256
	// widenTiles is the most tiles of rows that each widen elements of 16 bits for themselves.
	widenTiles = 2
	// bandTiles is the most tiles of rows in a piece. It is widenBands times as many if each piece
	// widens its weights anew.
	bandTiles  = 8
	widenBands = 4
	// inTurn is the number of bands that are multiplied with a group of columns before the next
	// group.
	inTurn = 4
	// wideRows × wideStrips is how much is packed before it is narrowed: 16 KiB.
	wideRows   = 64
	wideStrips = 4
	// defaultL2 is the size of L2 that New assumes if it is unknown.
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

// CacheOf returns the bytes of cache per core that an engine blocks its products for.
func CacheOf(e *Engine) int { return 2 * e.blockB }

// Kernels returns the kernels that the engine multiplies with.
func (e *Engine) Kernels() *simd.Kernels { return e.k }

// A Scratch is the memory of one worker. It may serve any number of products, one at a time.
type Scratch struct {
	buf  []float32
	wide []float32     // see room
	part [1024]float32 // for sums of rows
	tile simd.Tile
	sums simd.Tile
	dot  simd.Dot

	rounding rounding
	panels   panels
}

// NewScratch returns a scratch of n floats: the largest ScratchLen of the products to come.
func NewScratch(n int) *Scratch { return &Scratch{buf: make([]float32, n)} }

// room is memory for parts of strips that are about to be narrowed. Few workers need it.
func (s *Scratch) room() []float32 {
	if s.wide == nil {
		s.wide = make([]float32, wideRows*wideStrips*width)
	}
	return s.wide
}

func ceil(a, b int) int { return (a + b - 1) / b }

// part returns the bounds of part i of n items in w parts, whose sizes differ by at most one.
func part(n, i, w int) (from, to int) { return n * i / w, n * (i + 1) / w }
