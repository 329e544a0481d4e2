package fused

import (
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestInterpreterEqualsAssembly: the interpreter of a level computes the same bits as the assembly
// of a program.
func TestInterpreterEqualsAssembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		for _, p := range everyStep()[1:] {
			assembly, k := New(l, p.cell, p.pass), interpreter(l, p.p)
			if k.Assembled() || !assembly.Assembled() {
				t.Fatalf("%v %v: want assembly to compare with", l, p)
			}
			for _, n := range []int{1, 3, 7, 8, 9, 16, 31, 32, 33, 40, 63, 70, 256, 257, 600} {
				a, b := make([][]float32, len(k.Vectors())), make([][]float32, len(k.Vectors()))
				for i, r := range k.Vectors() {
					for range n {
						a[i] = append(a[i], p.draw(r, rng.NormFloat64()))
					}
					b[i] = append([]float32(nil), a[i]...)
				}
				assembly.Run(a, n)
				k.Run(b, n)
				for i, r := range k.Vectors() {
					for u := range n {
						if math.Float32bits(a[i][u]) != math.Float32bits(b[i][u]) {
							t.Fatalf("%v %v n %d: %v[%d] = %v, want %v", l, p, n, r, u, b[i][u], a[i][u])
						}
					}
				}
			}
		}
	}
}
