// Package allreduce sums vectors over processes of one machine: the replicas that train a network
// together.
//
// The replicas share a file that each has mapped. A vector passes through the file in pieces. Each
// replica writes its own piece, then adds up its share of all replicas' pieces in the order of
// replicas, and then reads the sums. So all replicas get the same bits.
//
// Each replica holds a lock on a byte of the file while it lives. If a process is killed, the
// system drops the lock, and replicas that wait for it get an error instead of hanging.
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

// ErrGone says that another replica has ended.
var ErrGone = errors.New("it was killed or has failed")

// MostReplicas is the most replicas that can share a file.
const MostReplicas = 64

// piece is the number of values that pass through the file at once. A replica's piece fits its
// cache.
const piece = 1 << 15

// A Group is one replica's end of the group. Only one goroutine may use it at a time.
type Group struct {
	rank, replicas int
	file           *os.File
	memory         []byte
	turns          uint64 // pieces so far
	meetings       uint64 // barriers of all replicas so far

	mu     sync.Mutex
	failed error
}

// Create makes a file for so many replicas. The caller removes it once all have joined. If dir is
// empty, the file is in /dev/shm or, without such a folder, in the folder for temporary files.
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

// The file begins with a page for each replica, with its header. Two sets of pieces follow: the
// next piece is written to one set while other replicas still read the other.
const page = 4096

func size(replicas int) int { return replicas * (page + 2*4*piece) }

// A header is what a replica publishes: whether it ever joined, the barriers that it has reached,
// and the length of its current sum.
type header struct {
	joined   atomic.Uint64
	meetings atomic.Uint64
	values   atomic.Uint64
}

func (g *Group) header(rank int) *header {
	return (*header)(unsafe.Pointer(&g.memory[rank*page]))
}

// slot returns a replica's piece in one of the two sets.
func (g *Group) slot(set, rank int) []float32 {
	at := g.replicas*page + (set*g.replicas+rank)*4*piece
	return unsafe.Slice((*float32)(unsafe.Pointer(&g.memory[at])), piece)
}

// Rank returns this replica's number, from 0.
func (g *Group) Rank() int { return g.rank }

// Replicas returns the number of replicas.
func (g *Group) Replicas() int { return g.replicas }

// Sum sets each vector to its sum over all replicas. All replicas must call it with vectors of the
// same lengths. After a failure, every later call fails at once.
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

// Err returns the error of the first failed sum, or nil.
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

// sum sums one piece: the next values, of all in the vectors together.
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

// name names a replica in messages, counting from 1.
func (g *Group) name(rank int) string {
	return fmt.Sprintf("replica %d of %d", rank+1, g.replicas)
}

// A waiting replica polls spins times, then yields times with its processor yielded in between, and
// then sleeps for nap between polls. At intervals of look it checks the others' locks.
const (
	spins  = 4000
	yields = 400
	nap    = 20 * time.Microsecond
	look   = 5 * time.Millisecond
)

// joining is the time limit for a replica that has not joined yet.
const joining = 2 * time.Minute

// meet is a barrier: it waits until all replicas have reached it.
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

// await waits until one replica has reached the current barrier.
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
		case alive, here(): // it may have ended just after it arrived
		case h.joined.Load() != 0:
			return fmt.Errorf("allreduce: %s is gone: %w", g.name(rank), ErrGone)
		case now.Sub(start) > joining:
			return fmt.Errorf("allreduce: %s did not start within %v: %w", g.name(rank), joining, ErrGone)
		}
	}
	return nil
}

// Close leaves the group. Replicas that wait for this one get an error.
func (g *Group) Close() error {
	_ = g.fail(errors.New("allreduce: the group is closed"))
	return errors.Join(g.unmap(), g.file.Close())
}

// A cursor walks through vectors as if they were one.
type cursor struct {
	vectors [][]float32
	at      int // position in vectors[0]
}

// move calls f for consecutive parts of the vectors, until they have filled slot.
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
