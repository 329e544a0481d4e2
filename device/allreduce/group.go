// Package allreduce sums vectors over processes of one machine: the replicas of a network
// that is trained by all of them.
//
// They share a file that each has mapped. A vector passes through it in pieces: each
// replica writes its own, then adds up its part of all of them in the order of replicas,
// and then reads the sums. So every replica has the same sums to the last bit.
//
// Each replica holds a lock on a byte of the file while it lives. When a process is killed
// the system drops the lock, and those who wait for it get an error, no hang.
package allreduce

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// ErrGone says that another replica is no longer there.
var ErrGone = errors.New("it was killed or has failed")

// MostReplicas is how many can share a file.
const MostReplicas = 64

// piece is how many values pass through the file at once: a replica's piece stays in its
// cache.
const piece = 1 << 15

// A Group is what one replica has of all of them. It is for one goroutine at a time.
type Group struct {
	rank, replicas int
	file           *os.File
	memory         []byte
	turns          uint64 // pieces so far
	meetings       uint64 // of all replicas, so far

	mu     sync.Mutex
	failed error
}

// Create makes a file for so many replicas, which the caller removes once all have joined.
// Without a folder it is in memory, where the system has such a folder.
func Create(dir string, replicas int) (path string, err error) {
	if replicas < 1 || replicas > MostReplicas {
		return "", fmt.Errorf("allreduce: %d replicas: choose 1 to %d", replicas, MostReplicas)
	}
	var f *os.File
	if dir == "" {
		f, err = os.CreateTemp("/dev/shm", pattern)
	}
	if f == nil {
		f, err = os.CreateTemp(dir, pattern)
	}
	if err != nil {
		return "", fmt.Errorf("allreduce: %w", err)
	}
	if err := errors.Join(f.Truncate(int64(size(replicas))), f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("allreduce: %w", err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

const pattern = "rnnbench-replicas-*"

// The file begins with a page for each replica: how often it has met the others, how many
// values it sums now, and whether it ever joined. Then come two sets of pieces: the next
// one is written while others still read this one.
const page = 4096

func size(replicas int) int { return replicas * (page + 2*4*piece) }

// A header is what a replica tells the others.
type header struct {
	joined   atomic.Uint64
	meetings atomic.Uint64
	values   atomic.Uint64
}

func (g *Group) header(rank int) *header {
	return (*header)(unsafe.Pointer(&g.memory[rank*page]))
}

// slot is the piece of a replica in one of the two sets.
func (g *Group) slot(set, rank int) []float32 {
	at := g.replicas*page + (set*g.replicas+rank)*4*piece
	return unsafe.Slice((*float32)(unsafe.Pointer(&g.memory[at])), piece)
}

// Rank is which of the replicas this one is, from 0.
func (g *Group) Rank() int { return g.rank }

// Replicas is how many there are.
func (g *Group) Replicas() int { return g.replicas }

// Sum sets each vector to its sum over all replicas, which call it with vectors of the same
// lengths. Once it has failed, it fails at once.
func (g *Group) Sum(vectors ...[]float32) error {
	if err := g.Err(); err != nil {
		return err
	}
	n := 0
	for _, v := range vectors {
		n += len(v)
	}
	c := cursor{vectors: vectors}
	for from := 0; from < n; from += piece {
		if err := g.sum(&c, min(piece, n-from), n); err != nil {
			return g.fail(err)
		}
	}
	return nil
}

// Err is why sums have failed, nil if none has.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failed
}

func (g *Group) fail(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failed == nil {
		g.failed = err
	}
	return g.failed
}

// sum sums the next values of vectors of so many in all.
func (g *Group) sum(c *cursor, values, all int) error {
	set := int(g.turns % 2)
	g.turns++
	back := *c
	c.move(g.slot(set, g.rank)[:values], func(vector, slot []float32) { copy(slot, vector) })
	g.header(g.rank).values.Store(uint64(all))
	if err := g.meet(); err != nil {
		return err
	}
	for r := range g.replicas {
		if n := g.header(r).values.Load(); n != uint64(all) {
			return fmt.Errorf("allreduce: %s sums %d values and %s %d: they run different schedules", g.name(g.rank), all, g.name(r), n)
		}
	}
	from, to := values*g.rank/g.replicas, values*(g.rank+1)/g.replicas
	into := g.slot(set, 0)[from:to]
	for r := 1; r < g.replicas; r++ {
		add(into, g.slot(set, r)[from:to])
	}
	if err := g.meet(); err != nil {
		return err
	}
	back.move(g.slot(set, 0)[:values], func(vector, slot []float32) { copy(vector, slot) })
	return nil
}

func add(into, more []float32) {
	for i, v := range more[:len(into)] {
		into[i] += v
	}
}

// name tells people of a replica, as they count.
func (g *Group) name(rank int) string {
	return fmt.Sprintf("replica %d of %d", rank+1, g.replicas)
}

// How a replica waits: so many looks, then so many with its processor left to others in
// between, and then asleep between looks. From time to time it looks for the others' locks.
const (
	spins  = 4000
	yields = 400
	nap    = 20 * time.Microsecond
	look   = 5 * time.Millisecond
)

// joining is how long replicas wait for one that has never joined.
const joining = 2 * time.Minute

// meet waits until all replicas have come as far.
func (g *Group) meet() error {
	g.meetings++
	g.header(g.rank).meetings.Store(g.meetings)
	for r := range g.replicas {
		if err := g.await(r); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a replica has come as far as this one.
func (g *Group) await(rank int) error {
	h := g.header(rank)
	here := func() bool { return h.meetings.Load() >= g.meetings }
	for range spins {
		if here() {
			return nil
		}
	}
	for range yields {
		if here() {
			return nil
		}
		yield()
	}
	start := time.Now()
	looked := start
	for !here() {
		time.Sleep(nap)
		now := time.Now()
		if now.Sub(looked) < look {
			continue
		}
		looked = now
		alive, err := g.alive(rank)
		switch {
		case err != nil:
			return fmt.Errorf("allreduce: %w", err)
		case alive, here(): // it may have ended just after it came
		case h.joined.Load() != 0:
			return fmt.Errorf("allreduce: %s is gone: %w", g.name(rank), ErrGone)
		case now.Sub(start) > joining:
			return fmt.Errorf("allreduce: %s did not start within %v: %w", g.name(rank), joining, ErrGone)
		}
	}
	return nil
}

// Close leaves the group: others who wait for this replica fail.
func (g *Group) Close() error {
	_ = g.fail(errors.New("allreduce: the group is closed"))
	return errors.Join(g.unmap(), g.file.Close())
}

// A cursor goes through vectors as if they were one.
type cursor struct {
	vectors [][]float32
	at      int // in the first
}

// move calls f for parts of the vectors that together are as long as slot.
func (c *cursor) move(slot []float32, f func(vector, slot []float32)) {
	for len(slot) > 0 {
		rest := c.vectors[0][c.at:]
		n := min(len(rest), len(slot))
		f(rest[:n], slot[:n])
		slot = slot[n:]
		if c.at += n; n == len(rest) {
			c.vectors, c.at = c.vectors[1:], 0
		}
	}
}
