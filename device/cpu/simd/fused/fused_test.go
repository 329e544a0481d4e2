package fused

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A named is one of a cell's programs.
type named struct {
	cell *cell.Cell
	pass Pass
	p    cell.Program
}

// draw returns a value of vector r for a random one. An exponential decays by a value that is saved
// as a sigmoid, and a negative one would overflow.
func (p named) draw(r cell.Ref, v float64) float32 {
	decays := func(in cell.Instr) bool { return in.Op == cell.Exp }
	switch {
	case r.Kind == cell.Saved && slices.ContainsFunc(p.p, decays):
		v = math.Abs(v)
	case r.Kind == cell.Prev || r.Kind == cell.Next:
		v = p.cell.Start(r.Index, v)
	}
	return float32(v)
}

func (p named) String() string { return fmt.Sprintf("%v/%v", p.cell, p.pass) }

// everyStep returns the program of everything and then those of all cells.
func everyStep() []named {
	all := []named{{everything(), Inference, everything().Inference}}
	for _, c := range cell.All() {
		for _, pass := range []Pass{Inference, Forward, Backward} {
			all = append(all, named{c, pass, catalog.OfStep(c, pass)})
		}
	}
	return all
}

// everything returns a cell without assembly whose program has each operation, of vectors and of a
// value just computed, on either side.
func everything() *cell.Cell {
	var p cell.Program
	x, r, t := cell.Ref{Kind: cell.X}, cell.Ref{Kind: cell.R}, cell.Ref{Kind: cell.Temp}
	for i, op := range cell.Ops() {
		for k, args := range [][2]cell.Ref{{x, r}, {t, r}, {r, t}} {
			p = append(p, cell.Instr{Op: cell.Copy, Out: t, A: x},
				cell.Instr{Op: op, Out: cell.Ref{Kind: cell.Next, Index: 3*i + k}, A: args[0], B: args[1], Value: number(op)})
		}
	}
	return &cell.Cell{Name: "every operation", Inference: p, Recurrence: &cell.Recurrence{Inference: p}}
}

// number is the value of Const.
func number(op cell.Op) float32 {
	if op == cell.Const {
		return -0.75
	}
	return 0
}

// runOne runs k over one row of n units.
func runOne(k *Kernel, v [][]float32, n int) {
	rows := make([]Vector, len(v))
	for i := range v {
		rows[i].Data = v[i]
	}
	k.Run(rows, make([]uintptr, len(v)), n, 1)
}

const guard = float32(-4321)

// compare compares p at level l with an evaluation in double precision. With shared, DPrev and
// DNext are the same memory.
func compare(t *testing.T, l simd.Level, p named, n int, rng *rand.Rand, scale float64, shared bool) {
	t.Helper()
	const margin = 20
	k := New(l, p.cell, p.pass)
	refs := k.Vectors()
	v := make([][]float32, len(refs))
	old := make([][]float32, len(refs))
	index := map[cell.Ref]int{}
	for i, r := range refs {
		index[r] = i
		mem := make([]float32, margin+n+margin+i%3)
		for j := range mem {
			mem[j] = guard
		}
		v[i] = mem[margin+i%3:][:n]
		for j := range v[i] {
			v[i][j] = p.draw(r, scale*rng.NormFloat64())
		}
		defer func() {
			t.Helper()
			for j, x := range mem {
				if (j < margin+i%3 || j >= margin+i%3+n) && x != guard {
					t.Fatalf("%v %v n %d: %v written outside", l, p, n, r)
				}
			}
		}()
	}
	if shared {
		for i, r := range refs {
			if j, ok := index[cell.Ref{Kind: cell.DNext, Index: r.Index}]; ok && r.Kind == cell.DPrev {
				v[i] = v[j]
			}
		}
	}
	for i := range v {
		old[i] = append([]float32(nil), v[i]...)
	}
	runOne(k, v, n)

	_, writes := p.p.Vectors()
	for u := range n {
		value := map[cell.Ref]*float64{}
		largest := 1.0
		at := func(r cell.Ref) *float64 {
			if value[r] == nil {
				value[r] = new(float64)
				if i, ok := index[r]; ok {
					*value[r] = float64(old[i][u])
				}
			}
			return value[r]
		}
		for _, in := range p.p {
			cell.Program{in}.Eval(at)
			for _, r := range append(in.Args(), in.Out) {
				largest = max(largest, math.Abs(*at(r)))
			}
		}
		// Each operation is within 2.5 ulp, and a product multiplies an error by its other factor.
		bound := 2.5 * 0x1p-23 * float64(len(p.p)) * largest * largest
		for _, r := range writes {
			got, want := float64(v[index[r]][u]), *at(r)
			if d := math.Abs(got - want); !(d <= bound) {
				t.Fatalf("%v %v n %d: %v[%d] = %v, want %v", l, p, n, r, u, got, want)
			}
		}
	}
}

// TestKernelComputesProgram compares kernels of every cell with their programs in double precision.
func TestKernelComputesProgram(t *testing.T) {
	for l := simd.Generic; l <= simd.Detect().Base(); l++ {
		t.Run(l.String(), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for _, p := range everyStep() {
				for n := range 70 {
					compare(t, l, p, n, rng, 1, n%2 == 1)
				}
				compare(t, l, p, 1000, rng, 3, false)
			}
		})
	}
}

// TestKernelRefusesShortVectors: short vectors cause a panic, not a write outside.
func TestKernelRefusesShortVectors(t *testing.T) {
	k := New(simd.Detect(), cell.LSTM, Inference)
	v := make([][]float32, len(k.Vectors()))
	for i := range v {
		v[i] = make([]float32, 8)
	}
	v[3] = v[3][:7:7]
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	runOne(k, v, 8)
}

func FuzzRun(f *testing.F) {
	f.Add(uint64(1), 5, 17, 0, true)
	f.Add(uint64(2), 9, 40, 5, false)
	f.Fuzz(func(t *testing.T, seed uint64, which, n, exponent int, shared bool) {
		ps := everyStep()
		p := ps[int(uint(which)%uint(len(ps)))]
		scale := math.Ldexp(1, exponent%24-16)
		for l := simd.Generic; l <= simd.Detect().Base(); l++ {
			compare(t, l, p, int(uint(n)%100), rand.New(rand.NewPCG(seed, 0)), scale, shared)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	const n = 1024
	for _, p := range everyStep()[1:] {
		for l := simd.Generic; l <= simd.Detect().Base(); l++ {
			b.Run(fmt.Sprintf("%v/%v", p, l), func(b *testing.B) {
				k := New(l, p.cell, p.pass)
				v := make([][]float32, len(k.Vectors()))
				rng := rand.New(rand.NewPCG(1, 1))
				for i := range v {
					v[i] = make([]float32, n)
					for j := range v[i] {
						v[i][j] = float32(rng.NormFloat64())
					}
				}
				for b.Loop() {
					runOne(k, v, n)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/unit")
			})
		}
	}
}
