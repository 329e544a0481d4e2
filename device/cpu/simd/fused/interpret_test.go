package fused

import (
	"fmt"
	"math"
	"math/rand/v2"
	"rnnbench/rnn/cell"
	"testing"
	"time"

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

// BenchmarkInterpreter times the assembly of programs and the interpreter in turns, at the best
// level, and reports how many times as fast the assembly is.
func BenchmarkInterpreter(b *testing.B) {
	l := simd.Detect().Base()
	rng := rand.New(rand.NewPCG(9, 10))
	for _, p := range everyStep()[1:] {
		assembly, k := New(l, p.cell, p.pass), interpreter(l, p.p)
		for _, n := range []int{16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("%v/%d", p, n), func(b *testing.B) {
				v := make([][]float32, len(k.Vectors()))
				for i, r := range k.Vectors() {
					for range n {
						v[i] = append(v[i], p.draw(r, rng.NormFloat64()))
					}
				}
				inTurns(b, func() { assembly.Run(v, n) }, func() { k.Run(v, n) })
			})
		}
	}
}

// BenchmarkLoopInterpreter does the same for loops, of 64 steps.
func BenchmarkLoopInterpreter(b *testing.B) {
	const steps = 64
	l := simd.Detect().Base()
	rng := rand.New(rand.NewPCG(11, 12))
	for _, p := range everyLoop() {
		assembly := NewLoop(l, p.cell, p.pass)
		k := &Loop{rows: interpreter(l, p.p), width: assembly.width}
		for _, n := range []int{16, 64, 256, 1024} {
			b.Run(fmt.Sprintf("%v/%d", p, n), func(b *testing.B) {
				v := make([]Vector, len(k.Vectors()))
				for i, r := range k.Vectors() {
					v[i] = Vector{Data: make([]float32, n*steps), Step: n}
					switch {
					case r.Kind.Broadcast(), r.Kind == cell.Prev, r.Kind == cell.DNext, r.Kind == cell.Factor:
						v[i].Step = 0
					}
					for j := range v[i].Data {
						v[i].Data[j] = p.draw(r, rng.NormFloat64())
					}
				}
				at := make([]uintptr, len(v))
				inTurns(b, func() { assembly.Run(v, at, n, 1, steps, false, false) }, func() { k.Run(v, at, n, 1, steps, false, false) })
			})
		}
	}
}

// inTurns reports how many times as fast the first is, by the least time of each in turns.
func inTurns(b *testing.B, first, second func()) {
	const turn = 100 * time.Microsecond
	least := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	calls := [2]int{}
	for i, f := range []func(){first, second} {
		for start := time.Now(); time.Since(start) < turn; calls[i]++ {
			f()
		}
	}
	for b.Loop() {
		for i, f := range []func(){first, second} {
			start := time.Now()
			for range calls[i] {
				f()
			}
			least[i] = min(least[i], time.Since(start)/time.Duration(calls[i]))
		}
	}
	b.ReportMetric(float64(least[1])/float64(least[0]), "times-as-fast")
	b.ReportMetric(float64(least[0]), "assembly-ns")
	b.ReportMetric(float64(least[1]), "interpreter-ns")
	b.ReportMetric(0, "ns/op")
}
