package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/rnn"
)

// tooFast is how many times as fast as the machine was measured to be no technique can be. The
// machine's limits are measured in a second, beside whatever else runs then, and may be too low by half.
const tooFast = 2

// impossible says why no program can take so few seconds for a run of c; "": one can.
func impossible(s *Sweep, c *candidate, seconds float64) (code, why string) {
	work := float64(min(c.record.Work.Flops, c.record.Work.Executed))
	if peak := highestPeak(s.Limits, c.record.Device, c.record.Point.Precision); peak > 0 && work > tooFast*peak*seconds {
		return record.ReasonPeak, fmt.Sprintf("a run takes %s, or %s: %.3g times what the device was measured to reach at most",
			quantity.SI(seconds, "s"), quantity.SI(work/seconds, "FLOP/s"), work/seconds/peak)
	}
	bytes, rate := farBytes(s, c)
	if least := bytes / max(rate, 1); rate > 0 && least > tooFast*seconds {
		return record.ReasonBytes, fmt.Sprintf("a run takes %s, but %s of its data fit into no cache and take %s to read",
			quantity.SI(seconds, "s"), quantity.Bytes(bytes), quantity.SI(least, "s"))
	}
	return "", ""
}

// highestPeak is the highest rate at which a program can compute the products of a precision. Products
// in single precision may be sums of products in fewer bits.
func highestPeak(l device.Limits, key, precision string) float64 {
	peak, _ := Peak(l, key, precision)
	if precision != rnn.FP32.String() && precision != rnn.TF32.String() {
		return peak
	}
	tensor := 0.0
	for _, r := range l.More {
		if r.Unit == "FLOP/s" {
			tensor = max(tensor, r.Value)
		}
	}
	if tensor == 0 && record.OnGPU(key) { // unknown
		return 0
	}
	return max(peak, tensor)
}

// bytesPerFLOP is how many bytes a processor's memory gives at least for each operation at its peak.
const bytesPerFLOP = 0.25

// farBytes is how many bytes of weights and inputs a run must read from the main memory, since all
// caches together are smaller, and the rate of that memory in bytes per second. It is 0 where
// something is unknown.
func farBytes(s *Sweep, c *candidate) (bytes, rate float64) {
	if c.Plan.Part || s.Machine == nil || len(s.Machine.Levels) == 0 || s.Limits.Copy == 0 {
		return 0, 0
	}
	caches, modules := 0.0, 1.0
	levels := s.Machine.Levels
	for i := len(levels) - 1; i >= 0; i-- { // from the outermost
		if i < len(levels)-1 {
			caches += modules * levels[i].M
		}
		modules *= float64(max(1, levels[i].P))
	}
	weight, state := valueBytes(c.Problem.Precision, s.Machine.GPU != nil)
	if bytes = givenBytes(c.Problem, weight, state) - caches; bytes <= 0 || caches == 0 {
		return 0, 0
	}
	rate = max(s.Limits.Copy, levels[len(levels)-1].B)
	if s.Machine.GPU == nil { // beside other programs, a copy rate of 0.2 GB/s was measured
		rate = max(rate, s.Limits.FLOPS*bytesPerFLOP)
	}
	return bytes, rate
}

// grows checks that more runs of c take more time. It compares the latest sample with a few runs. If
// they are close, it doubles the runs until they take as long as a sample should: whatever else the
// machine does can only lengthen them. A rival's times may be any numbers, so it looks several times,
// and the time must become several times as long.
func grows(ctx context.Context, s *Sweep, c *candidate) error {
	const share, much, far = 8, 4, 16
	looks := 1
	if c.record.Rival != nil {
		looks = 3
	}
	n := c.perSample
	few := max(1, n/share)
	need := 1 + (float64(n)/float64(few)-1)/4
	long, short := c.samples.Wall[len(c.samples.Wall)-1]*float64(n), math.Inf(1)
	for look := range looks {
		b, err := c.runs(ctx, few)
		if err != nil {
			return err
		}
		if short = min(short, b.Wall.Seconds()); look == 0 {
			continue
		}
		if b, err = c.runs(ctx, n); err != nil {
			return err
		}
		long = min(long, b.Wall.Seconds())
	}
	if long >= need*short {
		return nil
	}
	enough := s.Settings.MinTime.Seconds() / 2
	if c.record.Rival != nil {
		enough = max(enough, much*short)
	}
	contradictions := 0
	for more := 2 * n; ; more *= 2 {
		var start time.Time
		var b device.Sample
		for range 2 { // the first may be long by a pause
			start = time.Now()
			var err error
			if b, err = c.runs(ctx, more); err != nil {
				return err
			}
			if b.Wall.Seconds() < enough {
				break
			}
		}
		if b.Wall.Seconds() >= enough {
			return nil
		}
		if host := time.Since(start).Seconds(); host > far*max(enough, b.Wall.Seconds()) {
			contradictions++ // one may be a pause of this process
		}
		if contradictions > 1 || more >= mostRuns || more >= 64*n && c.record.Rival != nil {
			c.rule(record.ReasonGrowth, fmt.Sprintf("%d runs take %s and %d runs %s: the time does not grow with the number of runs",
				few, quantity.SI(short, "s"), more, quantity.SI(b.Wall.Seconds(), "s")))
			return nil
		}
	}
}

// keepsPace checks a rival's calls by runs back to back and the clock of this program: calls do not take
// much less time, and more runs take more. Other techniques' calls are timed here. What else the machine
// does can only lengthen runs. So any of many short looks clears an honest rival, and a look that lasts
// much longer than a program is kept waiting shows whether time grows.
func keepsPace(ctx context.Context, s *Sweep, c *candidate) error {
	const looks, far, short, long = 60, 4, 0.004, 0.15 // seconds: less than a scheduler's slice, and many slices
	if c.record.Rival == nil {
		return nil
	}
	took := func(n int) (float64, error) {
		start := time.Now()
		_, err := c.runs(ctx, n)
		return time.Since(start).Seconds(), err
	}
	stays := func(n int, t float64) error {
		c.rule(record.ReasonGrowth, fmt.Sprintf("%d runs take %s: the time does not grow with the number of runs", n, quantity.SI(t, "s")))
		return nil
	}
	n, call, pace := c.perSample, c.samples.Wall[0], math.Inf(1)
	for look := 0; pace > far*call; {
		t, err := took(n)
		if err != nil {
			return err
		}
		switch {
		case t >= short && look == looks:
			c.rule(record.ReasonGrowth, fmt.Sprintf("a call takes %s, as it says, but runs back to back take %s each by this program's clock", quantity.SI(call, "s"), quantity.SI(pace, "s")))
			return nil
		case t >= short:
			pace = min(pace, t/float64(n))
			look++
		case n >= mostRuns:
			return stays(n, t)
		default:
			n *= 2
		}
	}
	n = int(min(mostRuns, max(1, long/call)))
	t, err := took(n)
	if err == nil && far*t < float64(n)*call {
		return stays(n, t)
	}
	return err
}

// rule ends c because its times cannot be true.
func (c *candidate) rule(code, why string) {
	c.close()
	c.decline(record.Impossible, code, why)
}

// judge ends c if the time of its latest sample cannot be true.
func judge(ctx context.Context, s *Sweep, c *candidate) {
	n := len(c.samples.Wall)
	if c.record.Status != record.OK || n == 0 {
		return
	}
	if code, why := impossible(s, c, c.samples.Wall[n-1]); code != "" {
		c.rule(code, why)
		return
	}
	check := grows
	if c.Problem.Calls > 0 {
		check = keepsPace
	}
	if n > 1 || c.perSample < 2 || s.Settings.Cache == "cold" || s.Settings.Idle() {
		return
	}
	start := time.Now()
	if err := check(ctx, s, c); err != nil && !errors.Is(err, errCut) {
		s.fail(c, err)
	}
	c.record.Cost.Verify += time.Since(start).Seconds()
}
