package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestAgainTakesRoundedRows: a product with Again does not read the rows of A once more.
func TestAgainTakesRoundedRows(t *testing.T) {
	for name, e := range engines(t) {
		if !e.k.Rounds() || !e.always || e.depth < depth { // small blocks are rounded again
			continue
		}
		rng := rand.New(rand.NewPCG(1, 2))
		p := newProblem(rng, 19, 50, 34, false, false, false, 0)
		q := newProblemOf(rng, p.A, 19, 33, 34, true, true, 0)
		p.pack(e, simd.BF16, 1)
		q.pack(e, simd.BF16, 1)
		s := NewScratch(max(e.ScratchLen(&p.Product, 1), e.ScratchLen(&q.Product, 1)))
		p.rounds, q.rounds, q.Again = true, true, true
		e.Run(&p.Product, 0, 1, s)
		for i := range p.A.Data {
			p.A.Data[i] = float32(math.NaN())
		}
		e.Run(&q.Product, 0, 1, s)
		p.check(t, name)
		q.check(t, name+", again")
	}
}

// TestStepsCoverK: the steps and the rest cover all words. A step has at most sixteen words, and
// the number of steps is at most a quarter more than the least.
func TestStepsCoverK(t *testing.T) {
	for words := 1; words < 700; words++ {
		steps, each := stepsOf(words)
		rest := restOf(words)
		if each < 1 || each > 16 || rest < 0 || rest > 15 || steps*each+rest != words || rest == 0 && 4*steps > 5*ceil(words, 16) {
			t.Errorf("%d words: %d steps of %d and %d", words, steps, each, rest)
		}
	}
}

// TestNarrowProductsAreNotRounded: pairs need enough multiply-adds for each rounded row or, where nothing was packed
// ahead, for each k.
func TestNarrowProductsAreNotRounded(t *testing.T) {
	e := New(simd.Model(simd.AVX512BF16), 1<<20)
	for _, c := range []struct {
		m, n, k int
		packed  bool
		rounded bool
	}{{9000, 25, 25, true, false}, {9000, 64, 16, true, false}, {9000, 48, 48, true, true}, {9000, 16, 512, true, true},
		{25, 25, 9000, false, false}, {64, 16, 9000, false, false}, {48, 48, 9000, false, true}, {128, 32, 9000, false, true}} {
		p := &Product{M: c.m, N: c.n, K: c.k, Format: simd.BF16}
		if c.packed {
			p.Packed = []float32{}
		}
		if ok := (rounder{e}).rounds(p); ok != c.rounded {
			t.Errorf("%+v: rounded is %v", c, ok)
		}
	}
	p := &Product{M: 25, N: 16, K: 9000, Format: simd.BF16, Second: &Product{N: 48}}
	if !(rounder{e}).rounds(p) {
		t.Error("two products beside each other are not rounded, though they share rounded rows")
	}
}

// TestSmallProductsAreWidened: a product is not rounded if a call of the unit costs more than it
// saves. It then needs no more scratch than a larger product.
func TestSmallProductsAreWidened(t *testing.T) {
	e := New(simd.Model(simd.AMX), 1<<20)
	for _, c := range []struct {
		m, n, k int
		tiles   bool
	}{{1, 24, 24, false}, {2, 34, 34, false}, {4, 64, 64, true}, {16, 512, 512, true}, {40, 34, 34, true}} {
		p := &Product{M: c.m, N: c.n, K: c.k, Packed: []float32{}, Format: simd.BF16}
		if _, ok := Rounds(e, p); ok != c.tiles {
			t.Errorf("%+v: rounded is %v", c, ok)
		}
	}
	for _, m := range []int{1, 17, 40, 700} {
		for k := 2; k < 200; k += 31 {
			all := e.ScratchLen(&Product{M: m, N: 512, K: k, Packed: []float32{}, Format: simd.BF16}, 1)
			for n := 1; n < 512; n += 13 {
				if part := e.ScratchLen(&Product{M: m, N: n, K: k, Packed: []float32{}, Format: simd.BF16}, 1); part > all {
					t.Errorf("%d rows, k of %d: %d columns take %d floats, 512 take %d", m, k, n, part, all)
				}
			}
		}
	}
}
