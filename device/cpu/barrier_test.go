package cpu

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnnbench/device/cpu/topology"
)

// crowd returns a pool of so many workers that are not bound to processors.
func crowd(t testing.TB, n int) *pool {
	p := newPool(n, &topology.Topology{}, false)
	t.Cleanup(p.close)
	return p
}

// meetings makes the first n workers meet so many times. It returns an error if a worker continues
// before all have arrived.
func meetings(p *pool, b *barrier, n, times int) error {
	at := make([]counter, n)
	return p.on(p.seats(n), func(w int) {
		for i := range uint64(times) {
			at[w].Store(i + 1)
			p.meet(b, w, n)
			for other := range at {
				if now := at[other].Load(); now < i+1 || now > i+2 {
					panic(fmt.Sprintf("worker %d of %d is at %d, worker %d at %d", w, n, i+1, other, now))
				}
			}
		}
	})
}

// TestWorkersMeet: any number of workers meet, in clusters of any sizes, and so do some of them
// alone.
func TestWorkersMeet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	counts := []int{1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 24, 31, 48, 64}
	if testing.Short() {
		counts = []int{1, 2, 3, 5, 8, 16, 64}
	}
	for _, all := range counts {
		p := crowd(t, all)
		for _, clusters := range [][]int{{all}, random(rng, all), slices.Repeat([]int{1}, all)} {
			for _, n := range []int{all, 1 + rng.IntN(all)} {
				if err := meetings(p, newBarrier(clusters), n, max(4, 200/all)); err != nil {
					t.Fatalf("clusters %v: %v", clusters, err)
				}
			}
		}
	}
}

// random cuts n into clusters.
func random(rng *rand.Rand, n int) (sizes []int) {
	for n > 0 {
		sizes = append(sizes, 1+rng.IntN(n))
		n -= sizes[len(sizes)-1]
	}
	return sizes
}

// TestBarrierGroups checks which workers form a group.
func TestBarrierGroups(t *testing.T) {
	for _, test := range []struct{ clusters, starts []int }{
		{[]int{1}, []int{0, 1}},
		{[]int{8}, []int{0, 8}},
		{[]int{2, 2}, []int{0, 4}},
		{[]int{8, 8, 4}, []int{0, 8, 16, 20}},
		{[]int{16}, []int{0, 8, 16}},
		{[]int{20}, []int{0, 6, 13, 20}},
		{[]int{32, 32}, []int{0, 8, 16, 24, 32, 40, 48, 56, 64}},
		{[]int{144}, []int{0, 12, 24, 36, 48, 60, 72, 84, 96, 108, 120, 132, 144}},
	} {
		if b := newBarrier(test.clusters); !slices.Equal(b.starts, test.starts) || len(b.group) != b.starts[len(b.starts)-1] {
			t.Errorf("clusters %v: groups begin at %v, want %v", test.clusters, b.starts, test.starts)
		}
	}
}

// TestBarrierOfTeam: a team's barrier has the clusters that its workers sit in.
func TestBarrierOfTeam(t *testing.T) {
	host := &topology.Topology{}
	for i := range 20 {
		host.Processors = append(host.Processors, topology.Processor{ID: i, Core: i, Cluster: i / 8})
	}
	p := &pool{host: host, jobs: make([]chan job, 20)}
	for _, test := range []struct {
		first, n int
		want     []int
	}{{0, 20, []int{0, 8, 16, 20}}, {0, 8, []int{0, 8}}, {10, 10, []int{0, 6, 10}}, {5, 12, []int{0, 3, 11, 12}}, {19, 1, []int{0, 1}}} {
		if b := p.barrier(20, test.first, test.n); !slices.Equal(b.starts, test.want) {
			t.Errorf("%d from %d on: groups begin at %v, want %v", test.n, test.first, b.starts, test.want)
		}
	}
}

// TestFailedWorkerFreesOthers: if a worker fails, the others stop waiting, and the barrier works
// again after a reset.
func TestFailedWorkerFreesOthers(t *testing.T) {
	p := crowd(t, 20)
	b := newBarrier([]int{8, 8, 4})
	if err := p.do(func(w int) {
		for i := range 5 {
			if w == 11 && i == 3 {
				panic("broken")
			}
			p.meet(b, w, 20)
		}
	}); err == nil {
		t.Fatal("no error")
	}
	b.reset()
	if err := meetings(p, b, 20, 5); err != nil {
		t.Error(err)
	}
}

// TestFewSchedulerSlots: workers meet even if the Go scheduler cannot run them at the same time.
func TestFewSchedulerSlots(t *testing.T) {
	p := crowd(t, 8)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if err := meetings(p, newBarrier([]int{8}), 8, 20); err != nil {
		t.Error(err)
	}
}

// BenchmarkBarriers compares, in turn, meetings of so many workers by one counter that all watch
// with meetings by groups. With fewer processors than workers it mostly measures the system's
// scheduler.
func BenchmarkBarriers(b *testing.B) {
	for _, n := range []int{2, 3, 4, 8, 16, 32, 64} {
		if n > 2 && n > len(hostTopology().Processors) {
			continue
		}
		p := newPool(n, hostTopology(), false)
		var flat atomic.Uint64
		meeting := p.barrier(n, 0, n)
		ways := []struct {
			name string
			meet func(w int)
		}{
			{"flat", func(int) {
				for to := (flat.Add(1) + uint64(n) - 1) / uint64(n) * uint64(n); flat.Load() < to; {
				}
			}},
			{"groups", func(w int) { p.meet(meeting, w, n) }},
		}
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			times := make([][]float64, len(ways))
			const rounds = 2000
			for b.Loop() {
				for i, way := range ways {
					var start sync.Once
					var began time.Time
					if err := p.do(func(w int) {
						way.meet(w)
						start.Do(func() { began = time.Now() })
						for range rounds {
							way.meet(w)
						}
					}); err != nil {
						b.Fatal(err)
					}
					times[i] = append(times[i], float64(time.Since(began).Nanoseconds())/rounds)
				}
			}
			b.ReportMetric(0, "ns/op")
			for i, way := range ways {
				slices.Sort(times[i])
				b.ReportMetric(times[i][0], way.name+"-least-ns")
				b.ReportMetric(times[i][len(times[i])/2], way.name+"-median-ns")
			}
		})
		p.close()
	}
}
