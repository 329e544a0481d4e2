package simd

// StripWidth is the number of columns of one strip of a packed matrix.
//
// A packed K×N matrix is a row of strips. A strip holds StripWidth columns: for each k its
// StripWidth values lie together, so that a strip is K·StripWidth floats long. The columns
// that pad the last strip are zero. All levels share the layout.
const StripWidth = 16

// A Format is how the elements of a packed matrix are stored.
type Format int

// The formats. Elements of 16 bits are rounded to the nearest, to even in the middle, and
// widened as they are read: sums are single precision in all of them. Two of them take the
// place of one float, the first in its low half: neighbours of a row, but in BF16 those of
// one column in two rows, from an even one on, since a shift or a mask then widens a vector.
// The last of an odd number of rows holds neighbours. Products in F16 are of finite weights and
// of values below 2⁴⁸: kernels may take the largest exponent for one as the others, and lose what
// is below 2⁻¹¹⁷.
//
// Pairs is BF16 as kernels see it that multiply two terms at once: a word is one element of the matrix, with two k,
// and those of A are such words, too. K counts words.
const (
	F32   Format = iota
	F16          // IEEE half precision: 10 bits of mantissa, up to 65504
	BF16         // the upper half of a float: 7 bits of mantissa
	Pairs        // of BF16, in both factors; where Kernels.Rounds
	formats
)

// RowFloats returns how many floats of memory one k of a strip takes.
func (f Format) RowFloats() int {
	if f == F32 || f == Pairs {
		return StripWidth
	}
	return StripWidth / 2
}

// MaxRows bounds the rows and the strips of any Tile, whatever the level.
const MaxRows = 8

// A Tile is one call of the matrix micro-kernel. With w = StripWidth it computes, for
// m < Rows, s < Strips, j < w (j < Last in the last strip):
//
//	sum := 0
//	for k := range K {
//		sum += A[m*ARow+k*ACol] * B[s*BStrip+k*BStep+j]
//	}
//	C[m*CRow+s*w+j] = sum  // or += sum
//
// All w values of every strip of B are read, also in the last strip; no other element of C
// than those named is read or written. Strides are counted in floats of memory, and B holds
// elements of the given format.
//
// The generator reads the offsets of the fields from this file.
type Tile struct {
	A          []float32 // [Rows, K] through ARow and ACol
	B          []float32 // [Strips, K, StripWidth] through BStrip and BStep
	Ahead      []float32 // [K] through AheadStep: lines to fetch into L2 meanwhile; B with a step of 0 for none
	C          []float32 // [Rows, (Strips-1)·StripWidth+Last] through CRow
	ARow, ACol int
	BStrip     int // from strip to strip: StripWidth where B is not packed
	BStep      int // from k to k+1: Format.RowFloats() where B is packed
	AheadStep  int // of what is fetched: BStep, or less where several tiles fetch a part of a strip each
	CRow       int
	K          int // ≥ 1
	Rows       int // 1 … Kernels.MaxRows()
	Strips     int // 1 … Kernels.MaxStrips(Rows)
	Last       int // columns of the last strip, 1 … StripWidth
	Accumulate bool
	Format     Format // other than F32 only where B is packed
}

// DotCols is the number of rows of B that one Dot takes at most.
const DotCols = 4

// A Dot is one call of the kernel for operands that both have k running along the row. It
// computes, for m < Rows, n < Cols:
//
//	sum := 0
//	for k := range K {
//		sum += A[m*ARow+k] * B[n*BRow+k]
//	}
//	C[m*CRow+n] = sum  // or += sum
type Dot struct {
	A                []float32 // [Rows, K] through ARow
	B                []float32 // [Cols, K] through BRow
	C                []float32 // [Rows, Cols] through CRow
	ARow, BRow, CRow int
	K                int // ≥ 1
	Rows             int // 1 … Kernels.MaxDotRows()
	Cols             int // 1 or DotCols
	Accumulate       bool
}
