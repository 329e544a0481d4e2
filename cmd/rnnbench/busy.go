package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rnnbench/tuner/probe"
	"rnnbench/tuner/progress"
)

// busy says what is being done before anything can be shown, once it has taken a
// moment. On a terminal the line goes when that is over; there it also comes at
// once where a wait is sure. Nothing else may be written until the function that
// busy returns was called.
func busy(p *program, at once, what string) (done func()) {
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
			fmt.Fprintf(p.err, "\r%s …\x1b[K", what)
			shown = true
		default:
			p.note("%s", what)
		}
	}
	stop := func() bool { return true }
	if rewrite && at == now {
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

// once is when busy speaks on a terminal.
type once bool

const (
	now  once = true
	late once = false
)

// measureBench measures what the device can do at most, and says so.
func measureBench(p *program, b *bench) error {
	defer busy(p, now, "measuring the peak rates of "+b.info.Name)()
	return b.measureLimits()
}

// measureModel measures what the model speaks of, and says so.
func measureModel(p *program, b *bench) error {
	defer busy(p, now, "measuring the memories and barriers of "+b.info.Name)()
	return b.measureMachine()
}

// listen times the same short work again and again, and says so.
func (p *program) listen(ctx context.Context, b *bench) (probe.Noise, error) {
	defer busy(p, now, "measuring noise")()
	return b.listen(ctx)
}
