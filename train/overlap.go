package train

import (
	"context"
	"slices"

	"rnnbench/device"
)

// A staged minibatch is on the devices already, beside the one that they train on.
type staged struct {
	rates   []float32
	counted int
	state   []byte // of the source after it
}

// Overlaps reports whether an iteration of t begins before the previous one ends.
func Overlaps(t *Trainer) bool { return fedAll(t) }

// fedAll reports whether all devices can be fed while they train.
func fedAll(t *Trainer) bool {
	return !slices.ContainsFunc(t.replicas, func(r replica) bool {
		_, ok := r.program.(device.Fed)
		return !ok
	})
}

// FedBytes is an upper bound on what a replica has allocated for its next minibatch, in bytes: a
// device may store its input in 16 bits. It is 0 where minibatches are written when their turn
// comes.
func FedBytes(t *Trainer) int64 {
	if !fedAll(t) {
		return 0
	}
	n := t.plan.Updates.Rates.Elements() + t.input().Elements() + t.plan.Head.Target.Elements()
	if m := ofSteps(t.plan); m != nil {
		n += m.Elements()
	}
	return 4 * int64(n)
}

// eachFed is each for programs that can be fed while they run.
func eachFed(t *Trainer, f func(r replica, p device.Fed) error) error {
	return t.each(func(r replica) error { return f(r, r.program.(device.Fed)) })
}

// stage draws the next minibatch and feeds it, with the rates of its iteration.
func stage(t *Trainer, rates []float32) error {
	m := t.feed.next()
	if m.err != nil {
		return m.err
	}
	err := eachFed(t, func(r replica, p device.Fed) error {
		values := append(t.share(r, m).filled(r.plan, r.input()), device.Filled{Matrix: r.plan.Updates.Rates, Values: rates})
		return p.Feed(values...)
	})
	if err != nil {
		return err
	}
	t.staged = &staged{rates: rates, counted: m.counted, state: m.state}
	t.feed.recycle(m)
	return nil
}

// begin begins a run on the staged minibatch behind those under way, and stages the next one.
func begin(t *Trainer, rates, next []float32) error {
	if t.staged == nil {
		if err := stage(t, rates); err != nil {
			return err
		}
	}
	now := t.staged
	t.staged = nil
	err := eachFed(t, func(r replica, p device.Fed) error {
		if !slices.Equal(now.rates, rates) { // the rates have changed since it was staged
			if err := p.Feed(device.Filled{Matrix: r.plan.Updates.Rates, Values: rates}); err != nil {
				return err
			}
		}
		return p.Start()
	})
	if err != nil {
		return err
	}
	t.underway = append(t.underway, now)
	return stage(t, next)
}

// end waits for the oldest run.
func end(t *Trainer) error {
	now := t.underway[0]
	t.underway = t.underway[1:]
	if err := eachFed(t, func(_ replica, p device.Fed) error { return p.Wait() }); err != nil {
		return err
	}
	t.counted = now.counted
	t.position = append(t.position[:0], now.state...)
	return nil
}

// overlap makes n runs. Each begins before the previous one ends, so that the device does not wait
// for the host. rates returns the rates of the i-th run. ended counts the runs until one failed,
// whose error it returns, or until ctx ended.
func overlap(ctx context.Context, t *Trainer, n int, rates func(i int) []float32) (ended int, err error) {
	for begun := 0; ended < n; ended++ {
		for ctx.Err() == nil && begun < n && len(t.underway) < device.Ahead {
			if err := begin(t, rates(begun), rates(begun+1)); err != nil {
				return ended, rootOf([]error{drain(t), err})
			}
			begun++
		}
		if len(t.underway) == 0 {
			return ended, ctx.Err()
		}
		if err := end(t); err != nil {
			return ended, rootOf([]error{err, drain(t)})
		}
	}
	return ended, nil
}

// drain waits for all runs under way, after one failed.
func drain(t *Trainer) error {
	var errs []error
	for len(t.underway) > 0 {
		errs = append(errs, end(t))
	}
	return rootOf(errs)
}
