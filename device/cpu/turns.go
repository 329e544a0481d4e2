package cpu

import (
	"iter"
	"sync/atomic"
)

// takeTurns runs f as n workers on the calling thread. A worker runs until it waits for another, and then
// the next one continues. The first and the last worker begin by turns, so that what should wait for another
// and does not finds work undone. A wait therefore costs a switch, whatever else the machine does.
func (p *pool) takeTurns(n int, f func(worker int)) {
	var ended atomic.Uint64
	resume := make([]func() (struct{}, bool), n)
	for i := range resume {
		w := i
		if p.reversed {
			w = n - 1 - i
		}
		resume[i], _ = iter.Pull(func(yield func(struct{}) bool) {
			p.giveWay = yield
			p.run(job{f, w, &ended})
		})
	}
	p.reversed = !p.reversed
	for ended.Load() < uint64(n) {
		for _, next := range resume {
			next() // nothing, if the worker has ended
		}
	}
}

// pause lets another worker continue, or another thread.
func (p *pool) pause(w *wait) {
	if own := p.giveWay; own != nil {
		own(struct{}{})
		p.giveWay = own
		return
	}
	w.pause()
}
