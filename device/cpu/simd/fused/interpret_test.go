package fused

import (
	"fmt"
	"math"
	"math/rand/v2"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
	"slices"
	"testing"
	"time"

	"rnnbench/device/cpu/simd"
)

// TestInterpreterEqualsAssembly: the interpreter of a level computes the same bits as the assembly
// of a program.
func TestInterpreterEqualsAssembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		for _, e := range catalog.Kernels() {
			p := named{e.Cell, e.Pass, e.Program}
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
				runOne(assembly, a, n)
				runOne(k, b, n)
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

// TestInterpretedLoopEqualsAssembly: the same for loops, whose rows have gaps.
func TestInterpretedLoopEqualsAssembly(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for l := simd.AVX2; l <= simd.Detect().Base(); l++ {
		for _, e := range catalog.Loops() {
			p := named{e.Cell, e.Pass, e.Program}
			assembly := NewLoop(l, p.cell, p.pass)
			k := &Loop{rows: interpreter(l, p.p)}
			if k.Assembled() || !assembly.Assembled() {
				t.Fatalf("%v %v: want assembly to compare with", l, p)
			}
			for _, n := range []int{1, 7, 8, 17, 33, 64, 300} {
				rows, steps, gap := 1+rng.IntN(3), 1+rng.IntN(4), rng.IntN(5)
				a, b := make([]Vector, len(k.Vectors())), make([]Vector, len(k.Vectors()))
				for i, r := range k.Vectors() {
					a[i] = Vector{From: rng.IntN(3), Row: n + gap, Step: n + gap}
					switch r.Kind {
					case cell.BX, cell.BR, cell.Peep:
						a[i].Row, a[i].Step = 0, 0
					case cell.Prev, cell.DNext, cell.Factor:
						a[i].Step = -(rows - 1) * a[i].Row
					}
					b[i] = a[i]
					for range (n+gap)*rows*steps + 3 {
						a[i].Data = append(a[i].Data, p.draw(r, rng.NormFloat64()))
					}
					b[i].Data = slices.Clone(a[i].Data)
				}
				at := make([]uintptr, len(a))
				assembly.Run(a, at, n, rows, steps, false)
				k.Run(b, at, n, rows, steps, false)
				for i, r := range k.Vectors() {
					for j := range a[i].Data {
						if x, y := a[i].Data[j], b[i].Data[j]; math.Float32bits(x) != math.Float32bits(y) {
							t.Fatalf("%v %v n %d rows %d steps %d: %v[%d] = %v, want %v", l, p, n, rows, steps, r, j, y, x)
						}
					}
				}
			}
		}
	}
}

// TestRowsOfKernelEqualRowsAlone: rows with gaps, among them vectors that all rows share, give the bits
// of each row by itself, and nothing between rows is written.
func TestRowsOfKernelEqualRowsAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		for _, p := range everyStep() {
			k := New(l, p.cell, p.pass)
			for _, n := range []int{1, 7, 16, 23, 33} {
				rows, gap := 1+rng.IntN(4), rng.IntN(5)
				a, b := make([]Vector, len(k.Vectors())), make([]Vector, len(k.Vectors()))
				for i, r := range k.Vectors() {
					a[i] = Vector{From: rng.IntN(3), Row: n + gap}
					if r.Kind.Broadcast() {
						a[i].Row = 0
					}
					for range (n+gap)*rows + 3 {
						a[i].Data = append(a[i].Data, p.draw(r, rng.NormFloat64()))
					}
					b[i] = a[i]
					b[i].Data = slices.Clone(a[i].Data)
				}
				at := make([]uintptr, len(a))
				k.Run(a, at, n, rows)
				for range rows {
					k.Run(b, at, n, 1)
					for i := range b {
						b[i].From += b[i].Row
					}
				}
				for i, r := range k.Vectors() {
					for j := range a[i].Data {
						if x, y := a[i].Data[j], b[i].Data[j]; math.Float32bits(x) != math.Float32bits(y) {
							t.Fatalf("%v %v n %d rows %d: %v[%d] = %v, want %v", l, p, n, rows, r, j, x, y)
						}
					}
				}
			}
		}
	}
}

// TestEmptyProgram: a cell without a program to compose steps has a loop that does nothing.
func TestEmptyProgram(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		(&Loop{rows: interpreter(l, nil)}).Run(nil, nil, 8, 2, 2, false)
		interpreter(l, nil).Run(nil, nil, 8, 2)
	}
}

// exact are operations that round once, and do not depend on the sign of a zero.
var exact = []cell.Op{cell.Zero, cell.Copy, cell.Neg, cell.OneMinus, cell.Add, cell.Sub, cell.Mul, cell.ReLU, cell.ReLUGrad, cell.Sqrt, cell.Const}

// randomProgram returns a program of so many instructions. It reads no temporary that it has not
// written. A few temporaries and vectors make values die early, late, or unread.
func randomProgram(rng *rand.Rand, length int) cell.Program {
	var p cell.Program
	known := []cell.Ref{{Kind: cell.X}, {Kind: cell.X, Index: 1}, {Kind: cell.BX}}
	temps, vectors := 1+rng.IntN(6), 1+rng.IntN(3)
	for range length {
		out := cell.Ref{Kind: cell.Temp, Index: rng.IntN(temps)}
		if rng.IntN(4) == 0 {
			out = cell.Ref{Kind: cell.Next, Index: rng.IntN(vectors)}
		}
		in := cell.Instr{Op: exact[rng.IntN(len(exact))], Out: out}
		if rng.IntN(2) == 0 { // groups of sums and of products
			in.Op = []cell.Op{cell.Add, cell.Mul}[rng.IntN(2)]
		}
		pick := func() cell.Ref { // often a recent value
			return known[max(rng.IntN(len(known)), rng.IntN(len(known)))]
		}
		if in.A, in.B = pick(), pick(); in.Op == cell.Const {
			in.Value = float32(rng.NormFloat64())
		}
		p = append(p, in)
		known = append(slices.DeleteFunc(known, func(r cell.Ref) bool { return r == out }), out)
	}
	return append(p, cell.Instr{Op: cell.Copy, Out: cell.Ref{Kind: cell.Next}, A: known[len(known)-1]})
}

// runs compares an interpretation of p at level l, in two parts, with one operation at a time.
func runs(t *testing.T, l simd.Level, p cell.Program, n int, rng *rand.Rand) {
	t.Helper()
	k := interpreter(l, p)
	got, want := map[cell.Ref][]float32{}, map[cell.Ref][]float32{}
	var first, second [][]float32
	cut := rng.IntN(n + 1)
	for _, r := range k.Vectors() {
		for range n {
			got[r] = append(got[r], float32(rng.NormFloat64()))
		}
		want[r] = slices.Clone(got[r])
		first, second = append(first, got[r][:cut]), append(second, got[r][cut:])
	}
	runOne(k, first, cut)
	runOne(k, second, n-cut)
	for u := range n {
		values := map[cell.Ref]float32{}
		value := func(r cell.Ref) float32 {
			if r.Kind == cell.Temp {
				return values[r]
			}
			return want[r][u]
		}
		for _, in := range p {
			var args [2]float64
			for i, r := range in.Args() {
				args[i] = float64(value(r))
			}
			out := float32(in.Eval(args[0], args[1])) // rounding twice changes nothing
			if in.Out.Kind == cell.Temp {
				values[in.Out] = out
			} else {
				want[in.Out][u] = out
			}
		}
	}
	for r := range want {
		for u, x := range want[r] {
			if y := got[r][u]; x != y && !(x != x && y != y) {
				t.Fatalf("%v n %d: %v[%d] = %v, want %v, of\n%s", l, n, r, u, y, x, catalog.Text(p))
			}
		}
	}
}

// TestInterpretedPrograms runs random programs.
func TestInterpretedPrograms(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		rng := rand.New(rand.NewPCG(15, 16))
		for range 2000 {
			runs(t, l, randomProgram(rng, 1+rng.IntN(30)), 1+rng.IntN(80), rng)
		}
		// Many temporaries make tiles short, and more than there is memory for are not translated.
		for _, temps := range []int{20, 60, 64, 70, 400} {
			var p cell.Program
			for i := range temps {
				p = append(p, cell.Instr{Op: cell.Add, Out: cell.Ref{Kind: cell.Temp, Index: i}, A: cell.Ref{Kind: cell.X}, B: cell.Ref{Kind: cell.BX}})
			}
			p = append(p, cell.Instr{Op: cell.Copy, Out: cell.Ref{Kind: cell.Next}, A: cell.Ref{Kind: cell.X}})
			for i := range temps {
				p = append(p, cell.Instr{Op: cell.Sub, Out: cell.Ref{Kind: cell.Next}, A: cell.Ref{Kind: cell.Temp, Index: i}, B: cell.Ref{Kind: cell.Next}})
			}
			runs(t, l, p, 301, rng)
		}
		var wide cell.Program // too many vectors
		for i := range 100 {
			wide = append(wide, cell.Instr{Op: cell.Neg, Out: cell.Ref{Kind: cell.Next, Index: i}, A: cell.Ref{Kind: cell.X, Index: i}})
		}
		runs(t, l, wide, 70, rng)
	}
}

func FuzzInterpreter(f *testing.F) {
	f.Add(uint64(1), 12, 33)
	f.Fuzz(func(t *testing.T, seed uint64, length, n int) {
		rng := rand.New(rand.NewPCG(seed, 0))
		p := randomProgram(rng, 1+int(uint(length)%60))
		for l := simd.Generic; l <= simd.Detect().Base(); l++ {
			runs(t, l, p, 1+int(uint(n)%600), rng)
		}
	})
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
				inTurns(b, func() { runOne(assembly, v, n) }, func() { runOne(k, v, n) })
			})
		}
	}
}

// BenchmarkLoopInterpreter does the same for loops, of 64 steps.
func BenchmarkLoopInterpreter(b *testing.B) {
	const steps = 64
	l := simd.Detect().Base()
	rng := rand.New(rand.NewPCG(11, 12))
	for _, e := range catalog.Loops() {
		p := named{e.Cell, e.Pass, e.Program}
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
				inTurns(b, func() { assembly.Run(v, at, n, 1, steps, false) }, func() { k.Run(v, at, n, 1, steps, false) })
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

// TestInterpretedRowsShareMemory: however many rows a scan has, its interpretation allocates as little as
// for one.
func TestInterpretedRowsShareMemory(t *testing.T) {
	k := &Loop{rows: interpreter(simd.Generic, catalog.OfScan(cell.SRU, Forward))}
	const units, most = 2, 1000
	v := make([]Vector, len(k.Vectors()))
	for i := range v {
		v[i] = Vector{Data: make([]float32, units*most), Row: units, Step: units}
	}
	at := make([]uintptr, len(v))
	allocated := func(steps int) float64 {
		return testing.AllocsPerRun(20, func() { k.Run(v, at, units, 1, steps, false) })
	}
	if one, many := allocated(1), allocated(most); many > one+most/100 { // the collector may empty the pool
		t.Errorf("%v allocations for a row, %v for %d rows", one, many, most)
	}
}
