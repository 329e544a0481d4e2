package simd

// StripWidth is the number of columns of one strip of a packed matrix.
//
// A packed K×N matrix is a row of strips. A strip holds StripWidth columns: for each k its
// StripWidth values lie together, so that a strip is K·StripWidth floats long. The columns
// that pad the last strip are zero. All levels share the layout.
const StripWidth = 16

// A Format is how the elements of a packed matrix are stored.
type Format int

// The formats. Elements of 16 bits are rounded to the nearest, with ties to even, and widened when
// they are read. Sums are in single precision in all formats.
//
// Two elements of 16 bits share one float, the first in its low half. In F16 they are neighbours of
// a row. In BF16 they are in one column of two rows, the first of which is even: then a shift or a
// mask widens a vector. The last of an odd number of rows holds neighbours.
//
// Subnormal F16 are widened exactly, also where a thread takes subnormal floats for zeros.
//
// Pairs is BF16 as seen by kernels that multiply two terms at once. A word, in A as well, is one
// element of the matrix with two k. K counts words.
//
// I8 is integers from -127 to 127, times a scale a column. A word has four k, in A as well, whose rows
// have a scale each (see Products.QuantizeRow). Zeros fill the last word. Before its words a strip has
// the scales of its columns and then, as integers of 32 bits, -128 times the sums of its columns. Sums
// of products are integers of 32 bits. They are exact, and all levels give the same bits.
const (
	F32   Format = iota
	F16          // IEEE half precision: 10 bits of mantissa, up to 65504
	BF16         // the upper half of a float: 7 bits of mantissa
	Pairs        // of BF16, in both factors; needs Kernels.Rounds
	I8           // 8-bit integers in both factors
	formats
)

// I8Header is how many floats of memory a strip of I8 has before its words.
const I8Header = 2 * StripWidth

// MostI8 is the most k of a product of I8: more could exceed the sums.
const MostI8 = 1 << 17

// RowFloats returns how many floats of memory one k of a strip takes.
func (f Format) RowFloats() int {
	switch f {
	case F32, Pairs:
		return StripWidth
	case I8:
		return StripWidth / 4
	}
	return StripWidth / 2
}

// Bytes returns the bytes of an element.
func (f Format) Bytes() int { return 4 * f.RowFloats() / StripWidth }

// StripFloats returns how many floats of memory a strip of so many k takes.
func (f Format) StripFloats(k int) int {
	if f == I8 {
		return I8Header + (k+3)/4*StripWidth
	}
	return k * f.RowFloats()
}

// MaxRows bounds the rows and the strips of any Tile, whatever the level.
const MaxRows = 8

// A Tile is one call of the matrix micro-kernel. With w = StripWidth it computes, for m < Rows, s <
// Strips, j < w (j < Last in the last strip):
//
//	sum := 0
//	for k := range K {
//		sum += A[m*ARow+k*ACol] * B[s*BStrip+k*BStep+j]
//	}
//	C[m*CRow+s*w+j] = sum  // or += sum
//
// All w values of every strip of B are read, also in the last strip. No other element of C than
// those named is read or written. Strides are in floats of memory, and B holds elements of the
// given format.
//
// The generator reads the offsets of the fields from this file.
type Tile struct {
	A          []float32 // [Rows, K] through ARow and ACol
	B          []float32 // [Strips, K, StripWidth] through BStrip and BStep
	Ahead      []float32 // [K] through AheadStep: lines to prefetch into L2; for none, B with a step of 0
	C          []float32 // [Rows, (Strips-1)·StripWidth+Last] through CRow
	ARow, ACol int
	BStrip     int // from strip to strip: StripWidth if B is not packed
	BStep      int // from k to k+1: Format.RowFloats() if B is packed
	AheadStep  int // step of Ahead: BStep, or less if several tiles each fetch a part of a strip
	CRow       int
	K          int // ≥ 1
	Rows       int // 1 … Kernels.MaxRows(); 1 for I8
	Strips     int // 1 … Kernels.MaxStrips(Rows), or Kernels.MaxI8Strips()
	Last       int // columns of the last strip, 1 … StripWidth
	Accumulate bool
	Format     Format  // other than F32 only if B is packed
	Scale      float32 // of the row of A, for I8
}

// DotCols is the most rows of B of a Dot.
const DotCols = 4

// A Dot is one call of the kernel for operands whose rows both run along k. It computes, for m <
// Rows, n < Cols:
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
