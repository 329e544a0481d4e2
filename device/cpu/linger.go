package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Host programs call again and again, and waking a thread takes about 20 µs. So the thread that calls
// is the first worker, and the others linger after the call: they poll for the next one, for a fifth
// of a millisecond at most, before they sleep.

// with is on, where the calling thread is the first worker and the others linger.
func (p *pool) with(seats []int, f func(worker int)) error {
	p.err.Store(nil)
	if p.inTurn {
		if err := here(func() { p.takeTurns(len(seats), f) }); err != nil {
			return err
		}
		return p.failed()
	}
	done := new(atomic.Uint64)
	for w, thread := range seats[1:] {
		p.hand(thread, job{f, w + 1, done})
	}
	work := func() { f(0) }
	if id := p.processor(seats); id >= 0 {
		work = func() {
			defer borrowProcessor(id)()
			f(0)
		}
	}
	if err := here(work); err != nil {
		p.err.CompareAndSwap(nil, &err)
	}
	for w := (wait{}); done.Load() < uint64(len(seats)-1); { // they are about to end
		for range p.spins {
			if done.Load() == uint64(len(seats)-1) {
				return p.failed()
			}
		}
		w.pause()
	}
	return p.failed()
}

// processor returns the processor of the first of several seats: the only one that no other worker
// has. Elsewhere the caller would take turns with one. -1: workers are not bound, or there is one seat.
func (p *pool) processor(seats []int) int {
	if len(seats) < 2 || len(p.jobs) > len(p.host.Processors) {
		return -1
	}
	return p.host.Processors[seats[0]].ID
}

// here runs a worker's work on the calling thread, and leaves the thread as it was.
func here(work func()) (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cpu: %v\n%s", r, debug.Stack())
		}
	}()
	defer returnFloats(borrowFloats())
	work()
	return nil
}

const lingering = 200 * time.Microsecond

// A desk is where a lingering worker finds its next job.
type desk struct {
	state atomic.Uint32
	next  job // written by the leader before state becomes given
	_     [96]byte
}

// States of a desk.
const (
	asleep uint32 = iota // the worker sleeps, or works: it takes jobs from its channel
	polled               // it polls
	given                // next is its job
)

// give hands a job to a worker that lingers; false: it does not.
func (d *desk) give(j job) bool {
	if d.state.Load() != polled {
		return false
	}
	d.next = j
	return d.state.CompareAndSwap(polled, given)
}

// linger waits for a job for a while; false: none came.
func (d *desk) linger() (j job, ok bool) {
	d.state.Store(polled)
	for end := time.Now().Add(lingering); time.Now().Before(end); {
		for range 50 {
			if d.state.Load() == given {
				d.state.Store(asleep)
				return d.next, true
			}
		}
	}
	if d.state.CompareAndSwap(polled, asleep) {
		return j, false
	}
	d.state.Store(asleep)
	return d.next, true
}
