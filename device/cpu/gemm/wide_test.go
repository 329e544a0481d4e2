package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/simd"
)

// widen fills a matrix with values between 1e-6 and 1e4, evenly over their logarithm, of either
// sign. One in fifty is among the largest. With halves, BF16 can represent them.
func widen(rng *rand.Rand, m Matrix, halves bool) {
	for i, old := range m.Data {
		if old != old { // beyond the operand
			continue
		}
		v := math.Pow(10, -6+10*rng.Float64())
		if rng.IntN(50) == 0 {
			v = 1e4 * (1 - rng.Float64()/2)
		}
		m.Data[i] = float32(math.Copysign(v, float64(rng.IntN(2))-0.5))
		if halves {
			m.Data[i] = simd.FromBF16(simd.ToBF16(m.Data[i]))
		}
	}
}

// newWideProblem returns a problem with operands from widen.
func newWideProblem(rng *rand.Rand, m, n, k int, transA, transB, accumulate bool) *problem {
	p := newProblemOf(rng, operand(rng, m, k, transA, 1), m, n, k, transB, accumulate, 3)
	widen(rng, p.A, false)
	widen(rng, p.B, true)
	p.expect()
	return p
}

// TestWideDataIsRight: products in single precision and in BF16, also by tiles, keep the error
// bound of usual data if magnitudes differ by ten powers of ten. Their exponents have the range of
// fp32, so the error of each term is relative to it. FP16 has a smaller range: its packed weights
// end at 65504.
func TestWideDataIsRight(t *testing.T) {
	for name, e := range engines(t) {
		for i, size := range [][3]int{{1, 34, 34}, {19, 50, 67}, {40, 33, 128}, {64, 64, 301}} {
			if testing.Short() && i%2 > 0 {
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(i), 3))
			p := newWideProblem(rng, size[0], size[1], size[2], i%2 == 1, i%3 == 1, i%2 == 0)
			formats := []simd.Format{simd.F32, simd.BF16}
			if e.k.Rounds() {
				formats = formats[1:]
			}
			for _, f := range formats {
				for workers := 1; workers <= 2; workers++ {
					p.pack(e, f, workers)
					p.run(e, workers, false)
					p.check(t, fmt.Sprintf("%s: %v, wide data", name, p))
				}
			}
		}
	}
}
