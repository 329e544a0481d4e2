package gemm

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"rnnbench/device/cpu/simd"
)

// pool runs a function on workers bound to threads. They spin between calls, like the device's
// workers.
type pool struct {
	f     func(worker int)
	epoch atomic.Int64
	done  []padded
}

type padded struct {
	atomic.Int64
	_ [56]byte
}

// newPool starts the workers. To end them, run nil.
func newPool(workers int) *pool {
	p := &pool{done: make([]padded, workers)}
	for w := 1; w < workers; w++ {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for seen := int64(1); ; seen++ {
				for spin := 0; p.epoch.Load() < seen; spin++ {
					if spin > 1<<14 {
						runtime.Gosched()
					}
				}
				f := p.f
				if f != nil {
					f(w)
				}
				p.done[w].Store(seen)
				if f == nil {
					return
				}
			}
		}()
	}
	return p
}

func (p *pool) run(f func(worker int)) {
	p.f = f
	seen := p.epoch.Add(1)
	if f != nil {
		f(0)
	}
	for w := 1; w < len(p.done); w++ {
		for p.done[w].Load() < seen {
		}
	}
}

// sample appends the seconds of each of several calls of f.
func (p *pool) sample(times []float64, calls int, f func(worker int)) []float64 {
	for range calls {
		start := time.Now()
		p.run(f)
		times = append(times, time.Since(start).Seconds())
	}
	return times
}

// A peer is another program that multiplies matrices, named by $GEMM_PEER. It reads lines
// "M N K transposedA transposedB workers calls" and answers each with the seconds that each call took.
type peer struct {
	in  io.Writer
	out *bufio.Reader
}

func newPeer(b *testing.B) *peer {
	name := os.Getenv("GEMM_PEER")
	if name == "" {
		return nil
	}
	cmd := exec.Command(name)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return &peer{in, bufio.NewReader(out)}
}

func (p *peer) sample(b *testing.B, times []float64, q *Product, calls int) []float64 {
	flag := map[bool]int{true: 1}
	fmt.Fprintln(p.in, q.M, q.N, q.K, flag[q.A.Trans], flag[q.B.Trans], runtime.GOMAXPROCS(0), calls)
	for range calls {
		var t float64
		if _, err := fmt.Fscanln(p.out, &t); err != nil {
			b.Fatal(err)
		}
		times = append(times, t)
	}
	return times
}

type shape struct {
	name           string
	m, n, k        int
	transA, transB bool
	packed         bool
}

func shapes() []shape {
	var s []shape
	for _, h := range []int{512, 1152} {
		for _, batch := range []int{1, 4, 16, 64} {
			s = append(s, shape{fmt.Sprintf("step/H%d/B%d", h, batch), batch, 4 * h, h, false, true, true})
		}
	}
	return append(s,
		shape{"square/1024", 1024, 1024, 1024, false, false, false},
		shape{"square/1024/packed", 1024, 1024, 1024, false, false, true},
		shape{"input/6400x2048x512", 6400, 2048, 512, false, true, true},
		shape{"input/6400x2048x512/unpacked", 6400, 2048, 512, false, true, false},
		shape{"dW/2048x512x6400", 2048, 512, 6400, true, false, false},
		shape{"dX/64x512x2048", 64, 512, 2048, false, false, true},
		shape{"dX/64x512x2048/unpacked", 64, 512, 2048, false, false, false},
		shape{"unpacked/1x2048x512/NT", 1, 2048, 512, false, true, false},
		shape{"unpacked/4x2048x512/NT", 4, 2048, 512, false, true, false},
		shape{"unpacked/1x512x2048/NN", 1, 512, 2048, false, false, false},
		shape{"unpacked/4x512x2048/NN", 4, 512, 2048, false, false, false},
	)
}

// BenchmarkRun measures products on as many workers as -cpu says. Every iteration measures the peak
// of multiply-adds on registers, the product, and the peer, in turn, so that a disturbance affects
// all of them. Run it with -benchtime 31x. GF/s and %peak are of median times, and those with /best
// of the least times.
func BenchmarkRun(b *testing.B) {
	workers := runtime.GOMAXPROCS(0)
	const long = 2e-3 // seconds of a sample
	e := New(simd.Best(), DetectL2())
	peer := newPeer(b)
	pool := newPool(workers)
	defer pool.run(nil)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, s := range shapes() {
		b.Run(s.name, func(b *testing.B) {
			p := &Product{
				M: s.m, N: s.n, K: s.k, LdC: s.n, C: make([]float32, s.m*s.n),
				A: operand(rng, s.m, s.k, s.transA, 0), B: operand(rng, s.k, s.n, s.transB, 0),
			}
			if s.packed {
				p.Packed = make([]float32, e.PackedLen(simd.F32, s.k, s.n))
				e.Pack(p.Packed, simd.F32, p.B, s.k, s.n, 0, 1, nil)
			}
			scratch := make([]*Scratch, workers)
			for w := range scratch {
				scratch[w] = NewScratch(e.ScratchLen(p, workers))
			}
			product := func(w int) { e.Run(p, w, workers, scratch[w]) }
			var peakFLOPs int64
			peak := func(w int) {
				n := e.Kernels().FMAPeak(5e6)
				if w == 0 {
					peakFLOPs = n
				}
			}
			flops := 2 * float64(s.m) * float64(s.n) * float64(s.k)
			pool.run(product)
			calls := int(long/slices.Min(pool.sample(nil, 3, product))) + 1
			var mine, theirs, peaks []float64
			turn := 0
			for b.Loop() {
				turn++
				if turn%2 == 0 {
					peaks = pool.sample(peaks, 20, peak)
					mine = pool.sample(mine, calls, product)
				}
				if peer != nil {
					theirs = peer.sample(b, theirs, p, calls)
					if workers > 1 {
						time.Sleep(40 * time.Millisecond) // its threads spin for a while
					}
				}
				if turn%2 != 0 {
					mine = pool.sample(mine, calls, product)
					peaks = pool.sample(peaks, 20, peak)
				}
			}
			top := float64(workers) * float64(peakFLOPs) / median(peaks)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(mine)*1e6, "µs")
			b.ReportMetric(flops/median(mine)/1e9, "GF/s")
			b.ReportMetric(flops/slices.Min(mine)/1e9, "GF/s/best")
			b.ReportMetric(100*flops/median(mine)/top, "%peak")
			b.ReportMetric(100*flops/slices.Min(mine)*slices.Min(peaks)/float64(workers)/float64(peakFLOPs), "%peak/best")
			if peer != nil {
				b.ReportMetric(flops/median(theirs)/1e9, "peerGF/s")
				b.ReportMetric(median(theirs)/median(mine), "×peer")
				b.ReportMetric(slices.Min(theirs)/slices.Min(mine), "×peer/best")
			}
		})
	}
}

// BenchmarkCall measures the cost of a call beyond its one tile.
func BenchmarkCall(b *testing.B) {
	e := New(simd.Best(), 0)
	p := &Product{M: 1, N: 16, K: 1, LdC: 16, C: make([]float32, 16), A: Matrix{Data: []float32{1}, Stride: 1}, Packed: make([]float32, 16)}
	s := NewScratch(e.ScratchLen(p, 1))
	for b.Loop() {
		e.Run(p, 0, 1, s)
	}
}

func median(s []float64) float64 {
	s = slices.Sorted(slices.Values(s))
	return s[len(s)/2]
}
