package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"rnnbench/internal/exit"
	"rnnbench/tuner/progress"
)

// endSignals returns the signals that ask the process to end.
func endSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// signals says what the next signal does: it calls stop or, where that is nil, exit.
var signals struct {
	sync.Mutex
	begin      sync.Once
	stop, exit func()
}

// listen has exit called by a signal that comes while nothing handles it. Call it before all else, so
// that no signal ends the process without a word.
func listen(exit func()) {
	signals.Lock()
	signals.exit = exit
	signals.Unlock()
	signals.begin.Do(func() {
		c := make(chan os.Signal, 1)
		signal.Notify(c, endSignals()...)
		go func() {
			for range c {
				signals.Lock()
				do := signals.exit
				if signals.stop != nil {
					do, signals.stop = signals.stop, nil
				}
				signals.Unlock()
				do()
			}
		}()
	})
}

// onSignal returns a context that ends with the next signal. done gives later signals back.
func onSignal(ctx context.Context) (with context.Context, done func()) {
	with, cancel := context.WithCancel(ctx)
	signals.Lock()
	if signals.exit == nil {
		signals.exit = func() { os.Exit(exit.Interrupted) }
	}
	exit := signals.exit
	signals.stop = cancel
	signals.Unlock()
	listen(exit)
	return with, func() {
		signals.Lock()
		signals.stop = nil
		signals.Unlock()
		cancel()
	}
}

// Interruptible returns a context that ends with the first Ctrl-C, or when the
// terminal is closed; the second one ends the process at once. The function that it
// returns waits until a message under way is written.
func (*program) Interruptible(ctx context.Context, show *progress.Progress) (context.Context, func()) {
	ctx, stop := onSignal(ctx)
	said := make(chan struct{})
	quiet := context.AfterFunc(ctx, func() {
		defer close(said)
		stop()
		show.Say("interrupted: finishing the current step; press Ctrl-C again to stop now")
	})
	return ctx, sync.OnceFunc(func() {
		if !quiet() {
			<-said
		}
		stop()
	})
}
