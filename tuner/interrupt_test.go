package tuner_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
)

// A resting device's runs take a millisecond of the test's clock each, and compute nothing.
type resting struct{ device.Device }

func (d resting) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return restingProgram{p}, err
}

type restingProgram struct{ device.Program }

func (restingProgram) Run(n int) (device.Sample, error) {
	const one = time.Millisecond
	time.Sleep(time.Duration(n) * one)
	return device.Sample{Wall: time.Duration(n) * one}, nil
}

// TestInterruptedAtOnce: an interruption ends a sweep or a tune within about a second, even in a long
// warm-up or a long sample, in the check that the time grows with the runs, which follows a sample, and in the
// check of many calls. An unfinished sample counts for nothing. The clock is the test's.
func TestInterruptedAtOnce(t *testing.T) {
	d := resting{open(t)}
	for name, c := range map[string]struct {
		warmup, sample, after time.Duration
		phase                 tuner.Phase
		calls                 int
	}{
		"warm-up":     {10 * time.Minute, 20 * time.Millisecond, 3 * time.Minute, tuner.Warming, 0},
		"sample":      {0, 10 * time.Minute, 3 * time.Minute, tuner.Measuring, 0},
		"growth":      {0, 10 * time.Minute, 10*time.Minute + 10*time.Second, tuner.Measuring, 0},
		"next sample": {0, 10 * time.Minute, 25 * time.Minute, tuner.Measuring, 0},
		"check":       {0, time.Millisecond, time.Second, tuner.Verifying, 1 << 20},
		"calls":       {0, time.Millisecond, time.Second, tuner.Measuring, 1 << 20},
	} {
		for _, tuned := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var signal time.Time
				time.AfterFunc(c.after, func() { signal = time.Now(); cancel() })
				var last tuner.Phase
				u, _ := tune(t, d)
				p := small()
				if c.calls > 0 {
					p.Pass, p.Calls = "forward", c.calls
				}
				u.Settings.Verify, u.Settings.Warmup, u.Settings.MinTime, u.Settings.PointTimeout = c.phase == tuner.Verifying, c.warmup, c.sample, 0
				u.Watch = func(e tuner.Event) { last = e.Phase }
				var recs []record.Record
				var err error
				if tuned {
					_, err = u.Tune(ctx, p, specs(t, "naive"), record.Impl{})
				} else {
					recs, err = sweep(t, &u.Sweep, ctx, []record.Point{p}, specs(t, "naive"))
				}
				if took := time.Since(signal); !errors.Is(err, context.Canceled) || took > 2*time.Second || len(recs) > 0 {
					t.Errorf("%s, tuned %t: it took %v to end, with %d records: %v", name, tuned, took, len(recs), err)
				}
				if last != c.phase && !tuned {
					t.Errorf("%s: it was interrupted while %s", name, last)
				}
			})
		}
	}
}
