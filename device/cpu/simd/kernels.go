package simd

import "unsafe"

// Kernels are the kernels of one level. They are safe for concurrent use.
//
// The point-wise functions take slices as long as dst or longer and panic otherwise; dst may be
// one of the operands but not overlap one in part. Errors are stated in units in the last place
// of the correctly rounded result, and hold at every level, for all operands, denormal results
// included. NaN in is NaN out. Tests measure both.
type Kernels struct {
	level Level

	add, sub, mul, mulAdd              func(dst, a, b []float32)
	oneMinus, relu, exp, sigmoid, tanh func(dst, a []float32)
	sigmoidGrad, tanhGrad, reluGrad    func(dst, dy, y []float32)
	scale, addScaled                   func(dst, a []float32, s float32)
	expSum                             func(dst, a []float32, s float32) float32
	sum, most                          func(a []float32) float32
	dotProduct                         func(a, b []float32) float32
	stream                             func(dst, src []float32)
	pack1, pack4                       func(dst, src []float32, strip, stride, k int)
	transpose                          func(dst, src []float32, dstStride, srcStride, n int)
	transposeRows                      int // rows that transpose takes
	narrow, widen                      [formats]func(dst, src []float32)
	tiles                              [formats]tileTable
	dots                               [MaxRows + 1][DotCols + 1]func(*Dot)
	maxRows, maxDotRows                int
	maxStrips                          [MaxRows + 1]int
	peak                               func(n int)
	peakFLOPs                          int // of one round of peak
}

// A tileTable has the kernels by rows and strips.
type tileTable [MaxRows + 1][MaxRows + 1]func(*Tile)

// Level returns the level that the kernels are written for.
func (k *Kernels) Level() Level { return k.level }

// Copy is dst[i] = a[i].
func (k *Kernels) Copy(dst, a []float32) { copy(dst, a[:len(dst)]) }

// Add is dst[i] = a[i] + b[i].
func (k *Kernels) Add(dst, a, b []float32) { k.add(dst, a[:len(dst)], b[:len(dst)]) }

// Sub is dst[i] = a[i] - b[i].
func (k *Kernels) Sub(dst, a, b []float32) { k.sub(dst, a[:len(dst)], b[:len(dst)]) }

// Mul is dst[i] = a[i] * b[i].
func (k *Kernels) Mul(dst, a, b []float32) { k.mul(dst, a[:len(dst)], b[:len(dst)]) }

// MulAdd is dst[i] += a[i] * b[i], rounded once or twice.
func (k *Kernels) MulAdd(dst, a, b []float32) { k.mulAdd(dst, a[:len(dst)], b[:len(dst)]) }

// Accumulate is dst[i] += a[i].
func (k *Kernels) Accumulate(dst, a []float32) { k.add(dst, dst, a[:len(dst)]) }

// SumRows adds so many rows of a, each so many floats behind the one before, to dst. Of more than a few, some
// are added up in part at a time, for as many columns as that has: what is added to a sum is rounded as
// the sum is large, and equal terms would all be rounded the same way.
func (k *Kernels) SumRows(dst, a []float32, stride, rows int, part []float32) {
	const few, some = 16, 256
	for at := 0; at < len(dst); at += len(part) {
		to := dst[at:min(at+len(part), len(dst))]
		for first := 0; first < rows; first += some {
			sum := to
			if rows > few {
				sum = part[:len(to)]
				clear(sum)
			}
			for i := first; i < min(first+some, rows); i++ {
				k.Accumulate(sum, a[i*stride+at:])
			}
			if rows > few {
				k.Accumulate(to, sum)
			}
		}
	}
}

// Scale is dst[i] = s * a[i].
func (k *Kernels) Scale(dst, a []float32, s float32) { k.scale(dst, a[:len(dst)], s) }

// AddScaled is dst[i] += s * a[i], rounded once or twice.
func (k *Kernels) AddScaled(dst, a []float32, s float32) { k.addScaled(dst, a[:len(dst)], s) }

// OneMinus is dst[i] = 1 - a[i].
func (k *Kernels) OneMinus(dst, a []float32) { k.oneMinus(dst, a[:len(dst)]) }

// ReLU is dst[i] = a[i], or 0 where a[i] < 0.
func (k *Kernels) ReLU(dst, a []float32) { k.relu(dst, a[:len(dst)]) }

// Exp is dst[i] = exp(a[i]), within 1 ulp (0.92 measured).
func (k *Kernels) Exp(dst, a []float32) { k.exp(dst, a[:len(dst)]) }

// Sigmoid is dst[i] = 1 / (1 + exp(-a[i])), within 2.5 ulp (2.42 measured over all operands that matter).
func (k *Kernels) Sigmoid(dst, a []float32) { k.sigmoid(dst, a[:len(dst)]) }

// Tanh is dst[i] = tanh(a[i]), within 2.6 ulp (2.52 measured likewise), also near 0.
func (k *Kernels) Tanh(dst, a []float32) { k.tanh(dst, a[:len(dst)]) }

// SigmoidGrad is dst[i] = dy[i] * y[i] * (1 - y[i]), for y = sigmoid(x).
func (k *Kernels) SigmoidGrad(dst, dy, y []float32) { k.sigmoidGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// TanhGrad is dst[i] = dy[i] * (1 - y[i]*y[i]), for y = tanh(x).
func (k *Kernels) TanhGrad(dst, dy, y []float32) { k.tanhGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// ReLUGrad is dst[i] = dy[i], or 0 unless y[i] > 0.
func (k *Kernels) ReLUGrad(dst, dy, y []float32) { k.reluGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// Sum returns the sum of a. The order of addition depends on the level alone.
func (k *Kernels) Sum(a []float32) float32 { return k.sum(a) }

// Max returns the largest element of a, -Inf if there is none, and any value if one is NaN.
func (k *Kernels) Max(a []float32) float32 { return k.most(a) }

// DotProduct returns the sum of a[i] * b[i].
func (k *Kernels) DotProduct(a, b []float32) float32 { return k.dotProduct(a, b[:len(a)]) }

// ExpSum is dst[i] = exp(a[i] - s) and returns the sum of dst. With s = Max(a), and dst then
// scaled by the inverse of the sum, it is softmax.
func (k *Kernels) ExpSum(dst, a []float32, s float32) float32 { return k.expSum(dst, a[:len(dst)], s) }

// Stream copies src to dst with stores that bypass the caches, where the level has them.
func (k *Kernels) Stream(dst, src []float32) {
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

// MaxRows returns the most rows of a Tile.
func (k *Kernels) MaxRows() int { return k.maxRows }

// MaxStrips returns the most strips of a Tile of the given rows.
func (k *Kernels) MaxStrips(rows int) int { return k.maxStrips[rows] }

// Tile runs t. It does not check that the slices of t are long enough.
func (k *Kernels) Tile(t *Tile) { k.tiles[t.Format][t.Rows][t.Strips](t) }

// MaxDotRows returns the most rows of a Dot.
func (k *Kernels) MaxDotRows() int { return k.maxDotRows }

// Dot runs t. It does not check that the slices of t are long enough.
func (k *Kernels) Dot(t *Dot) { k.dots[t.Rows][t.Cols](t) }

// Pack copies n columns of rows rows from src, a matrix with the given stride, to strips of
// dst that are strip floats apart, and pads the last strip with zeros.
func (k *Kernels) Pack(dst, src []float32, strip, stride, rows, n int) {
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

// PackTransposed packs the transpose of src: its n rows become columns, its rows columns become rows.
func (k *Kernels) PackTransposed(dst, src []float32, strip, stride, rows, n int) {
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
func (k *Kernels) Transpose(dst, src []float32, dstStride, srcStride, rows, cols int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(rows-1)*dstStride+cols-1], src[(cols-1)*srcStride+rows-1]
	j, n := 0, rows&^3
	if w := k.transposeRows; w > 0 && n > 0 {
		for ; j+w <= cols; j += w {
			k.transpose(dst[j:], src[j*srcStride:], dstStride, srcStride, n)
		}
	}
	transposeGeneric(dst, src, dstStride, srcStride, 0, n, j, cols)
	transposeGeneric(dst, src, dstStride, srcStride, n, rows, 0, cols)
}

// Narrow stores the elements of src in dst in a format of 16 bits. Their number is a multiple
// of StripWidth.
func (k *Kernels) Narrow(dst, src []float32, f Format) {
	_ = dst[:len(src)/2]
	k.narrow[f](dst, src)
}

// Widen stores in dst the elements that src has in a format of 16 bits. Their number is a
// multiple of StripWidth.
func (k *Kernels) Widen(dst, src []float32, f Format) {
	_ = src[:len(dst)/2]
	k.widen[f](dst, src)
}

// FMAPeak runs about n multiply-adds on registers alone and returns how many floating-point
// operations it did: the machine's peak, divided by the time it took.
func (k *Kernels) FMAPeak(n int) int64 {
	rounds := max(1, 2*n/k.peakFLOPs)
	k.peak(rounds)
	return int64(rounds) * int64(k.peakFLOPs)
}
