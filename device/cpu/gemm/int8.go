package gemm

import "rnnbench/device/cpu/simd"

// wordsOf returns how many words a row of so many k of 8-bit integers takes.
func wordsOf(k int) int { return ceil(k, 4) }

// scratchI8 returns the floats of scratch for m rows of a product of 8-bit integers: their words and
// scales.
func scratchI8(p *Product, m int) int { return m * (wordsOf(p.K) + 1) }

// runI8 rounds rows m0 … m1-1 of A, which is not transposed, to 8-bit integers, and multiplies them by
// packed columns.
func runI8(e *Engine, p *Product, m0, m1, n0, n1 int, s *Scratch) {
	rows, words := m1-m0, wordsOf(p.K)
	a, scales := s.buf[:rows*words], s.buf[rows*words:][:rows]
	for i := range rows {
		scales[i] = e.k.QuantizeRow(a[i*words:], p.A.Data[(m0+i)*p.A.Stride:][:p.K])
	}
	t := &s.tile
	t.Format, t.Rows, t.K, t.BStrip, t.Accumulate = simd.I8, 1, words, simd.I8.StripFloats(p.K), p.Accumulate
	for n := n0; n < n1; n += t.Strips * width {
		t.Strips = min(ceil(n1-n, width), e.k.MaxI8Strips())
		t.Last = min(width, n1-n-(t.Strips-1)*width)
		t.B = Columns(p.Packed, simd.I8, p.K, n)
		for i := range rows {
			t.A, t.C, t.Scale = a[i*words:], p.C[(m0+i)*p.LdC+n:], scales[i]
			e.k.Tile(t)
		}
	}
}
