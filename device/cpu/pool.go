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

// A pool is a set of workers, goroutines bound to an OS thread each and, where
// the system allows, to a processor each. Between jobs they sleep; during a job
// they hand work to each other by spinning on memory, since waking a thread
// takes a hundred times as long as a small operation.
type pool struct {
	jobs []chan job
	host *topology.Topology
	wg   sync.WaitGroup // running jobs
	err  atomic.Pointer[error]

	spins int // that a worker waits for another one before it lets others have its processor
}

// barrier is one for n workers from the first on, of all those that run something together.
func (p *pool) barrier(all, first, n int) *barrier { return newBarrier(p.clusters(all, first, n)) }

// clusters are the sizes of the clusters that these sit in. Where threads are bound to no processor, it is one.
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

// A job is what a thread does as worker of that number.
type job struct {
	f      func(worker int)
	worker int
}

// newPool starts n workers on the processors of a host, which may be fewer.
func newPool(n int, host *topology.Topology) *pool {
	p := &pool{host: host, spins: spins}
	if n > len(host.Processors) { // the other one probably waits for a processor
		p.spins = spins / 100
	}
	for thread := range n {
		jobs := make(chan job)
		p.jobs = append(p.jobs, jobs)
		onThread(func() {
			if n <= len(host.Processors) {
				bind(host.Processors[thread].ID) // best effort: without it the system chooses
			}
			flush()
			for j := range jobs {
				p.run(j.f, j.worker)
			}
		})
	}
	return p
}

// seats are the threads of n workers: those of the processors to fill first, neighbours side by side.
func (p *pool) seats(n int) []int {
	if seats := p.host.Seats(n); seats != nil && len(p.jobs) <= len(p.host.Processors) {
		return seats
	}
	seats := make([]int, n) // none is bound
	for i := range seats {
		seats[i] = i
	}
	return seats
}

// onThread runs f on an OS thread of its own, which ends with f. It is never the
// process's first thread: that one would outlive f and keep f's binding.
func onThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if !leader() {
			f()
			return
		}
		elsewhere := make(chan struct{})
		go func() { // this thread is taken, so it runs on another one
			runtime.LockOSThread()
			close(elsewhere)
			f()
		}()
		<-elsewhere
		runtime.UnlockOSThread()
	}()
}

func (p *pool) run(f func(int), worker int) {
	defer p.wg.Done()
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("cpu: worker %d: %v\n%s", worker, r, debug.Stack())
			p.err.CompareAndSwap(nil, &err)
		}
	}()
	f(worker)
}

// do runs f once on every worker and waits.
func (p *pool) do(f func(worker int)) error { return p.on(p.seats(len(p.jobs)), f) }

// on runs f once on each of some threads, which are workers 0, 1 and so on, and waits. A panic
// in one is returned as an error; the others leave their spins.
func (p *pool) on(seats []int, f func(worker int)) error {
	p.err.Store(nil)
	p.wg.Add(len(seats))
	for w, thread := range seats {
		p.jobs[thread] <- job{f, w}
	}
	p.wg.Wait()
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

// errAborted ends a worker whose partner has failed.
var errAborted = fmt.Errorf("aborted: another worker failed")

// A wait is that of a worker for a partner that seems to have lost its processor.
type wait struct {
	crowded bool
	times   int
}

// more lets others have the processor for a while. Where another program took it
// for long, the partner probably waits behind one as well: threads that sleep are
// let in again at once, those that yield only after everybody else. A partner that has no
// scheduler slot, since there are fewer than workers, gets one from time to time.
func (w *wait) more() {
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
