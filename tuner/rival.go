package tuner

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
)

// A Rival is a technique whose plans run in another program beside the sweep's device. It uses as
// many workers as that device, and the same inputs.
type Rival interface {
	rnn.Technique
	Version() string
	Host() device.Device // runs its plans
}

// A bounded rival ends its process at once when ctx ends, in the middle of preparations when prepare ends, and
// when a run takes longer than limit; 0 is no limit.
type bounded interface {
	Bound(ctx, prepare context.Context, limit time.Duration)
}

// tellRivals tells the rivals among the techniques when to end. A budget ends preparations, which take up to
// minutes, but no run, since a point with enough samples is kept.
func tellRivals(s *Sweep, ctx, prepare context.Context) {
	for _, t := range s.Techniques {
		if g, ok := t.(bounded); ok {
			g.Bound(ctx, prepare, s.Settings.PointTimeout)
		}
	}
}

// cancelled reports whether the user ended ctx, as opposed to a budget.
func cancelled(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), ErrBudget)
}

// host is the device that runs l where other layouts run on d.
func (l *Layout) host(d device.Device) device.Device {
	if g, ok := l.Technique.(Rival); ok {
		return g.Host()
	}
	return d
}

// loadRivals loads those of the candidates that run in other programs. It does so side by side, since libraries
// take seconds to load, and their compilers up to minutes for a layer. Nothing is timed meanwhile.
func loadRivals(s *Sweep, all []*candidate, check *verification) {
	var wait sync.WaitGroup
	turns := make(chan bool, max(2, runtime.NumCPU())) // compilers take memory
	for _, c := range all {
		if c.record.Rival == nil {
			continue
		}
		s.watch(Event{Phase: Loading, Point: c.record.Point, Label: c.Spec.Label})
		c.input = check.input()
		turns <- true
		wait.Go(func() {
			start := time.Now()
			err := c.load(s.Device)
			c.early, c.record.Cost.Setup = &err, time.Since(start).Seconds()
			<-turns
		})
	}
	wait.Wait()
}

// rivalOf is a rival's part of a record; nil for other techniques.
func rivalOf(t rnn.Technique) *record.Rival {
	if g, ok := t.(Rival); ok {
		return &record.Rival{Name: t.Name(), Version: g.Version()}
	}
	return nil
}

// failRival ends a rival because of err. The sweep's device is not to blame.
func (c *candidate) failRival(err error) {
	switch {
	case errors.Is(err, device.ErrHang):
		c.decline(record.Timeout, record.ReasonHang, err.Error())
	default:
		c.decline(record.Failed, record.ReasonRival, err.Error())
	}
}
