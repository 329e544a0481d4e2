package gemm

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"rnnbench/device/cpu/simd"
)

func minOf(n int, f func()) float64 {
	var ts []float64
	for range n {
		s := time.Now()
		f()
		ts = append(ts, time.Since(s).Seconds())
	}
	return slices.Min(ts)
}

func TestTune(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for l := simd.Detect(); l >= 1; l-- {
		k, _ := simd.For(l)
		for _, sh := range [][3]int{{12, 512, 512}, {16, 512, 2048}, {24, 512, 2048}, {32, 512, 2048}, {64, 512, 2048}, {16, 500, 2000}, {32, 500, 2000}, {64, 500, 2000}, {64, 1024, 1024}, {64, 1024, 4096}, {128, 1024, 1024}, {128, 1000, 1000}} {
			p := &Product{M: sh[0], N: sh[1], K: sh[2], LdC: sh[1], C: make([]float32, sh[0]*sh[1]),
				A: operand(rng, sh[0], sh[2], false, 0)}
			f := 2 * float64(sh[0]*sh[1]*sh[2]) / 1e9
			fmt.Print(l, sh)
			for _, trans := range []bool{false} {
				p.B = operand(rng, sh[2], sh[1], trans, 0)
				for _, lim := range []int{0, 128, 256, 512, 1024} {
					e := New(k, DetectL2())
					if lim > 0 {
						e.depth = lim
					}
					dotRows, inPlaceRows = lim, lim
					s := NewScratch(e.ScratchLen(p, 1))
					tp := minOf(400, func() { e.Run(p, 0, 1, s) })
					fmt.Printf(" lim %v: %.1f GF;", lim, f/tp)
				}
			}
			fmt.Println()
		}
	}
}
