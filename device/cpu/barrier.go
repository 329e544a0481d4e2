package cpu

import (
	"math"
	"sync/atomic"
)

// A barrier is where some workers meet, again and again. Those that share a cache form a group: they add
// their arrival to a counter of the group, on a line of its own, and watch another line. The last of each group
// goes on to the root, and lets its group go when all groups have come. So a line moves between caches
// as often as its group has workers, rather than as all have, and few of those moves are between clusters.
//
// A few workers are one group, and watch the counter of arrivals itself: a line fewer moves.
type barrier struct {
	starts []int   // per group, its first worker; then their number
	group  []int32 // of each worker
	gates  []gate  // of the groups, then the root
}

// A gate counts arrivals of a group and lets it go.
type gate struct{ arrived, released counter }

const (
	// watched is the most workers that watch the counter of arrivals itself. With each more, every arrival takes the line
	// from one more reader.
	watched = 4
	// grouped is the most workers of a group, unless there are so many that the root would have more groups.
	grouped = 8
)

// newBarrier is for the workers of clusters of such sizes, in order.
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

// cut cuts clusters into groups of so many workers at most, as even as possible: their first workers, then how many there are in all.
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

// reset forgets what a failed meeting left.
func (b *barrier) reset() {
	for i := range b.gates {
		b.gates[i].reset()
	}
}

func (g *gate) reset() {
	g.arrived.Store(0)
	g.released.Store(0)
}

// meet waits until the first n workers of b have come to the same meeting, of whom this one is w. All meetings
// between two resets are of the same n.
func (p *pool) meet(b *barrier, w, n int) {
	k := b.group[w]
	g, size := &b.gates[k], min(b.starts[k+1], n)-b.starts[k]
	if size == n { // there is no other group
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

// pass waits until n have come to g.
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

// spins is how often a worker looks before it lets others have its processor.
const spins = 4000

// await spins until c has reached n.
func (p *pool) await(c *counter, n uint64) { p.until(&c.Uint64, n) }

// until spins until c has reached n. A partner that does not come within
// microseconds has probably lost its processor, which it may then have back.
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
		w.more()
	}
}

// A counter is alone on its cache line, so that spinning on one does not slow
// down the writer of another.
type counter struct {
	atomic.Uint64
	_ [120]byte
}
