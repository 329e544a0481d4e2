package tuner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/tuner/search"
)

// A tune for energy compares candidates by the joules of a run. A sample is a window of the
// counter, long enough that one tick is a small share of it.
const (
	resolution = 0.02 // the largest share of a tick
	leastTicks = 1 / resolution
)

// EnergyRounds is the default number of energy samples of a candidate that stays to the end. These
// samples are long and vary less than times; eight are enough for an interval.
const EnergyRounds = 8

// briefWindows are the windows of a tune. countJoules adapts Length and Chunk to the counter.
var briefWindows = windows{Length: 200 * time.Millisecond, Settle: 300 * time.Millisecond, Rest: 3 * time.Second, Chunk: 25 * time.Millisecond, Ticks: leastTicks, Poll: 200 * time.Microsecond, now: time.Now}

// joules is how a tune counts energy.
type joules struct {
	energies
	meter device.PowerMeter
}

// NeedsMeter returns an error if d cannot count energy.
func NeedsMeter(d device.Device) error {
	meter, ok := d.(device.PowerMeter)
	if !ok {
		return fmt.Errorf("device %s has no energy meter", d.Info().Name)
	}
	_, err := meter.Power()
	return err
}

// countJoules prepares the counter if energy is the objective.
func (t *Tune) countJoules(ctx context.Context) error {
	if t.Objective != record.OfEnergy || t.joules != nil {
		return nil
	}
	if err := NeedsMeter(t.Device); err != nil {
		return err
	}
	j := &joules{energies: energies{windows: t.windows}, meter: t.Device.(device.PowerMeter)}
	if j.windows.now == nil {
		j.windows = briefWindows
	}
	period, err := j.windows.period(ctx, j.meter)
	if err != nil {
		return err
	}
	j.windows.Length = max(j.windows.Length, time.Duration(float64(period)/resolution))
	j.windows.Chunk = max(time.Millisecond, min(j.windows.Chunk, period/4))
	if err := j.rest(ctx, j.meter); err != nil {
		return err
	}
	t.joules = j
	return nil
}

// period is the time from one tick of the counter to the next, at rest.
func (w windows) period(ctx context.Context, meter device.PowerMeter) (time.Duration, error) {
	const (
		enough   = 8
		limit    = 2 * time.Second
		patience = 100 // reads: on a busy machine a few may take as long
	)
	var last device.Power
	var first time.Time
	ticks, reads := 0, 0
	for start := w.now(); ; {
		now, err := meter.Power()
		if err != nil {
			return 0, fmt.Errorf("%w cannot be read: %w", errCounter, err)
		}
		at := w.now()
		if last.Source != "" && now.Joules != last.Joules {
			if first.IsZero() {
				first = at
			} else if ticks++; ticks == enough || at.Sub(start) > limit {
				return at.Sub(first) / time.Duration(ticks), nil
			}
		}
		last = now
		if reads++; reads > patience && at.Sub(start) > 2*limit {
			return 0, fmt.Errorf("%w does not tick", errCounter)
		}
		if err := ended(ctx); err != nil {
			return 0, err
		}
		time.Sleep(w.Poll)
	}
}

// count takes an energy sample of e. A faulty counter is returned as an error and ends the tune. A
// failure of e goes into its record.
func (c *contest) count(ctx context.Context, e *entrant) error {
	c.watch(Event{Phase: Metering, Point: c.verdict.Point, Label: e.spec.Label, Round: len(e.windows), Rounds: c.Search.Rounds})
	start := time.Now()
	w, err := c.joules.windows.of(ctx, c.joules.meter, e.runFor(c.joules.windows.Chunk))
	if errors.Is(err, device.ErrLost) || e.retry(err) {
		if err = c.load(e.candidate); err == nil {
			w, err = c.joules.windows.of(ctx, c.joules.meter, e.runFor(c.joules.windows.Chunk))
		}
	}
	e.record.Cost.Measure += time.Since(start).Seconds()
	switch {
	case err == nil:
		e.windows = append(e.windows, w)
		if e.again.check != nil {
			reviewOnce(&c.Sweep, e.candidate)
		}
	case ended(ctx) != nil, errors.Is(err, errCounter):
		return err
	default:
		c.fail(e.candidate, err)
	}
	return nil
}

// costs returns the samples by which e is compared: seconds, or joules.
func (c *contest) costs(e *entrant) []float64 {
	if c.joules == nil {
		return e.samples.Wall
	}
	var list []float64
	for _, w := range e.windows {
		list = append(list, w.joules/float64(w.runs))
	}
	return list
}

// conclude completes the record of a measured entrant. stop says why measuring ended.
func (c *contest) conclude(e *entrant, stop string) {
	c.summarize(e.candidate, stop)
	e.record.Disturb(c.Around.Since(c.began, record.OnGPU(e.record.Device)))
	e.record.Launch = c.launch
	if c.joules != nil && len(e.windows) > 0 {
		e.candidate.energy(e.windows, c.joules.idle, c.joules.meter, nil)
	}
}

// costsOf returns the samples by which a record is compared; nil where it has none.
func costsOf(r *record.Record, objective string) []float64 {
	times := search.Samples(r)
	switch {
	case objective != record.OfEnergy:
		return times
	case times == nil || r.Energy == nil || r.Energy.Joules == nil:
		return nil
	}
	return r.Energy.Windows
}

// costOf is the seconds or joules that a run of a record takes; 0: unknown.
func costOf(r *record.Record, objective string) float64 {
	if objective != record.OfEnergy {
		return r.Seconds()
	}
	if r.Status != record.OK || r.Energy == nil || r.Energy.Joules == nil {
		return 0
	}
	return *r.Energy.Joules
}
