package simd

// Kernels are the kernels of one level. They are safe for concurrent use. Tests measure every
// stated error bound.
type Kernels struct {
	Functions
	Steps
	Products
	Moves
	level Level
}

// Level returns the level that the kernels are written for.
func (k *Kernels) Level() Level { return k.level }

// Functions are the point-wise functions and the sums of one level.
//
// Operands must be at least as long as dst; otherwise the functions panic. dst may be one of the
// operands, but must not overlap one in part. Errors are stated in units in the last place of the
// correctly rounded result. They hold at every level, for all operands, also for denormal results.
// If an operand is NaN, so is the result.
type Functions struct {
	add, sub, mul, div              func(dst, a, b []float32)
	oneMinus, relu, sigmoid, tanh   func(dst, a []float32)
	exp, softplus, sqrt             func(dst, a []float32)
	sigmoidGrad, tanhGrad, reluGrad func(dst, dy, y []float32)
	softplusGrad, sqrtGrad          func(dst, dy, y []float32)
	scale                           func(dst, a []float32, s float32)
	expSum                          func(dst, a []float32, s float32) float32
	sum, most                       func(a []float32) float32
}

// Copy is dst[i] = a[i].
func (k *Functions) Copy(dst, a []float32) { copy(dst, a[:len(dst)]) }

// Add is dst[i] = a[i] + b[i].
func (k *Functions) Add(dst, a, b []float32) { k.add(dst, a[:len(dst)], b[:len(dst)]) }

// Sub is dst[i] = a[i] - b[i].
func (k *Functions) Sub(dst, a, b []float32) { k.sub(dst, a[:len(dst)], b[:len(dst)]) }

// Mul is dst[i] = a[i] * b[i].
func (k *Functions) Mul(dst, a, b []float32) { k.mul(dst, a[:len(dst)], b[:len(dst)]) }

// Div is dst[i] = a[i] / b[i].
func (k *Functions) Div(dst, a, b []float32) { k.div(dst, a[:len(dst)], b[:len(dst)]) }

// Accumulate is dst[i] += a[i].
func (k *Functions) Accumulate(dst, a []float32) { k.add(dst, dst, a[:len(dst)]) }

// SumRows adds so many rows of a, stride floats apart, to dst. If there are more than a few, it
// adds up partial sums in part, for as many columns at a time as part has. Rounding grows with the
// size of a sum, and in one long sum equal terms would all be rounded the same way.
func (k *Functions) SumRows(dst, a []float32, stride, rows int, part []float32) {
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
func (k *Functions) Scale(dst, a []float32, s float32) { k.scale(dst, a[:len(dst)], s) }

// OneMinus is dst[i] = 1 - a[i].
func (k *Functions) OneMinus(dst, a []float32) { k.oneMinus(dst, a[:len(dst)]) }

// ReLU is dst[i] = a[i], or 0 where a[i] < 0.
func (k *Functions) ReLU(dst, a []float32) { k.relu(dst, a[:len(dst)]) }

// Sigmoid is dst[i] = 1 / (1 + exp(-a[i])), within 2.5 ulp (2.42 measured over all relevant
// operands).
func (k *Functions) Sigmoid(dst, a []float32) { k.sigmoid(dst, a[:len(dst)]) }

// Tanh is dst[i] = tanh(a[i]), within 2.6 ulp (2.52 measured likewise), also near 0.
func (k *Functions) Tanh(dst, a []float32) { k.tanh(dst, a[:len(dst)]) }

// SigmoidGrad is dst[i] = dy[i] * y[i] * (1 - y[i]), for y = sigmoid(x).
func (k *Functions) SigmoidGrad(dst, dy, y []float32) {
	k.sigmoidGrad(dst, dy[:len(dst)], y[:len(dst)])
}

// TanhGrad is dst[i] = dy[i] * (1 - y[i]*y[i]), for y = tanh(x).
func (k *Functions) TanhGrad(dst, dy, y []float32) { k.tanhGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// ReLUGrad is dst[i] = dy[i], or 0 unless y[i] > 0.
func (k *Functions) ReLUGrad(dst, dy, y []float32) { k.reluGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// Exp is dst[i] = exp(a[i]), within 1 ulp.
func (k *Functions) Exp(dst, a []float32) { k.exp(dst, a[:len(dst)]) }

// Softplus is dst[i] = log(1 + exp(a[i])), within 3 ulp.
func (k *Functions) Softplus(dst, a []float32) { k.softplus(dst, a[:len(dst)]) }

// Sqrt is dst[i] = √a[i], or 0 where a[i] < 0.
func (k *Functions) Sqrt(dst, a []float32) { k.sqrt(dst, a[:len(dst)]) }

// SoftplusGrad is dst[i] = dy[i] * (1 - exp(-y[i])), for y = softplus(x) and so not negative, within 6 ulp.
func (k *Functions) SoftplusGrad(dst, dy, y []float32) {
	k.softplusGrad(dst, dy[:len(dst)], y[:len(dst)])
}

// SqrtGrad is dst[i] = dy[i] / max(2*y[i], 0.001), for y = √x; see cell.SqrtGrad.
func (k *Functions) SqrtGrad(dst, dy, y []float32) { k.sqrtGrad(dst, dy[:len(dst)], y[:len(dst)]) }

// Sum returns the sum of a. The order of addition depends on the level alone.
func (k *Functions) Sum(a []float32) float32 { return k.sum(a) }

// Max returns the largest element of a, -Inf if there is none, and any value if one is NaN.
func (k *Functions) Max(a []float32) float32 { return k.most(a) }

// ExpSum is dst[i] = exp(a[i] - s), within 1 ulp (0.92 measured), and returns the sum of dst. With s = Max(a), and dst then
// scaled by the inverse of the sum, it is softmax.
func (k *Functions) ExpSum(dst, a []float32, s float32) float32 {
	return k.expSum(dst, a[:len(dst)], s)
}
