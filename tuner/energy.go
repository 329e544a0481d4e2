package tuner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/record"
)

// windows says how energy is counted. A window begins and ends at a tick of the counter, while the
// technique runs back to back. So a window includes no idle time and no part of a tick.
type windows struct {
	Count  int           // of each technique
	More   int           // further windows of a technique whose first Count are unsteady
	Length time.Duration // of a window, at least
	Settle time.Duration // run before each window, so that clock and power settle
	Chunk  time.Duration // of runs between two readings of the counter
	Rest   time.Duration // in which nothing runs, to measure the power at rest
	Poll   time.Duration // between two readings that measure the counter's period
	Ticks  int           // of a window, at least, unless every reading is a new tick

	now func() time.Time
}

// usualWindows are for counters that tick every 20 to 100 ms.
var usualWindows = windows{Count: 3, More: 9, Length: 3 * time.Second, Settle: 300 * time.Millisecond, Chunk: 25 * time.Millisecond, Rest: 3 * time.Second, now: time.Now}

// EnergySeconds is about how long the windows of a technique take.
const EnergySeconds = 10

// unsteady is how far apart the first windows of a technique may be, as a share of their median.
// A technique beyond that gets more windows. It happens where the host sets the pace.
const unsteady = 0.05

// disputed is how far apart the counter and the polled power may be, as a share of the counter's.
const disputed = 0.1

// A window is what was measured of a technique, or at rest, from one tick to another.
type window struct {
	runs            int
	seconds, joules float64
	polled, clock   float64 // watts and Hz: means of all readings; 0: unknown
	temperature     float64
}

// energies count the energy that the techniques of a sweep take.
type energies struct {
	windows windows
	idle    *float64 // watts of the device at rest; nil: not measured yet
}

// count counts the energy of all candidates in turns. A counter that fails is no error: the records
// say so.
func (e *energies) count(ctx context.Context, s *Sweep, live []*candidate, rng *rand.Rand) error {
	if e.windows.Count == 0 {
		e.windows = usualWindows
	}
	meter, ok := s.Device.(device.PowerMeter)
	why := fmt.Errorf("device %s has no energy meter", s.Device.Info().Name)
	if ok {
		_, why = meter.Power()
	}
	if why == nil {
		s.watch(Event{Phase: Metering, Point: live[0].record.Point, Label: "nothing"})
		why = e.rest(ctx, meter)
	}
	if err := ended(ctx); err != nil {
		return err
	}
	seen, broke := make([][]window, len(live)), make([]error, len(live))
	order := make([]int, len(live))
	for i := range order {
		order[i] = i
	}
	for round := range e.windows.Count + e.windows.More {
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			c := live[i]
			if c.record.Status != record.OK || why != nil || broke[i] != nil || round >= e.windows.Count && agree(seen[i][:e.windows.Count]) {
				continue
			}
			s.watch(Event{Phase: Metering, Point: c.record.Point, Label: c.Spec.Label, Round: len(seen[i]), Rounds: max(e.windows.Count, round+1)})
			w, err := e.windows.of(ctx, meter, c.runFor(e.windows.Chunk))
			if errors.Is(err, device.ErrLost) { // another technique broke the device
				if err = s.load(c); err == nil {
					w, err = e.windows.of(ctx, meter, c.runFor(e.windows.Chunk))
				}
			}
			if err := ended(ctx); err != nil {
				return err
			}
			if errors.Is(err, errCounter) {
				why = err
			} else {
				broke[i] = err // its times stay valid
			}
			seen[i] = append(seen[i], w)
		}
	}
	for i, c := range live {
		if c.record.Status == record.OK {
			c.energy(seen[i], e.idle, meter, cmp.Or(why, broke[i]))
		}
	}
	return nil
}

// agree reports whether the windows of one technique are close to each other.
func agree(seen []window) bool {
	var each []float64
	for _, w := range seen {
		each = append(each, w.joules/float64(w.runs))
	}
	return slices.Max(each)-slices.Min(each) <= unsteady*median(each)
}

// errCounter marks a faulty counter, as opposed to a technique that failed.
var errCounter = errors.New("the energy counter")

// rest measures the device's power at rest, once.
func (e *energies) rest(ctx context.Context, meter device.PowerMeter) error {
	if e.idle != nil || e.windows.Rest == 0 {
		return nil
	}
	w, err := windows{Length: e.windows.Rest, Settle: e.windows.Settle, now: e.windows.now}.of(ctx, meter, func() (int, error) {
		time.Sleep(e.windows.Chunk)
		return 1, nil
	})
	if err != nil {
		return err
	}
	watts := w.joules / w.seconds
	e.idle = &watts
	return nil
}

// runFor returns a function that runs c for about d and returns the number of runs.
func (c *candidate) runFor(d time.Duration) func() (int, error) {
	n := max(1, int(math.Ceil(d.Seconds()/max(c.last, 1e-9))))
	return func() (int, error) {
		_, err := c.run(n)
		return n, err
	}
}

// of measures one window while it calls run, which returns how many runs it made.
func (w windows) of(ctx context.Context, meter device.PowerMeter, run func() (int, error)) (window, error) {
	var sum window
	var from, last device.Power
	var began, first time.Time
	looks, ticks := 0.0, 0
	for start := w.now(); ; {
		n, err := run()
		if err != nil || ctx.Err() != nil {
			return sum, errors.Join(err, ctx.Err())
		}
		now, err := meter.Power()
		if err != nil {
			return sum, fmt.Errorf("%w cannot be read: %w", errCounter, err)
		}
		at := w.now()
		ticked := now.Joules != last.Joules && last.Source != ""
		last = now
		switch {
		case at.Sub(start) < w.Settle:
			first = at
		case began.IsZero() && ticked:
			began, from = at, now
		case began.IsZero():
			if first.IsZero() {
				first = at
			}
			if at.Sub(first) > max(w.Length, time.Second) {
				return sum, fmt.Errorf("%w does not tick", errCounter)
			}
		default:
			sum.runs += n
			looks++
			if ticked {
				ticks++
			}
			sum.polled, sum.clock, sum.temperature = sum.polled+now.Watts, sum.clock+now.Clock, sum.temperature+now.Temperature
			if ticked && at.Sub(began) >= w.Length && (ticks >= w.Ticks || ticks == int(looks)) {
				sum.seconds, sum.joules = at.Sub(began).Seconds(), now.Joules-from.Joules
				sum.polled, sum.clock, sum.temperature = sum.polled/looks, sum.clock/looks, sum.temperature/looks
				return sum, sum.check()
			}
			if at.Sub(began) > w.patience() {
				return sum, fmt.Errorf("%w stopped ticking", errCounter)
			}
		}
	}
}

// patience is how long a window may take before the counter counts as stopped.
func (w windows) patience() time.Duration {
	if w.Ticks > 0 { // the counter may tick more slowly than at rest
		return 8*w.Length + time.Second
	}
	return 2*w.Length + time.Second
}

// check refuses a window without positive energy.
func (w window) check() error {
	if !(w.joules > 0) {
		return fmt.Errorf("%w did not increase", errCounter)
	}
	return nil
}

// energy completes c's record with the windows seen, or with the reason why there are none.
func (c *candidate) energy(seen []window, idle *float64, meter device.PowerMeter, why error) {
	e := &record.Energy{Windows: []float64{}}
	c.record.Energy = e
	if why != nil {
		text := why.Error()
		e.Reason = &text
		return
	}
	if p, err := meter.Power(); err == nil {
		e.Source = p.Source
	}
	var all window
	for _, w := range seen {
		e.Windows = append(e.Windows, w.joules/float64(w.runs))
		all.runs += w.runs
		all.seconds, all.joules = all.seconds+w.seconds, all.joules+w.joules
		all.polled, all.clock, all.temperature = all.polled+w.polled, all.clock+w.clock, all.temperature+w.temperature
	}
	joules, watts := median(e.Windows), all.joules/all.seconds
	e.Joules, e.Watts, e.Idle = &joules, &watts, idle
	if idle != nil {
		net := joules - *idle*all.seconds/float64(all.runs)
		e.Net = &net
	}
	n := float64(len(seen))
	for _, v := range []struct {
		sum  float64
		into **float64
	}{{all.polled, &e.Polled}, {all.clock, &e.Clock}, {all.temperature, &e.Temperature}} {
		if mean := v.sum / n; mean > 0 {
			*v.into = &mean
		}
	}
	if e.Polled != nil && math.Abs(*e.Polled-watts) > disputed*watts {
		c.warn(record.WarnEnergy)
	}
}

// median returns the median of values, which must not be empty.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
