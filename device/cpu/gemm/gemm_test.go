package gemm

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/amx"
)

const guard = float32(-98765)

// A problem is a product with its guards and its expected result.
type problem struct {
	Product
	all  []float32 // C with the memory around it
	from int       // where C starts in all
	old  []float32
	want []float64
	size []float64 // sums of magnitudes

	near   []float64 // expected values if A is rounded to BF16
	last   []float64 // by how much more if the last k of A is not rounded
	rounds bool      // the last run rounded it

	oldSums            []float32 // values that Sums are added to
	wantSums, sizeSums []float64
}

// operand returns a rows×cols operand in a matrix whose unused columns are NaN.
func operand(rng *rand.Rand, rows, cols int, trans bool, gap int) Matrix {
	if trans {
		rows, cols = cols, rows
	}
	m := Matrix{Stride: cols + gap, Trans: trans, Data: make([]float32, rows*(cols+gap))}
	for i := range m.Data {
		m.Data[i] = float32(math.NaN())
		if i%m.Stride < cols {
			m.Data[i] = float32(rng.NormFloat64())
		}
	}
	m.Data = m.Data[: (rows-1)*m.Stride+cols : (rows-1)*m.Stride+cols]
	return m
}

func (m Matrix) at(i, j int) float64 {
	if m.Trans {
		i, j = j, i
	}
	return float64(m.Data[i*m.Stride+j])
}

func newProblem(rng *rand.Rand, m, n, k int, transA, transB, accumulate bool, gap int) *problem {
	p := newProblemOf(rng, operand(rng, m, k, transA, gap), m, n, k, transB, accumulate, gap)
	if transA {
		for i := range m {
			p.oldSums = append(p.oldSums, float32(rng.NormFloat64()))
			want := 0.0
			if accumulate {
				want = float64(p.oldSums[i])
			}
			size := math.Abs(want)
			for l := range k {
				want += p.A.at(i, l)
				size += math.Abs(p.A.at(i, l))
			}
			p.wantSums, p.sizeSums = append(p.wantSums, want), append(p.sizeSums, size)
		}
		p.Sums = make([]float32, m)
	}
	return p
}

// newProblemOf returns a problem without sums whose first operand is a.
func newProblemOf(rng *rand.Rand, a Matrix, m, n, k int, transB, accumulate bool, gap int) *problem {
	p := &problem{Product: Product{
		M: m, N: n, K: k, LdC: n + gap, Accumulate: accumulate,
		A: a, B: operand(rng, k, n, transB, gap),
	}}
	for i, v := range p.B.Data { // every format can hold B
		p.B.Data[i] = float32(math.Round(float64(v)*32) / 32)
	}
	p.from = 64
	p.all = make([]float32, 64+m*p.LdC+64)
	for i := range p.all {
		p.all[i] = guard
	}
	p.C = p.all[p.from:][:(m-1)*p.LdC+n]
	for i := range p.C {
		if i%p.LdC < n {
			p.C[i] = float32(rng.NormFloat64())
			if !accumulate && rng.IntN(4) == 0 {
				p.C[i] = float32(math.NaN()) // must be overwritten
			}
		}
	}
	p.old = slices.Clone(p.all)
	p.expect()
	return p
}

// expect computes the expected result.
func (p *problem) expect() {
	m, n, k := p.M, p.N, p.K
	p.want, p.near, p.size, p.last = make([]float64, m*n), make([]float64, m*n), make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			var sum, near, size, last float64
			if p.Accumulate {
				sum = float64(p.old[p.from+i*p.LdC+j])
				near, size = sum, math.Abs(sum)
			}
			for l := range k {
				x := p.A.at(i, l)
				v := x * p.B.at(l, j)
				sum += v
				size += math.Abs(v)
				half := float64(simd.FromBF16(simd.ToBF16(float32(x))))
				near += half * p.B.at(l, j)
				if l == k-1 {
					last = (x - half) * p.B.at(l, j)
				}
			}
			p.want[i*n+j], p.near[i*n+j], p.size[i*n+j], p.last[i*n+j] = sum, near, size, last
		}
	}
}

// check compares C with the expected result. The error of k products and sums is 2⁻²⁴ each, and if
// A is rounded, that of two sums more for each step of tiles.
func (p *problem) check(t *testing.T, what string) {
	t.Helper()
	for i, v := range p.all {
		row, col := (i-p.from)/p.LdC, (i-p.from)%p.LdC
		if i < p.from || row >= p.M || col >= p.N {
			if v != guard {
				t.Fatalf("%s: wrote outside of C, at %d", what, i-p.from)
			}
			continue
		}
		want, size, roundings := p.want[row*p.N+col], p.size[row*p.N+col], p.K+2
		if p.rounds {
			want, roundings = p.near[row*p.N+col], p.K+2+2*ceil(p.K, amx.StepK)
			if p.Packed != nil && p.K%2 == 1 {
				want += p.last[row*p.N+col]
			}
		}
		if d := math.Abs(float64(v) - want); !(d <= 0x1p-24*float64(roundings)*size) {
			t.Fatalf("%s: C[%d,%d] = %v, want %v", what, row, col, v, want)
		}
	}
	for i, v := range p.Sums {
		want, size := p.wantSums[i], p.sizeSums[i]
		if d := math.Abs(float64(v) - want); !(d <= 0x1p-24*float64(p.K+2)*size) {
			t.Fatalf("%s: sum %d of A's rows is %v, want %v", what, i, v, want)
		}
	}
}

func (p *problem) String() string {
	return fmt.Sprintf("%d×%d×%d transposed %v %v accumulate %v packed %v as %v", p.M, p.N, p.K, p.A.Trans, p.B.Trans, p.Accumulate, p.Packed != nil, p.Format)
}

// run multiplies with all workers at the same time, or one after another.
func (p *problem) run(e *Engine, workers int, together bool) {
	copy(p.all, p.old)
	copy(p.Sums, p.oldSums)
	p.rounds = rounder{e}.rounds(&p.Product)
	n := e.ScratchLen(&p.Product, workers)
	var wg sync.WaitGroup
	for w := range workers {
		work := func() { e.Run(&p.Product, w, workers, newNaNScratch(n)) }
		if together {
			wg.Go(work)
		} else {
			work()
		}
	}
	wg.Wait()
}

// runPieces multiplies piece by piece, the last one first.
func (p *problem) runPieces(e *Engine, workers int) {
	copy(p.all, p.old)
	copy(p.Sums, p.oldSums)
	p.Backward = workers == 2
	p.rounds = rounder{e}.rounds(&p.Product)
	n := e.Pieces(&p.Product, workers)
	for i := n - 1; i >= 0; i-- {
		e.RunPiece(&p.Product, i, n, newNaNScratch(e.PieceScratchLen(&p.Product)))
	}
}

// newNaNScratch returns a scratch filled with NaN, so that reading unwritten memory shows.
func newNaNScratch(n int) *Scratch {
	s := NewScratch(n)
	for i := range s.buf {
		s.buf[i] = float32(math.NaN())
	}
	return s
}

func (p *problem) pack(e *Engine, f simd.Format, workers int) {
	p.Format = f
	p.Packed = make([]float32, e.PackedLen(f, p.K, p.N))
	for i := range p.Packed {
		p.Packed[i] = float32(math.NaN())
	}
	for w := range workers {
		e.Pack(p.Packed, f, p.B, p.K, p.N, w, workers, newNaNScratch(0))
	}
}

// engines returns engines of every level, with caches of usual size, and with caches so small that
// every loop over blocks has several rounds. Models stand for levels that round and that this
// machine lacks.
func engines(t testing.TB) map[string]*Engine {
	t.Helper()
	es := map[string]*Engine{}
	add := func(name string, k *simd.Kernels) {
		es[name] = New(k, 0)
		if k.Rounds() {
			es[name].always = true
			es[name+"/some"] = New(k, 0)
		}
		small := New(k, 4<<10)
		small.always = true
		small.depth = 9
		es[name+"/small"] = small
	}
	for l := simd.Generic; l <= simd.Detect(); l++ {
		k, err := simd.For(l)
		if err != nil {
			t.Fatal(err)
		}
		add(l.String(), k)
	}
	add("model of pairs", simd.Model(simd.AVX512BF16))
	add("model of tiles", simd.Model(simd.AMX))
	return es
}

// all runs a product in every way: packed or not, with one to three workers, at the same time or in
// turn.
func (p *problem) allWays(t *testing.T, e *Engine) {
	t.Helper()
	formats := []simd.Format{simd.F32, simd.F16, simd.BF16}
	if e.k.Rounds() { // these differ from other levels in rounding alone
		formats = formats[2:]
	}
	p.Backward = false
	for workers := 1; workers <= 3; workers++ {
		p.Packed, p.Format = nil, formats[0]
		p.run(e, workers, workers == 2)
		p.check(t, fmt.Sprintf("%v, %d workers", p, workers))
		for _, f := range formats {
			p.pack(e, f, workers)
			p.run(e, workers, workers == 2)
			p.check(t, fmt.Sprintf("%v, %d workers", p, workers))
			if workers < 3 {
				p.runPieces(e, workers)
				p.check(t, fmt.Sprintf("%v, in pieces for %d workers", p, workers))
			}
		}
	}
}

func TestProductsAreRight(t *testing.T) {
	small := []int{1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 20}
	rng := rand.New(rand.NewPCG(1, 2))
	var all []*problem
	add := func(m, n, k int) {
		form := len(all) + 1
		all = append(all, newProblem(rng, m, n, k, form&1 != 0, form&2 != 0, form&4 != 0, form%3))
	}
	for _, m := range small {
		for _, n := range small {
			for _, k := range small {
				if !testing.Short() || (m+n+k)%3 == 0 {
					add(m, n, k)
				}
			}
		}
	}
	// Around the edges of strips and tiles, primes, and beyond blocks.
	for range 8 {
		for _, s := range [][3]int{
			{1, 48, 33}, {1, 129, 64}, {2, 49, 31}, {3, 127, 5}, {4, 97, 17}, {5, 81, 65}, {6, 64, 6}, {7, 113, 19}, {8, 49, 48},
			{9, 47, 16}, {12, 95, 3}, {15, 33, 100}, {17, 65, 33}, {25, 50, 29}, {33, 31, 37}, {64, 15, 9}, {65, 101, 10}, {265, 50, 6},
		} {
			add(s[0], s[1], s[2])
		}
	}
	onEngines(t, all)
}

// onEngines runs problems in every way on every engine.
func onEngines(t *testing.T, all []*problem) {
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) {
			for _, p := range all {
				p.allWays(t, e)
			}
		})
	}
}

// TestProductBesideEqualsItAlone: two products of the same rows give the same results together as
// alone.
func TestProductBesideEqualsItAlone(t *testing.T) {
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(9, 10))
			form := 0
			for _, s := range [][4]int{{1, 16, 1, 1}, {3, 16, 17, 20}, {8, 32, 5, 9}, {9, 16, 100, 31}, {40, 48, 33, 19}, {129, 16, 16, 40}, {65, 144, 130, 11}, {300, 64, 50, 30}} {
				for range 4 {
					form++
					m, k, accumulate := s[0], s[3], form&4 != 0
					p := newProblem(rng, m, s[1], k, true, form&1 != 0, accumulate, form%3)
					q := newProblemOf(rng, p.A, m, s[2], k, form&2 != 0, accumulate, form%2)
					p.Second = &q.Product
					if e.k.Rounds() {
						p.Format = simd.BF16
					}
					for workers := 1; workers <= 3; workers++ {
						copy(q.all, q.old)
						q.rounds = rounder{e}.rounds(&p.Product)
						p.run(e, workers, workers == 2)
						p.check(t, fmt.Sprintf("%v, %d workers, with %v beside", p, workers, q))
						q.check(t, fmt.Sprintf("%v, %d workers, beside %v", q, workers, p))
					}
				}
			}
		})
	}
}

// TestProductsBeyondBlocksAreRight multiplies sizes one larger than the blocks of usual caches.
func TestProductsBeyondBlocksAreRight(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var all []*problem
	for form := range 8 {
		for i, s := range [][3]int{{17, 33, depth + 1}, {257, 17, depth + 5}, {9, 513, depth}, {1, 50, 2*depth + 3}, {20, 50, packedDepths*depth/4 + 3}, {300, 40, 30}} {
			if (i+bits.OnesCount(uint(form)))%2 == 0 { // each pair of a size and two of the flags
				all = append(all, newProblem(rng, s[0], s[1], s[2], form&1 != 0, form&2 != 0, form&4 != 0, 1))
			}
		}
	}
	onEngines(t, all)
}

// TestRunsGiveTheSameBits: every run gives the same bits, and the packed strips of few rows belong
// to one worker.
func TestRunsGiveTheSameBits(t *testing.T) {
	for name, e := range engines(t) {
		rng := rand.New(rand.NewPCG(5, 6))
		for form := range 4 {
			p := newProblem(rng, 37, 101, 65, form&1 != 0, form&2 != 0, true, 0)
			for workers := 1; workers <= 4; workers++ {
				p.run(e, workers, false)
				first := slices.Clone(p.all)
				p.run(e, workers, true)
				if !slices.Equal(first, p.all) {
					t.Errorf("%s: %v, %d workers: two runs differ", name, p, workers)
				}
			}
		}
	}
}

// TestSharesTileTheResult: shares cover C exactly once. While M is small, their columns of packed
// weights do not depend on M.
func TestSharesTileTheResult(t *testing.T) {
	for name, e := range engines(t) {
		for workers := 1; workers <= 9; workers++ {
			for _, m := range []int{1, 3, 8, 9, 64, 200} {
				for _, n := range []int{1, 16, 17, 100, 2048} {
					for _, packed := range []bool{false, true} {
						p := &Product{M: m, N: n, K: 5}
						if packed {
							p.Packed = []float32{}
						}
						covered := make([]int, m*n)
						for w := range workers {
							m0, m1, n0, n1 := e.Share(p, w, workers)
							for i := m0; i < m1; i++ {
								for j := n0; j < n1; j++ {
									covered[i*n+j]++
								}
							}
							if packed && n == 2048 {
								one := *p
								one.M = 1
								if _, _, a, b := e.Share(&one, w, workers); a != n0 || b != n1 {
									t.Errorf("%s: M %d: worker %d of %d has columns %d–%d, with M 1 %d–%d", name, m, w, workers, n0, n1, a, b)
								}
							}
						}
						for i, c := range covered {
							if c != 1 {
								t.Fatalf("%s: %d×%d, %d workers: C[%d,%d] is computed %d times", name, m, n, workers, i/n, i%n, c)
							}
						}
					}
				}
			}
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	e := New(simd.Best(), 0)
	rng := rand.New(rand.NewPCG(7, 8))
	for form := range 8 {
		p := newProblem(rng, 1+form*5, 33, 20, form&1 != 0, form&2 != 0, false, 0)
		s := NewScratch(e.ScratchLen(&p.Product, 2))
		if n := testing.AllocsPerRun(20, func() { e.Run(&p.Product, 1, 2, s) }); n != 0 {
			t.Errorf("%v: %v allocations", p, n)
		}
	}
}

func FuzzRun(f *testing.F) {
	f.Add(uint64(1), 3, 50, 7, uint(0), 2)
	f.Add(uint64(2), 70, 17, 40, uint(7), 3)
	es := engines(f)
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k int, form uint, workers int) {
		size := func(v, most int) int { return 1 + int(uint(v)%uint(most)) }
		m, n, k, workers = size(m, 80), size(n, 150), size(k, 80), size(workers, 5)
		rng := rand.New(rand.NewPCG(seed, 0))
		p := newProblem(rng, m, n, k, form&1 != 0, form&2 != 0, form&4 != 0, int(form>>4&7))
		for name, e := range es {
			p.Packed = nil
			if form&8 != 0 {
				p.pack(e, simd.Format(rng.IntN(3)), workers)
			}
			p.run(e, workers, seed%2 == 0)
			p.check(t, fmt.Sprintf("%s: %v, %d workers", name, p, workers))
		}
	})
}
