package main

import (
	"fmt"
	"sync"
	"time"

	"rnnbench/tuner/progress"
)

// Busy prints what is being done, once it has taken longer than progress.Moment. Done erases the line on a
// terminal. Nothing else may be written before done is called.
func (p *program) Busy(what string) (done func()) { return busy(p, false, what) }

// BusyNow prints on a terminal at once what is being done.
func (p *program) BusyNow(what string) (done func()) { return busy(p, true, what) }

func busy(p *program, now bool, what string) (done func()) {
	if p.quiet {
		return func() {}
	}
	var mu sync.Mutex
	shown, over := false, false
	rewrite := terminal(p.err) && p.progress != progressJSON
	tell := func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
		case rewrite:
			p.silence.end()
			fmt.Fprintf(letters(p, p.err), "\r%s …\x1b[K", what)
			shown = true
		default:
			p.Note("%s", what)
		}
	}
	stop := func() bool { return true }
	if rewrite && now {
		tell()
	} else {
		stop = time.AfterFunc(progress.Moment, tell).Stop
	}
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; shown {
			fmt.Fprint(p.err, "\r\x1b[K")
		}
	}
}
