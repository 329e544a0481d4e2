package tuner

import (
	"errors"
	"runtime"
	"time"

	"rnnbench/device"
	"rnnbench/record"
)

// clock is the time by which warm-ups end and samples are charged.
func clock(s *Sweep) time.Time {
	if s.now == nil {
		return time.Now()
	}
	return s.now()
}

// take takes one sample and checks it. It tries again if another candidate broke the device or, once,
// if the worker was killed. others says that other candidates ran since, and last that c takes no
// more samples.
func (s *Sweep) take(c *candidate, others, last bool) {
	fresh := c.due(last, s.Settings.PointTimeout)
	if fresh && c.Problem.Calls == 0 {
		renewing := time.Now()
		s.tidier.tidy(garbageOf(c.Layout))
		if err := attempt(s, c, func() error { return errors.Join(refill(s, c, others), c.renew()) }); err != nil {
			s.fail(c, err)
			return
		}
		c.record.Cost.Verify += time.Since(renewing).Seconds()
		others = false // an untimed run would leave the answer that the sample has to
	}
	start := clock(s)
	err := attempt(s, c, func() error {
		defer func() { others = true }()
		return s.sample(c, others)
	})
	if err != nil {
		s.fail(c, err)
	}
	c.record.Cost.Measure += clock(s).Sub(start).Seconds()
	review(s, c, fresh)
	judge(s, c)
}

// refill makes an untimed run that fills the caches if others ran in between, unless it would take as
// long as a sample.
func refill(s *Sweep, c *candidate, others bool) error {
	if !others || s.Settings.Cache == "cold" || c.last >= s.Settings.MinTime.Seconds() {
		return nil
	}
	_, err := c.prog.Run(1)
	return err
}

// sample times runs back to back, with full caches.
func (s *Sweep) sample(c *candidate, others bool) error {
	if c.Problem.Calls > 0 {
		return c.sampleCalls(s.Settings, others)
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
		b, err = c.prog.Run(c.perSample)
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

// cold times single runs, each with caches full of other data.
func (c *candidate) cold(e device.Evicter) (device.Sample, error) {
	var sum device.Sample
	for range c.perSample {
		if err := e.Evict(); err != nil {
			return sum, err
		}
		b, err := c.prog.Run(1)
		if err != nil {
			return sum, err
		}
		sum.Wall += b.Wall
		sum.Device += b.Device
		sum.Throttled = sum.Throttled || b.Throttled
		sum.Clock = b.Clock
	}
	return sum, nil
}
