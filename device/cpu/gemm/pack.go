package gemm

import "rnnbench/device/cpu/simd"

// PackedLen returns how many floats of memory a packed k×n matrix takes.
func (e *Engine) PackedLen(f simd.Format, k, n int) int { return ceil(n, width) * f.StripFloats(k) }

// Columns returns the columns from a given one on, a multiple of StripWidth, of a packed matrix of
// k rows.
func Columns(packed []float32, f simd.Format, k, from int) []float32 {
	return packed[from/width*f.StripFloats(k):]
}

// Pack packs the worker's share of b, a k×n operand, into dst. Strip s, columns s·StripWidth to
// (s+1)·StripWidth, starts at dst[s·f.StripFloats(k)], so a tail of dst is a packed matrix of the
// columns from there on. A worker packs the strips that it reads in a product of few rows.
func (e *Engine) Pack(dst []float32, f simd.Format, b Matrix, k, n, worker, workers int, s *Scratch) {
	from, to := part(ceil(n, width), worker, workers)
	switch {
	case from == to:
	case f == simd.F32:
		e.pack(dst[from*width*k:], b, 0, k, from*width, min(n, to*width))
	case f == simd.I8:
		for strip := from; strip < to; strip++ {
			simd.PackI8(dst[strip*f.StripFloats(k):], k, wideRows, func(at, end int) []float32 {
				e.pack(s.wide[:], b, at, end, strip*width, min(n, (strip+1)*width))
				return s.wide[:(end-at)*width]
			})
		}
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

// pack packs rows k0 … k1-1 and columns n0 … n1-1 of b.
func (e *Engine) pack(dst []float32, b Matrix, k0, k1, n0, n1 int) {
	strip := (k1 - k0) * width
	if b.Trans {
		e.k.PackTransposed(dst, b.Data[n0*b.Stride+k0:], strip, b.Stride, k1-k0, n1-n0)
	} else {
		e.k.Pack(dst, b.Data[k0*b.Stride+n0:], strip, b.Stride, k1-k0, n1-n0)
	}
}
