package tuner

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
)

// measure verifies and times candidates that share a problem and fit in memory together.
func (s *Sweep) measure(ctx context.Context, all []*candidate, check *verification, rng *rand.Rand) error {
	if err := s.readyAll(ctx, all, check); err != nil {
		return err
	}
	var live []*candidate
	for _, c := range all {
		if c.record.Status != record.OK {
			if err := s.emit(c); err != nil {
				return err
			}
			continue
		}
		live = append(live, c)
	}
	var launch *float64
	if len(live) > 0 {
		launch = LaunchTime(s.Device)
	}
	before := s.Around.Read()
	stop := s.rounds(ctx, live, rng)
	disturbance := s.Around.Since(before, record.OnGPU(s.Device.Info().Key))
	if stop == stopInterrupted || cancelled(ctx) {
		return ended(ctx)
	}
	if s.Settings.Energy && stop != stopBudget && len(live) > 0 {
		if err := s.energies.count(ctx, s, live, rng); err != nil {
			return err
		}
	}
	for _, c := range live {
		if stop == stopBudget || s.Settings.Energy { // its latest run may have been any
			reviewLast(s, c)
		}
		if c.record.Status == record.OK {
			if s.summarize(c, stop); stop != stopBudget && c.usedUp(s.Settings.PointTimeout) {
				c.record.Stats.Stop = stopTimeout
			}
			c.record.Disturb(disturbance)
			c.record.Launch = launch
		}
		c.close()
		if err := s.emit(c); err != nil {
			return err
		}
	}
	return nil
}

// LaunchTime measures how long a launch takes on d now; nil: it is unknown. If it fails, so will whatever is measured
// next, and its record says why.
func LaunchTime(d device.Device) *float64 {
	m, ok := d.(device.LaunchMeter)
	if !ok {
		return nil
	}
	seconds, err := m.LaunchTime()
	if err != nil || seconds <= 0 {
		return nil
	}
	return &seconds
}

// readyAll makes candidates ready. Those that can be checked by themselves come first, since the
// others may have to be compared with one of them.
func (s *Sweep) readyAll(ctx context.Context, all []*candidate, check *verification) error {
	check.taken = 0
	for _, c := range all {
		check.taken += c.Memory + c.Laid
	}
	loadRivals(s, all, check)
	for _, alone := range []bool{true, false} {
		for _, c := range all {
			if check.alone(c.Layout) != alone {
				continue
			}
			if err := ended(ctx); err != nil {
				return err
			}
			if s.readyOrRetry(ctx, c, check); cancelled(ctx) { // which ended it
				return ctx.Err()
			}
		}
	}
	return nil
}

// ready compiles, verifies and warms up one candidate and sets how many runs
// make a sample. It stops early once the user has ended ctx.
func (s *Sweep) ready(ctx context.Context, c *candidate, check *verification) {
	cost := &c.record.Cost
	start := time.Now()
	lap := func(field *float64) {
		*field += time.Since(start).Seconds()
		start = time.Now()
	}
	c.input = check.input()
	s.watch(Event{Phase: Loading, Point: c.record.Point, Label: c.Spec.Label})
	if err := s.load(c); err != nil {
		s.fail(c, err)
		return
	}
	if lap(&cost.Setup); cancelled(ctx) {
		return
	}
	s.watch(Event{Phase: Verifying, Point: c.record.Point, Label: c.Spec.Label})
	if s.Settings.Verify {
		if err := check.settle(ctx, s, c); err != nil {
			s.fail(c, err)
			return
		}
		lap(&cost.Verify)
		if v := c.record.Verify; v == nil || !v.OK {
			c.close()
			if c.record.Status == record.OK {
				c.decline(record.Incorrect, record.ReasonMismatch, mismatch(v))
			}
			return
		}
		if err := c.watchOver(check, s.Settings.Rounds); err != nil {
			s.fail(c, err)
			return
		}
	} else {
		c.warn(record.WarnUnverified)
	}
	if cancelled(ctx) {
		return
	}
	s.watch(Event{Phase: Warming, Point: c.record.Point, Label: c.Spec.Label})
	if err := warm(ctx, s, c); err != nil {
		s.fail(c, err)
		return
	}
	if c.Problem.Calls > 0 {
		c.perSample, c.inputs = CallsPerRound(c.Problem, s.Settings), check.inputs(c.Plan)
	}
	lap(&cost.Warmup)
}

// mostRuns is how many runs a sample has at most. They take longer than any sample should, unless a
// rival says otherwise.
const mostRuns = 1 << 20

// longest is how many times as long as planned a sample may take by this process's clock.
const longest = 100

// warm runs c until the warm-up has lasted long enough or ctx ends, and sets how many runs make a sample.
func warm(ctx context.Context, s *Sweep, c *candidate) error {
	start := clock(s)
	one, whole := math.Inf(1), math.Inf(1) // the shortest run so far, as stated and by this clock
	for n := 1; s.Settings.Warmup+s.Settings.MinTime > 0; {
		began := clock(s)
		b, err := c.run(n)
		if err != nil {
			return err
		}
		now := clock(s)
		took := now.Sub(began)
		one, whole = min(one, b.Wall.Seconds()/float64(n)), min(whole, took.Seconds()/float64(n))
		if now.Sub(start) >= s.Settings.Warmup || overtime(b.Wall, s.Settings.PointTimeout) || ctx.Err() != nil {
			break
		}
		if took < uncut/2 {
			n = min(2*n, 1<<20)
		}
	}
	c.perSample = int(max(1, min(mostRuns, math.Ceil(s.Settings.MinTime.Seconds()/one))))
	if c.perSample > 1 {
		c.perSample = max(c.perSample, s.Settings.MinIters)
	}
	if most := longest * s.Settings.MinTime.Seconds() / whole; c.perSample > 1 { // whatever a rival states
		c.perSample = int(max(1, min(float64(c.perSample), most)))
	}
	if s.Settings.Cache == "cold" { // evicting takes longer than most runs
		c.perSample = min(c.perSample, 3)
	}
	if c.last = one; s.Settings.Idle() {
		return c.runAtOnce()
	}
	return nil
}

// runAtOnce sets how many runs follow each other where nothing is timed: a good many if they are
// short, since an answer may be right for some runs and then no more.
func (c *candidate) runAtOnce() error {
	const most, long = 100, 20 * time.Millisecond
	b, err := c.run(2)
	c.perSample = int(max(2, min(most, float64(long)/float64(max(1, b.Wall))*2)))
	return err
}

// load compiles c and writes its inputs, if that was not done ahead, and once more if the worker was killed
// meanwhile. It computes the floor of the compiled program.
func (s *Sweep) load(c *candidate) error {
	var err error
	if c.early != nil {
		err, c.early = *c.early, nil
	} else {
		err = c.load(s.Device)
	}
	if c.retry(err) {
		c.close()
		err = c.load(s.Device)
	}
	if err == nil {
		peak, _ := Peak(s.Limits, c.record.Device, c.record.Point.Precision)
		c.floor, err = Floor(s.Machine, c.Layout, c.record.Kernels, peak, s.Settings.Cache == "cold")
	}
	return err
}

// load compiles c and writes its inputs.
func (c *candidate) load(d device.Device) error {
	var err error
	if c.prog, err = c.host(d).Compile(c.Schedule, c.DeviceKnobs); err != nil {
		return err
	}
	kernels := c.prog.Kernels()
	c.record.Kernels, c.record.Predicted = Kernels(kernels), Predicted(kernels)
	if err := c.Plan.Write(c.prog, c.input); err != nil {
		return err
	}
	if i, ok := d.(device.Interpreter); ok && c.record.Rival == nil && len(i.Interpreted(c.Schedule)) > 0 {
		c.warn(record.WarnInterpreted)
	}
	return c.prog.Prepare()
}

// fail ends a candidate because of err, which chooses its status and reason code.
func (s *Sweep) fail(c *candidate, err error) {
	c.close()
	switch {
	case errors.Is(err, schedule.ErrUnsupported):
		c.decline(record.Skipped, ReasonOf(err, record.ReasonResource), err.Error())
	case c.record.Rival != nil:
		c.failRival(err)
	case lost(err):
		s.lose(c, err)
	case errors.Is(err, device.ErrHang):
		c.decline(record.Timeout, record.ReasonHang, err.Error())
	case errors.Is(err, device.ErrFault) && s.Device.Info().Name == "cpu":
		c.decline(record.Failed, record.ReasonPanic, err.Error())
	case errors.Is(err, device.ErrFault):
		c.decline(record.Failed, record.ReasonCUDA, err.Error())
	case errors.Is(err, device.ErrMemory):
		c.decline(record.Failed, record.ReasonOOM, err.Error())
		s.backstop.add(c)
	default:
		c.decline(record.Failed, record.ReasonError, err.Error())
	}
}

// Why rounds ended.
const (
	stopTarget      = "target_ci"
	stopStable      = "noise_stable"
	stopMax         = "max_rounds"
	stopClear       = "clear"
	stopTimeout     = "timeout"
	stopBudget      = "budget"
	stopInterrupted = "interrupted"
)

// rounds times candidates in turns and says why it stopped.
func (s *Sweep) rounds(ctx context.Context, live []*candidate, rng *rand.Rand) string {
	if len(live) == 0 {
		return stopMax
	}
	// No garbage collection within a sample: all memory is allocated by now. What samples and their
	// checks leave behind is collected between them once it is much.
	s.tidier.kept = 0
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var widths []float64 // per round, the widest interval
	order := make([]int, len(live))
	for i := range order {
		order[i] = i
	}
	last, wanted := false, "" // the round whose samples are the last ones; why rounds end
	for round := 0; ; round++ {
		last = wanted != "" || round+1 == s.Settings.Rounds || round+1 >= s.Settings.MaxRounds
		s.tidier.tidy(leastGarbage)
		if s.Settings.Order != "sequential" {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, i := range order {
			if ctx.Err() != nil {
				return interrupted(ctx, round)
			}
			if c := live[i]; c.record.Status == record.OK && !c.usedUp(s.Settings.PointTimeout) {
				s.watch(Event{Phase: Measuring, Point: c.record.Point, Label: c.Spec.Label, Round: round, Rounds: s.Settings.Rounds})
				if !s.take(ctx, c, len(live) > 1, last) {
					return interrupted(ctx, round)
				}
			}
		}
		done := round + 1
		widest, known := 0.0, true
		for _, c := range live {
			if c.record.Status != record.OK || c.usedUp(s.Settings.PointTimeout) { // it will have no more samples
				continue
			}
			st, _ := record.Summarize(c.samples.Wall, 0)
			w, ok := st.HalfWidth()
			widest, known = max(widest, w), known && ok
		}
		widths = append(widths, widest)
		switch {
		case !slices.ContainsFunc(live, func(c *candidate) bool { return c.record.Status == record.OK && !c.usedUp(s.Settings.PointTimeout) }):
			return stopTimeout
		case done < s.Settings.Rounds:
		case s.Settings.Until == config.UntilClear:
			if stop := s.share.stop(live, done, s.Settings.MaxRounds); stop != "" {
				return stop
			}
		case known && (widest <= s.Settings.TargetCI || s.Settings.TargetCI == 0):
			wanted = stopTarget
		case done >= s.Settings.MaxRounds:
			wanted = stopMax
		case known && stable(widths):
			wanted = cmp.Or(wanted, stopStable)
		}
		if last && wanted != "" { // else one more round, whose answers are checked
			return wanted
		}
	}
}

// interrupted is why rounds end within a round. When the budget ends, samples are kept if there are
// enough for a median.
func interrupted(ctx context.Context, done int) string {
	const enough = 3
	if ended(ctx) == ErrBudget && done >= enough {
		return stopBudget
	}
	return stopInterrupted
}

// overtime reports whether d exceeds the limit of one technique at one point; limit 0: never.
func overtime(d, limit time.Duration) bool { return limit > 0 && d > limit }

// usedUp reports whether c has used up its time. Others go on without it.
func (c *candidate) usedUp(limit time.Duration) bool {
	return len(c.samples.Wall) > 0 && overtime(time.Duration(c.record.Cost.Measure*float64(time.Second)), limit)
}

// stable reports whether more rounds no longer narrow the widest interval: it shrank by less than a
// tenth over the last stableRounds.
func stable(widths []float64) bool {
	const stableRounds = 8
	n := len(widths)
	return n > 2*stableRounds && widths[n-1] > 0.9*widths[n-1-stableRounds]
}

func (c *candidate) warn(w string) {
	for _, have := range c.record.Warnings {
		if have == w {
			return
		}
	}
	c.record.Warnings = append(c.record.Warnings, w)
}

// summarize completes the record of a measured candidate.
func (s *Sweep) summarize(c *candidate, stop string) {
	r := &c.record
	if c.samples.Device == nil {
		c.samples.Device = []float64{}
	}
	if c.samples.Clock == nil {
		c.samples.Clock = []float64{}
	}
	r.Samples = &c.samples
	if len(c.called.Wall) > 0 {
		r.Latency = record.NewLatency(c.called.Wall, c.called.Run)
	}
	stats, warnings := record.Summarize(c.samples.Wall, s.Settings.TargetCI)
	stats.Stop = stop
	r.Stats = &stats
	for _, w := range warnings {
		c.warn(w)
	}
	r.Rate = &record.Rate{Flops: float64(r.Work.Flops) / stats.Median, Bytes: float64(r.Work.Bytes) / stats.Median}
	r.Rate.SetPeak(Peak(s.Limits, r.Device, r.Point.Precision))
	r.Floor = floorOf(c.floor, stats.Median)
}
