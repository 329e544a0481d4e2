package tuner

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"rnnbench/device"
	"rnnbench/record"
)

// errCut says that ctx ended in the middle of a sample.
var errCut = errors.New("tuner: the sample was not finished")

// clock is the time by s.Now or, where that is not set, by the system's clock.
func clock(s *Sweep) time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

// take takes one sample and checks it. It tries again if another candidate broke the device or, once,
// if the worker was killed. others says that other candidates ran since, and last that c takes no
// more samples. It returns false if ctx ended first: then there is no sample.
func (s *Sweep) take(ctx context.Context, c *candidate, others, last bool) bool {
	fresh := c.due(last, s.Settings.PointTimeout)
	if fresh && c.Problem.Calls == 0 {
		renewing := time.Now()
		s.tidier.tidy(garbageOf(c.Layout))
		if err := attempt(s, c, func() error { return errors.Join(refill(s, c, others), c.renew()) }); err != nil {
			s.fail(c, err)
			return true
		}
		c.record.Cost.Verify += time.Since(renewing).Seconds()
		others = false // an untimed run would leave the answer that the sample has to
	}
	start := clock(s)
	err := attempt(s, c, func() error {
		defer func() { others = true }()
		return s.sample(ctx, c, others)
	})
	c.record.Cost.Measure += clock(s).Sub(start).Seconds()
	if errors.Is(err, errCut) {
		return false
	}
	if err != nil {
		s.fail(c, err)
	}
	review(ctx, s, c, fresh)
	judge(ctx, s, c)
	return true
}

// refill makes an untimed run that fills the caches if others ran in between, unless it would take as
// long as a sample.
func refill(s *Sweep, c *candidate, others bool) error {
	if !others || s.Settings.Cache == "cold" || c.last >= s.Settings.MinTime.Seconds() {
		return nil
	}
	_, err := c.run(1)
	return err
}

// sample times runs back to back, with full caches.
func (s *Sweep) sample(ctx context.Context, c *candidate, others bool) error {
	if c.Problem.Calls > 0 {
		return c.sampleCalls(ctx, s.Settings, others)
	}
	var before, after runtime.MemStats
	cold := s.Settings.Cache == "cold"
	if err := refill(s, c, others); err != nil {
		return err
	}
	runtime.ReadMemStats(&before)
	var b device.Sample
	var err error
	if cold {
		b, err = c.cold(s.Device.(device.Evicter))
	} else {
		b, err = c.runs(ctx, c.perSample)
	}
	runtime.ReadMemStats(&after)
	if err != nil {
		return err
	}
	if b.Throttled {
		c.warn(record.WarnThrottled)
	}
	if after.NumGC != before.NumGC {
		c.warn(record.WarnGC)
	}
	n := float64(c.perSample)
	c.samples.Iters = append(c.samples.Iters, c.perSample)
	c.samples.Wall = append(c.samples.Wall, b.Wall.Seconds()/n)
	if b.Device > 0 {
		c.samples.Device = append(c.samples.Device, b.Device.Seconds()/n)
	}
	if b.Clock > 0 {
		c.samples.Clock = append(c.samples.Clock, b.Clock)
	}
	return nil
}

// uncut is about how long runs follow each other at most before a signal is looked for. It is much longer
// than handing runs over takes.
const uncut = time.Second

// runs makes n runs back to back, in equal parts if they take much longer than uncut. If ctx ends between
// parts, the error is errCut. A rival is asked once, since its process ends with ctx.
func (c *candidate) runs(ctx context.Context, n int) (sum device.Sample, err error) {
	part := n
	if parts := float64(n) * c.last / uncut.Seconds(); parts >= 2 && !math.IsInf(c.last, 0) && c.record.Rival == nil {
		part = max(1, int(math.Ceil(float64(n)/parts)))
	}
	for {
		b, err := c.run(min(part, n))
		if err != nil {
			return sum, err
		}
		sum = joined(sum, b)
		if n -= part; n <= 0 {
			return sum, nil
		}
		if ctx.Err() != nil {
			return sum, errCut
		}
	}
}

// joined is two samples as one. The clock is that at the end.
func joined(a, b device.Sample) device.Sample {
	return device.Sample{Wall: a.Wall + b.Wall, Device: a.Device + b.Device, Throttled: a.Throttled || b.Throttled, Clock: b.Clock}
}

// cold times single runs, each with caches full of other data.
func (c *candidate) cold(e device.Evicter) (device.Sample, error) {
	var sum device.Sample
	for range c.perSample {
		if err := e.Evict(); err != nil {
			return sum, err
		}
		b, err := c.run(1)
		if err != nil {
			return sum, err
		}
		sum = joined(sum, b)
	}
	return sum, nil
}
