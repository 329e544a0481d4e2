package cpu

import (
	"math"
	"sync/atomic"
)

// A barrier is a reusable barrier for some workers. Workers that share a cache form a group. They
// add their arrival to the group's counter, which has a cache line of its own, and watch another
// line. The last of a group continues to the root and, when all groups have arrived, releases its
// group. So a line moves between caches once per worker of a group, not once per worker in all, and
// few moves are between clusters.
//
// A few workers form one group and watch the counter of arrivals itself, which saves one line's
// moves.
type barrier struct {
	starts []int   // per group, its first worker; then the number of workers
	group  []int32 // per worker, its group
	gates  []gate  // one per group, then the root
}

// A gate counts a group's arrivals and releases the group.
type gate struct{ arrived, released counter }

const (
	// watched is the most workers that watch the counter of arrivals itself. Each further one makes
	// every arrival take the line from one more reader.
	watched = 4
	// grouped is the most workers of a group, unless the root would then have more groups than a
	// group has workers.
	grouped = 8
)

// newBarrier returns a barrier for the workers of clusters of the given sizes, in order.
func newBarrier(clusters []int) *barrier {
	all := 0
	for _, n := range clusters {
		all += n
	}
	if all <= watched {
		clusters = []int{all}
	}
	b := &barrier{starts: cut(clusters, max(grouped, int(math.Ceil(math.Sqrt(float64(all))))))}
	b.gates = make([]gate, len(b.starts))
	for i, from := range b.starts[1:] {
		for range from - b.starts[i] {
			b.group = append(b.group, int32(i))
		}
	}
	return b
}

// cut cuts clusters into groups of at most so many workers, as even as possible. It returns each
// group's first worker, and then the number of workers.
func cut(clusters []int, most int) []int {
	starts := []int{0}
	for _, n := range clusters {
		first := starts[len(starts)-1]
		for g, groups := 0, ceil(n, most); g < groups; g++ {
			_, to := span(n, 1, g, groups)
			starts = append(starts, first+to)
		}
	}
	return starts
}

// reset clears the counters after a failed run.
func (b *barrier) reset() {
	for i := range b.gates {
		b.gates[i].reset()
	}
}

func (g *gate) reset() {
	g.arrived.Store(0)
	g.released.Store(0)
}

// meet waits until the first n workers of b have arrived; this one is w. Between two resets all
// calls must have the same n.
func (p *pool) meet(b *barrier, w, n int) {
	k := b.group[w]
	g, size := &b.gates[k], min(b.starts[k+1], n)-b.starts[k]
	if size == n { // there is one group
		p.pass(g, uint64(n))
		return
	}
	arrived, of := g.arrived.Add(1), uint64(size)
	if arrived%of != 0 {
		p.await(&g.released, arrived/of+1)
		return
	}
	p.pass(&b.gates[len(b.gates)-1], uint64(b.group[n-1])+1)
	g.released.Store(arrived / of)
}

// pass waits until n have arrived at g.
func (p *pool) pass(g *gate, n uint64) {
	arrived := g.arrived.Add(1)
	round := (arrived + n - 1) / n
	switch {
	case n <= watched:
		p.await(&g.arrived, round*n)
	case arrived == round*n:
		g.released.Store(round)
	default:
		p.await(&g.released, round)
	}
}

// spins is how often a worker polls before it yields its processor.
const spins = 4000

// await spins until c has reached n.
func (p *pool) await(c *counter, n uint64) { p.until(&c.Uint64, n) }

// until waits until c has reached n. It spins at first. If a partner does not arrive within
// microseconds, it has probably lost its processor, so this worker yields its own.
func (p *pool) until(c *atomic.Uint64, n uint64) {
	for range p.spins {
		if c.Load() >= n {
			return
		}
	}
	var w wait
	for c.Load() < n {
		if p.err.Load() != nil {
			panic(errAborted)
		}
		p.pause(&w)
	}
}

// A counter has cache lines of its own, so that spinning on one does not slow down the writer of
// another.
type counter struct {
	atomic.Uint64
	_ [120]byte
}
