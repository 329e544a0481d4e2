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
				e.pack(s.room(), b, at, end, strip*width, min(n, (strip+1)*width))
				return s.room()[:(end-at)*width]
			})
		}
	default:
		packHalves(e, dst, f, b, k, from, to, n, s)
	}
}

// packHalves packs strips from … to-1 in 16 bits, by way of s.room. It reads side by side what lies
// so in memory: rows of several strips or, if b is transposed, all of one strip. Rows of single strips
// are kilobytes apart, and reading them takes twice as long.
func packHalves(e *Engine, dst []float32, f simd.Format, b Matrix, k, from, to, n int, s *Scratch) {
	block := func(at, end, strip, last int) {
		wide := (end - at) * width
		e.pack(s.room(), b, at, end, strip*width, min(n, last*width))
		for i := range last - strip {
			e.k.Narrow(dst[((strip+i)*k+at)*f.RowFloats():], s.room()[i*wide:][:wide], f)
		}
	}
	if b.Trans {
		for strip := from; strip < to; strip++ {
			for at := 0; at < k; at += wideRows {
				block(at, min(k, at+wideRows), strip, strip+1)
			}
		}
		return
	}
	for at := 0; at < k; at += wideRows {
		for strip := from; strip < to; strip += wideStrips {
			block(at, min(k, at+wideRows), strip, min(to, strip+wideStrips))
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
