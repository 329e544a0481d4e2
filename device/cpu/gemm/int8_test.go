package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd"
)

// roundedI8 rounds values, so many apart, to 8-bit integers times their scale.
func roundedI8(values []float32, from, step, n int) (integers []int, scale float32) {
	most := float32(0)
	for i := range n {
		most = max(most, float32(math.Abs(float64(values[from+i*step]))))
	}
	for i := range n {
		integers = append(integers, int(math.RoundToEven(float64(values[from+i*step]*(127/most)))))
	}
	return integers, most / 127
}

// TestProductsOfI8: whatever the shares of workers, a product has the sums of rounded rows and columns.
func TestProductsOfI8(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	for l := simd.Generic; l <= simd.Detect(); l++ {
		k, err := simd.For(l)
		if err != nil {
			t.Fatal(err)
		}
		e := New(k, 0)
		for _, size := range [][3]int{{1, 1, 1}, {1, 17, 5}, {3, 100, 70}, {2, 64, 128}, {7, 33, 257}, {1, 200, 31}} {
			for workers := 1; workers <= 3; workers++ {
				m, n, depth := size[0], size[1], size[2]
				p := &Product{M: m, N: n, K: depth, LdC: n + 3, Format: simd.I8, Accumulate: workers == 2, A: Matrix{Stride: depth + 2}, B: Matrix{Stride: depth, Trans: true}}
				p.A.Data, p.B.Data, p.C = randomFloats(rng, m*p.A.Stride), randomFloats(rng, n*depth), randomFloats(rng, m*p.LdC)
				for j := range n { // columns of all sizes
					for i := range depth {
						p.B.Data[j*depth+i] *= float32(int(1) << (j % 7))
					}
				}
				old := slices.Clone(p.C)
				p.Packed = make([]float32, e.PackedLen(simd.I8, depth, n))
				for w := range workers {
					e.Pack(p.Packed, simd.I8, p.B, depth, n, w, workers, NewScratch(0))
				}
				for w := range workers {
					e.Run(p, w, workers, NewScratch(e.ScratchLen(p, workers)))
				}
				checkI8(t, p, old)
			}
		}
	}
}

// checkI8 compares C with what it must be, if it was old before.
func checkI8(t *testing.T, p *Product, old []float32) {
	t.Helper()
	for i := range p.M {
		a, scale := roundedI8(p.A.Data, i*p.A.Stride, 1, p.K)
		for j := range p.LdC {
			got, want := p.C[i*p.LdC+j], old[i*p.LdC+j]
			if j < p.N {
				b, of := roundedI8(p.B.Data, j*p.K, 1, p.K)
				sum := 0
				for k := range a {
					sum += a[k] * b[k]
				}
				y := float32(float32(sum) * float32(scale*of))
				if p.Accumulate {
					want += y
				} else {
					want = y
				}
			}
			if got != want {
				t.Fatalf("%d×%d×%d: C[%d,%d] is %v, want %v", p.M, p.N, p.K, i, j, got, want)
			}
		}
	}
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(rng.NormFloat64())
	}
	return out
}
