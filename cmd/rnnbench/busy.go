package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rnnbench/tuner/probe"
	"rnnbench/tuner/progress"
)

// busy prints what is being done, once it has taken longer than progress.Moment. On a
// terminal, it prints immediately if at is now, and done erases the line. Nothing else may be
// written before done is called.
func busy(p *program, at whenBusy, what string) (done func()) {
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

// whenBusy says when busy prints on a terminal: immediately, or after progress.Moment.
type whenBusy bool

const (
	now  whenBusy = true
	late whenBusy = false
)

// measureBench measures the device's peak rates and prints that it does.
func measureBench(p *program, b *bench) error {
	defer busy(p, now, "measuring the peak rates of "+b.info.Name)()
	return b.measureLimits()
}

// measureModel measures this machine for the model, and prints that it does.
func measureModel(p *program, b *bench) error {
	defer busy(p, now, "measuring the memories and barriers of "+b.info.Name)()
	return b.measureMachine()
}

// listen measures the noise of timings, and prints that it does.
func (p *program) listen(ctx context.Context, b *bench) (probe.Noise, error) {
	defer busy(p, now, "measuring noise")()
	return b.listen(ctx)
}
