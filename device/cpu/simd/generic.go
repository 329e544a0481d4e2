package simd

import "math"

func newGeneric() *Kernels {
	k := &Kernels{
		Functions: Functions{
			add:          addGeneric,
			sub:          subGeneric,
			mul:          mulGeneric,
			div:          divGeneric,
			oneMinus:     oneMinusGeneric,
			relu:         reluGeneric,
			sigmoid:      sigmoidGeneric,
			tanh:         tanhGeneric,
			sigmoidGrad:  sigmoidGradGeneric,
			exp:          expGeneric,
			softplus:     softplusGeneric,
			sqrt:         sqrtGeneric,
			softplusGrad: softplusGradGeneric,
			sqrtGrad:     sqrtGradGeneric,
			tanhGrad:     tanhGradGeneric,
			reluGrad:     reluGradGeneric,
			scale:        scaleGeneric,
			expSum:       expSumGeneric,
			sum:          sumGeneric,
			most:         mostGeneric,
		},
		Steps: stepsGeneric(),
		Products: Products{
			maxRows:    4,
			maxDotRows: 2,
			peak:       peakGeneric,
			peakFLOPs:  2 * 8,

			maxI8Strips: 1,
			mostBits:    mostBitsGeneric,
			quantize:    quantizeGeneric,
		},
		Moves: Moves{
			stream:        func(dst, src []float32) { copy(dst, src) },
			pack1:         func(dst, src []float32, strip, stride, n int) { packGeneric(dst, src, strip, stride, n, 1) },
			pack4:         func(dst, src []float32, strip, stride, n int) { packGeneric(dst, src, strip, stride, n, 4) },
			transposeRows: 0,
			narrow:        [formats]func(dst, src []float32){F16: narrowF16Generic, BF16: narrowBF16Generic},
			widen:         [formats]func(dst, src []float32){F16: widenF16Generic, BF16: widenBF16Generic},
		},
	}
	for m := 1; m <= k.maxRows; m++ {
		k.maxStrips[m] = 1
		k.tiles[F32][m][1] = tileGeneric
		k.tiles[F16][m][1] = tileHalvesGeneric
		k.tiles[BF16][m][1] = tileHalvesGeneric
	}
	k.tiles[I8][1][1] = tileI8Generic
	for m := 1; m <= k.maxDotRows; m++ {
		k.dots[m][1] = dotGeneric
		k.dots[m][DotCols] = dotGeneric
	}
	return k
}

func addGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func subGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}

func divGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] / b[i]
	}
}

func mulGeneric(dst, a, b []float32) {
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func scaleGeneric(dst, a []float32, s float32) {
	for i := range dst {
		dst[i] = s * a[i]
	}
}

func oneMinusGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = 1 - a[i]
	}
}

func reluGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = ReLU(a[i])
	}
}

func sigmoidGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = Sigmoid(a[i])
	}
}

func tanhGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = Tanh(a[i])
	}
}

func sigmoidGradGeneric(dst, dy, y []float32) {
	for i := range dst {
		dst[i] = SigmoidGrad(dy[i], y[i])
	}
}

func tanhGradGeneric(dst, dy, y []float32) {
	for i := range dst {
		dst[i] = TanhGrad(dy[i], y[i])
	}
}

func reluGradGeneric(dst, dy, y []float32) {
	for i := range dst {
		dst[i] = ReLUGrad(dy[i], y[i])
	}
}

func expGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = Exp(a[i])
	}
}

func softplusGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = Softplus(a[i])
	}
}

func sqrtGeneric(dst, a []float32) {
	for i := range dst {
		dst[i] = Sqrt(a[i])
	}
}

func softplusGradGeneric(dst, dy, y []float32) {
	for i := range dst {
		dst[i] = SoftplusGrad(dy[i], y[i])
	}
}

func sqrtGradGeneric(dst, dy, y []float32) {
	for i := range dst {
		dst[i] = SqrtGrad(dy[i], y[i])
	}
}

func expSumGeneric(dst, a []float32, s float32) (sum float32) {
	for i := range dst {
		dst[i] = Exp(a[i] - s)
		sum += dst[i]
	}
	return sum
}

func sumGeneric(a []float32) (sum float32) {
	for _, v := range a {
		sum += v
	}
	return sum
}

func mostGeneric(a []float32) float32 {
	most := float32(math.Inf(-1))
	for _, v := range a {
		if v > most {
			most = v
		}
	}
	return most
}

// The functions of one element, which the point-wise kernels apply.

// Exp returns exp(x).
func Exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// Sigmoid returns 1 / (1 + exp(-x)).
func Sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// Tanh returns tanh(x).
func Tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }

// ReLU returns x, or 0 if x < 0.
func ReLU(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

// SigmoidGrad returns dy * y * (1 - y).
func SigmoidGrad(dy, y float32) float32 { return dy * y * (1 - y) }

// TanhGrad returns dy * (1 - y*y).
func TanhGrad(dy, y float32) float32 { return dy * (1 - y*y) }

// ReLUGrad returns dy, or 0 unless y > 0.
func ReLUGrad(dy, y float32) float32 {
	if y > 0 {
		return dy
	}
	return 0
}

// Softplus returns log(1 + exp(x)).
func Softplus(x float32) float32 {
	v := float64(x)
	return float32(max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
}

// Sqrt returns √x, or 0 if x < 0.
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(ReLU(x)))) }

// SoftplusGrad returns dy * (1 - exp(-y)).
func SoftplusGrad(dy, y float32) float32 { return dy * float32(-math.Expm1(-float64(y))) }

// SqrtGrad returns dy / max(2*y, 0.001).
func SqrtGrad(dy, y float32) float32 { return dy / max(2*y, 0.001) }

func packGeneric(dst, src []float32, strip, stride, k, strips int) {
	for i := range k {
		for s := range strips {
			copy(dst[s*strip+i*StripWidth:][:StripWidth], src[i*stride+s*StripWidth:])
		}
	}
}

// transposeGeneric sets rows i0 … i1-1 and columns j0 … j1-1 of dst to the transpose of src.
func transposeGeneric(dst, src []float32, dstStride, srcStride, i0, i1, j0, j1 int) {
	for i := i0; i < i1; i++ {
		for j := j0; j < j1; j++ {
			dst[i*dstStride+j] = src[j*srcStride+i]
		}
	}
}

// tileGeneric multiplies two rows by four columns at a time, whose sums fit into sixteen registers.
func tileGeneric(t *Tile) {
	for m := 0; m < t.Rows; m += 2 {
		two := m+1 < t.Rows
		a0 := t.A[m*t.ARow:]
		a1 := a0
		if two {
			a1 = t.A[(m+1)*t.ARow:]
		}
		for s := range t.Strips {
			w := StripWidth
			if s == t.Strips-1 {
				w = t.Last
			}
			for j := 0; j < w; j += 4 {
				b := t.B[s*t.BStrip+j:]
				var s00, s01, s02, s03, s10, s11, s12, s13 float32
				for k := range t.K {
					x0, x1 := a0[k*t.ACol], a1[k*t.ACol]
					y := (*[4]float32)(b[k*t.BStep:])
					s00 += x0 * y[0]
					s01 += x0 * y[1]
					s02 += x0 * y[2]
					s03 += x0 * y[3]
					s10 += x1 * y[0]
					s11 += x1 * y[1]
					s12 += x1 * y[2]
					s13 += x1 * y[3]
				}
				n := min(4, w-j)
				put(t.C[m*t.CRow+s*StripWidth+j:][:n], [4]float32{s00, s01, s02, s03}, t.Accumulate)
				if two {
					put(t.C[(m+1)*t.CRow+s*StripWidth+j:][:n], [4]float32{s10, s11, s12, s13}, t.Accumulate)
				}
			}
		}
	}
}

func put(c []float32, sums [4]float32, add bool) {
	for i := range c {
		if add {
			c[i] += sums[i]
		} else {
			c[i] = sums[i]
		}
	}
}

func dotGeneric(t *Dot) {
	for m := range t.Rows {
		a := t.A[m*t.ARow:][:t.K]
		for n := range t.Cols {
			sum := sumOfProducts(a, t.B[n*t.BRow:][:t.K])
			if t.Accumulate {
				sum += t.C[m*t.CRow+n]
			}
			t.C[m*t.CRow+n] = sum
		}
	}
}

// sumOfProducts keeps four sums, so that additions overlap.
func sumOfProducts(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		a, b = a[4:], b[4:]
	}
	for i, v := range a {
		s0 += v * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func peakGeneric(n int) {
	var s [8]float32
	x := float32(n) * 0
	for range n {
		s[0] += s[0] * x
		s[1] += s[1] * x
		s[2] += s[2] * x
		s[3] += s[3] * x
		s[4] += s[4] * x
		s[5] += s[5] * x
		s[6] += s[6] * x
		s[7] += s[7] * x
	}
	if s[0]+s[1]+s[2]+s[3]+s[4]+s[5]+s[6]+s[7] != 0 {
		panic("simd: zero is not zero") // uses the sums, so that they are computed
	}
}
