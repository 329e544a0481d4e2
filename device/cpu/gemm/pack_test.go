package gemm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestPackHalves unpacks operands in 16 bits that have several blocks of rows and groups of strips.
func TestPackHalves(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 8))
	for name, e := range engines(t) {
		for _, size := range [][2]int{{1, 1}, {5, 64}, {wideRows + 1, (wideStrips+1)*width + 3}, {2*wideRows*wideStrips + 7, 2*wideStrips*width + 5}} {
			k, n := size[0], size[1]
			for _, trans := range []bool{false, true} {
				b := Matrix{Data: make([]float32, (k+3)*(n+3)), Stride: n + 3, Trans: trans}
				if trans {
					b.Stride = k + 3
				}
				for i := range b.Data {
					b.Data[i] = rng.Float32() - .5
				}
				for f, narrow := range map[simd.Format]func(float32) float32{
					simd.F16:  func(x float32) float32 { return simd.FromF16(simd.ToF16(x)) },
					simd.BF16: func(x float32) float32 { return simd.FromBF16(simd.ToBF16(x)) },
				} {
					workers := 1 + rng.IntN(3)
					packed := make([]float32, e.PackedLen(f, k, n))
					for w := range workers {
						e.Pack(packed, f, b, k, n, w, workers, NewScratch(0))
					}
					unpacks(t, fmt.Sprintf("%s: %d×%d as %v, transposed %v, %d workers", name, k, n, f, trans, workers), e, packed, f, b, k, n, narrow)
				}
			}
		}
	}
}

// unpacks checks that packed holds b, a k×n operand, narrowed, and zeros beyond its last column.
func unpacks(t *testing.T, name string, e *Engine, packed []float32, f simd.Format, b Matrix, k, n int, narrow func(float32) float32) {
	t.Helper()
	strip := make([]float32, k*width)
	for first := 0; first < n; first += width {
		e.k.Widen(strip, Columns(packed, f, k, first), f)
		for i := range k {
			for j := range width {
				want := float32(0)
				switch {
				case first+j >= n:
				case b.Trans:
					want = narrow(b.Data[(first+j)*b.Stride+i])
				default:
					want = narrow(b.Data[i*b.Stride+first+j])
				}
				if got := strip[i*width+j]; got != want {
					t.Fatalf("%s: [%d,%d] = %v, want %v", name, i, first+j, got, want)
				}
			}
		}
	}
}
