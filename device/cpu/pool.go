package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"rnnbench/device/cpu/topology"
)

// A pool is a set of workers: goroutines, each bound to an OS thread and, if the system allows it,
// to a processor. Between jobs they sleep. During a job they hand work over by spinning on memory,
// since waking a thread takes a hundred times as long as a small operation.
type pool struct {
	jobs  []chan job
	desks []desk // of the workers
	host  *topology.Topology
	wg    sync.WaitGroup // running jobs
	err   atomic.Pointer[error]

	spins int // polls of a waiting worker before it yields its processor

	// If workers take turns: which of them begins, and what the running one gives way by.
	inTurn, reversed bool
	giveWay          func(struct{}) bool
}

// barrier returns a barrier for n workers from first on, when all workers run something together.
func (p *pool) barrier(all, first, n int) *barrier { return newBarrier(p.clusters(all, first, n)) }

// clusters returns the sizes of the clusters that these workers sit in. If threads are not bound to
// processors, they are one cluster.
func (p *pool) clusters(all, first, n int) (clusters []int) {
	if len(p.jobs) > len(p.host.Processors) {
		return []int{n}
	}
	for _, size := range p.host.Clusters(all) {
		here := min(max(0, size-first), n)
		if first = max(0, first-size); here > 0 {
			clusters = append(clusters, here)
			n -= here
		}
	}
	return clusters
}

// A job is a function that a thread runs as the worker of that number.
type job struct {
	f      func(worker int)
	worker int
	done   *atomic.Uint64 // counts jobs of pool.with, after which a worker lingers; nil: of pool.on
}

// newPool starts n workers on the processors of a host. There may be fewer processors.
func newPool(n int, host *topology.Topology, inTurn bool) *pool {
	p := &pool{host: host, spins: spins, desks: make([]desk, n), inTurn: inTurn}
	switch {
	case inTurn: // a partner runs once this worker gives way
		p.spins = 0
	case n > len(host.Processors): // a partner that is late probably waits for a processor
		p.spins = spins / 100
	}
	for thread := range n {
		jobs := make(chan job)
		p.jobs = append(p.jobs, jobs)
		onThread(func() {
			if n <= len(host.Processors) && !inTurn {
				bind(host.Processors[thread].ID) // best effort: if it fails, the system chooses
			}
			flush()
			for j := range jobs {
				for more := true; more; {
					p.run(j)
					if more = j.done != nil; more {
						j, more = p.desks[thread].linger()
					}
				}
			}
		})
	}
	return p
}

// seats returns the threads of n workers, on the processors to fill first. Neighbouring workers are
// near each other.
func (p *pool) seats(n int) []int {
	if seats := p.host.Seats(n); seats != nil && len(p.jobs) <= len(p.host.Processors) {
		return seats
	}
	seats := make([]int, n) // threads are not bound
	for i := range seats {
		seats[i] = i
	}
	return seats
}

// onThread runs f on an OS thread of its own, which ends with f. It avoids the process's first
// thread, which would outlive f and keep f's binding.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if !leader() {
			f()
			return
		}
		elsewhere := make(chan struct{})
		go func() { // this thread is locked, so f runs on another one
			runtime.LockOSThread()
			close(elsewhere)
			f()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}

func (p *pool) run(j job) {
	if j.done != nil {
		defer j.done.Add(1)
	} else {
		defer p.wg.Done()
	}
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("cpu: worker %d: %v\n%s", j.worker, r, debug.Stack())
			p.err.CompareAndSwap(nil, &err)
		}
	}()
	j.f(j.worker)
}

// do runs f once on every worker and waits for the end.
func (p *pool) do(f func(worker int)) error { return p.on(p.seats(len(p.jobs)), f) }

// on runs f once on each of the given threads, as workers 0, 1 and so on, and waits for the end. A
// panic in one of them is returned as an error, and makes the others stop waiting.
func (p *pool) on(seats []int, f func(worker int)) error {
	p.err.Store(nil)
	if all := f; p.inTurn {
		n := len(seats)
		seats, f = seats[:1], func(int) { p.takeTurns(n, all) }
	}
	p.wg.Add(len(seats))
	for w, thread := range seats {
		p.hand(thread, job{f: f, worker: w})
	}
	p.wg.Wait()
	return p.failed()
}

// hand gives a job to a thread.
func (p *pool) hand(thread int, j job) {
	if !p.desks[thread].give(j) {
		p.jobs[thread] <- j
	}
}

// failed returns the error of a worker that failed.
func (p *pool) failed() error {
	if err := p.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *pool) close() {
	for _, job := range p.jobs {
		close(job)
	}
}

// errAborted is the panic of a worker that waits for a failed one.
var errAborted = fmt.Errorf("aborted: another worker failed")

// A wait is the state of a worker that waits for a partner without a processor.
type wait struct {
	crowded bool
	times   int
}

// pause gives up the processor for a while. If another program then keeps it for long, the partner
// probably waits behind such a program as well, so this worker sleeps from now on. The system
// resumes threads that sleep at once, and those that yield only after all others. A partner may
// also lack a scheduler slot, if there are fewer slots than workers, so it gets one at intervals.
func (w *wait) pause() {
	if w.times++; w.times%64 == 0 {
		runtime.Gosched()
	}
	if w.crowded {
		nap()
		return
	}
	start := time.Now()
	yield()
	w.crowded = time.Since(start) > 200*time.Microsecond
}
