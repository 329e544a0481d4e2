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
	fmt.Println("L2", DetectL2())
	rng := rand.New(rand.NewPCG(1, 1))
	for l := simd.Detect(); l >= 0; l-- {
		k, _ := simd.For(l)
		var fl int64
		peak := minOf(500, func() { fl = k.FMAPeak(1e6) })
		pk := float64(fl) / peak / 1e9
		fmt.Println(l, "peak", pk)
		for _, sh := range [][3]int{{1, 1024, 256}, {2, 1024, 256}, {3, 1024, 256}, {4, 1024, 256}, {5, 1024, 256}, {6, 1024, 256}, {7, 1024, 256}, {8, 1024, 256}, {9, 1024, 256}, {12, 1024, 256}, {16, 1024, 256}, {32, 1024, 256}, {64, 1024, 256}, {256, 512, 512}} {
			e := New(k, DetectL2())
			p := &Product{M: sh[0], N: sh[1], K: sh[2], LdC: sh[1], C: make([]float32, sh[0]*sh[1]),
				A: operand(rng, sh[0], sh[2], false, 0), B: operand(rng, sh[2], sh[1], true, 0)}
			p.Packed = make([]float32, e.PackedLen(sh[2], sh[1]))
			e.Pack(p.Packed, p.B, sh[2], sh[1], 0, 1)
			s := NewScratch(e.ScratchLen(p, 1))
			n := 1000
			if l == 0 {
				n = 30
			}
			tp := minOf(n, func() { e.Run(p, 0, 1, s) })
			p.Packed = nil
			s = NewScratch(e.ScratchLen(p, 1))
			tu := minOf(n, func() { e.Run(p, 0, 1, s) })
			p.B = operand(rng, sh[2], sh[1], false, 0)
			s = NewScratch(e.ScratchLen(p, 1))
			tn := minOf(n, func() { e.Run(p, 0, 1, s) })
			f := 2 * float64(sh[0]*sh[1]*sh[2]) / 1e9
			fmt.Printf("%v packed %.1f us %.1f GF %.0f%%; NT %.1f GF NN %.1f GF\n", sh, tp*1e6, f/tp, 100*f/tp/pk, f/tu, f/tn)
		}
	}
}
