package simd

import "unsafe"

// Moves are the kernels of one level that move and convert matrices.
type Moves struct {
	stream        func(dst, src []float32)
	pack1, pack4  func(dst, src []float32, strip, stride, k int)
	transpose     func(dst, src []float32, dstStride, srcStride, n int)
	transposeRows int // rows of src that transpose handles
	narrow, widen [formats]func(dst, src []float32)
}

// Stream copies src to dst with stores that bypass the caches, if the level has them.
func (k *Moves) Stream(dst, src []float32) {
	const line, block = 64, 64 // bytes, floats
	src = src[:len(dst)]
	if len(dst) < 2*block {
		copy(dst, src)
		return
	}
	head := 0
	if off := uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % line; off != 0 {
		head = int(line-off) / 4
	}
	copy(dst[:head], src)
	dst, src = dst[head:], src[head:]
	n := len(dst) / block * block
	k.stream(dst[:n], src[:n])
	copy(dst[n:], src[n:])
}

// Pack copies n columns of rows rows from src, a matrix with the given stride, to strips of dst.
// The strips are strip floats apart, and the last one is padded with zeros.
func (k *Moves) Pack(dst, src []float32, strip, stride, rows, n int) {
	full := n / StripWidth
	s := 0
	for ; s+4 <= full; s += 4 {
		d, f := dst[s*strip:], src[s*StripWidth:]
		_, _ = d[3*strip+rows*StripWidth-1], f[(rows-1)*stride+4*StripWidth-1]
		k.pack4(d, f, strip, stride, rows)
	}
	for ; s < full; s++ {
		d, f := dst[s*strip:], src[s*StripWidth:]
		_, _ = d[rows*StripWidth-1], f[(rows-1)*stride+StripWidth-1]
		k.pack1(d, f, strip, stride, rows)
	}
	if rest := n - full*StripWidth; rest > 0 {
		d, f := dst[full*strip:], src[full*StripWidth:]
		for i := range rows {
			to := d[i*StripWidth:][:StripWidth]
			copy(to, f[i*stride:][:rest])
			clear(to[rest:])
		}
	}
}

// PackTransposed packs the transpose of src, which has n rows of rows elements.
func (k *Moves) PackTransposed(dst, src []float32, strip, stride, rows, n int) {
	for j := 0; j < n; j += StripWidth {
		d := dst[j/StripWidth*strip:][:rows*StripWidth]
		w := min(StripWidth, n-j)
		k.Transpose(d, src[j*stride:], StripWidth, stride, rows, w)
		if w < StripWidth {
			for i := range rows {
				clear(d[i*StripWidth+w:][:StripWidth-w])
			}
		}
	}
}

// Transpose is dst[i*dstStride+j] = src[j*srcStride+i] for i < rows, j < cols; rows and cols
// are those of dst. dst and src do not overlap.
func (k *Moves) Transpose(dst, src []float32, dstStride, srcStride, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(rows-1)*dstStride+cols-1], src[(cols-1)*srcStride+rows-1]
	const together = 4 // rows
	w := k.transposeRows
	if w == 0 || cols < w || rows < together {
		transposeGeneric(dst, src, dstStride, srcStride, 0, rows, 0, cols)
		return
	}
	n := rows &^ (together - 1)
	for next := 0; next < cols; next += w {
		j := min(next, cols-w) // the last columns and rows may be moved twice
		k.transpose(dst[j:], src[j*srcStride:], dstStride, srcStride, n)
		if n < rows {
			i := rows - together
			k.transpose(dst[i*dstStride+j:], src[j*srcStride+i:], dstStride, srcStride, together)
		}
	}
}

// Narrow stores the elements of src in dst in a format of 16 bits. len(src) must be a multiple of
// StripWidth.
func (k *Moves) Narrow(dst, src []float32, f Format) {
	_ = dst[:len(src)/2]
	k.narrow[f](dst, src)
}

// Widen stores in dst the elements that src holds in a format of 16 bits. len(dst) must be a
// multiple of StripWidth.
func (k *Moves) Widen(dst, src []float32, f Format) {
	_ = src[:len(dst)/2]
	k.widen[f](dst, src)
}
