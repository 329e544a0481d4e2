package tuner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
	"rnnbench/tuner/config"
)

// leastCalls is the fewest calls that have a 99th percentile.
const leastCalls = 100

// checkCalls refuses a point with too few calls for percentiles.
func checkCalls(p record.Point) error {
	if p.Calls > 0 && p.Calls < leastCalls {
		return fmt.Errorf("tuner: calls is %d: a 99th percentile needs at least %d", p.Calls, leastCalls)
	}
	return nil
}

// CallsPerRound is how many calls of p a technique makes in each round. The first m.Rounds rounds
// make all of them. Where nothing is timed it is one.
func CallsPerRound(p rnn.Problem, m config.Measure) int {
	if m.Rounds == 1 && m.MinTime == 0 {
		return 1
	}
	return (p.Calls + m.Rounds - 1) / m.Rounds
}

// settling is how many untimed calls refill the caches after other techniques ran. Slow calls need one.
const settling = 5

// sampleCalls times each call of a round by itself. The sample is their median. others says that
// other techniques ran since.
func (c *candidate) sampleCalls(ctx context.Context, m config.Measure, others bool) error {
	out, n := rnn.CallOutput(c.Plan)
	calls := device.Calls{In: c.Plan.Given, Inputs: c.inputs, Each: c.Plan.Given.Elements(), Out: out, Read: n}
	if others {
		if calls.N = settling; c.last >= m.MinTime.Seconds() {
			calls.N = 1
		}
		if _, err := device.Call(c.prog, calls); err != nil {
			return err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	some, err := c.call(ctx, calls, m.PointTimeout)
	runtime.ReadMemStats(&after)
	if err != nil {
		return err
	}
	if some.Throttled {
		c.warn(record.WarnThrottled)
	}
	if after.NumGC != before.NumGC {
		c.warn(record.WarnGC)
	}
	c.called.Wall = append(c.called.Wall, some.Wall...)
	c.called.Run = append(c.called.Run, some.Run...)
	c.samples.Iters = append(c.samples.Iters, len(some.Wall))
	c.samples.Wall = append(c.samples.Wall, record.MedianOf(some.Wall))
	return nil
}

// call makes the calls of a round in batches of about uncut. It stops early after limit; 0 is no limit.
// If ctx ends between batches, the error is errCut.
func (c *candidate) call(ctx context.Context, calls device.Calls, limit time.Duration) (all device.Called, err error) {
	const most = 1 << 16
	start := time.Now()
	for left := c.perSample; left > 0 && (len(all.Wall) == 0 || !overtime(time.Since(start), limit)); left -= calls.N {
		if len(all.Wall) > 0 && ctx.Err() != nil {
			return all, errCut
		}
		calls.N = min(left, max(1, int(min(most, uncut.Seconds()/c.last))))
		some, err := device.Call(c.prog, calls)
		if err != nil {
			return all, err
		}
		all.Append(some)
	}
	return all, nil
}

// servedFLOPs limits the work of the calls that a check makes, and servedBytes the memory of their
// answer.
const (
	servedFLOPs = 1e11
	servedBytes = 1 << 28
)

// A service is the part of a problem's calls that is checked. The calls of served are made and
// checked step by step. The first of them, checked, are compared with the reference of the whole
// sequence. Both problems have all their calls as one sequence.
type service struct {
	distinct        int
	served, checked rnn.Problem
}

// serviceOf chooses how many calls of p are checked: all, as far as time and memory allow.
func serviceOf(p rnn.Problem) service {
	distinct, checked := sample(p.Sequence())
	calls := func(n float64) rnn.Problem {
		q := p
		q.Calls = int(min(float64(p.Calls), max(3, n)))
		return q.Sequence()
	}
	s := service{distinct: distinct, checked: calls(float64(checked.Steps) / float64(p.Steps))}
	most := min(servedFLOPs/float64(max(1, p.FLOPs())), servedBytes/float64(oracle.StepwiseBytes(p, distinct)))
	s.served = calls(max(most, float64(s.checked.Steps/p.Steps)))
	return s
}

// bytes is the host memory that the check takes.
func (s service) bytes() int64 {
	return max(oracle.ReferenceBytes(s.checked, s.distinct), (100+stepwiseGarbage)*oracle.StepwiseBytes(s.served, s.distinct)/100)
}

// serve checks the calls of c: the states after each call, and the output that the host reads.
func (v *verification) serve(ctx context.Context, c *candidate) error {
	defer debug.SetGCPercent(debug.SetGCPercent(stepwiseGarbage))
	of := serviceOf(v.problem)
	if v.short == nil {
		v.short = v.data.Cut(of.checked)
	}
	all := v.data
	if c.Plan.Whole != nil && v.problem.Steps > 1 { // such a plan shows only the states of a call's last step
		all = v.short
	}
	got, apart, err := oracle.Serve(c.Plan, c.prog, all, func() error {
		if cancelled(ctx) {
			return ctx.Err()
		}
		_, err := c.prog.Run(1)
		return err
	})
	if err != nil {
		return err
	}
	dev, err := oracle.CompareCalls(v.short, got, v.answers.of(v.short, false))
	how := record.Verify{Method: record.VerifyWhole, Steps: of.checked.Steps, Share: 1}
	if err == nil && of.checked.Steps < v.problem.Sequence().Steps {
		if how.Method, how.Share = record.VerifyShorter, 0; oracle.EveryStep(c.Plan.Problem, got) {
			var steps oracle.Deviation
			var covered oracle.Covered
			steps, covered, err = oracle.Stepwise{Seed: v.seed, FLOPs: referenceFLOPs}.CheckCalls(c.Plan, all, got)
			how.Method, how.Steps, how.Share = record.VerifyStepwise, covered.Steps, covered.Share
			dev = dev.OrWorse(steps)
		}
		if how.Steps < v.problem.Sequence().Steps {
			c.warn(record.WarnPart)
		}
	}
	if err != nil {
		return err
	}
	v.note(c, dev.OrWorse(apart), got, how)
	return nil
}

// inputs returns the inputs that the timed calls take in turns: 4 MiB at most.
func (v *verification) inputs(p *rnn.Plan) []float32 { return rnn.CallInputs(p, v.data, 1<<20) }

// CheckCalls refuses points whose calls are invalid, and settings that cannot go with calls that are
// timed one by one.
func CheckCalls(tasks []Task, m config.Measure) error {
	for _, t := range tasks {
		if t.Point.Calls == 0 {
			continue
		}
		if _, err := Problem(t.Point); err != nil {
			return fmt.Errorf("%v: %w", t.Point, err)
		}
		switch {
		case m.Cache == "cold":
			return errors.New("calls follow one another at once, so that caches stay filled: use --cache hot with --calls")
		case m.Energy:
			return errors.New("energy is counted over runs back to back, but calls are timed one by one: omit --energy or --calls")
		}
	}
	return nil
}

// CallsChecked is how many calls of p a check makes.
func CallsChecked(p rnn.Problem) int { return serviceOf(p).served.Steps / p.Steps }

// mostCallsAgain is how many calls a check of timed calls makes.
const mostCallsAgain = 64

// serveAgain makes calls as they are timed, from inputs that the program has not had, and checks the
// answer of the last one.
func (v *verification) serveAgain(c *candidate) error {
	if err := c.renew(); err != nil {
		return err
	}
	each, steps := c.Plan.Given.Elements(), c.Plan.Steps
	n := min(v.short.Problem.Steps/steps, len(c.inputs)/each, mostCallsAgain)
	out, read := rnn.CallOutput(c.Plan)
	if _, err := device.Call(c.prog, device.Calls{In: c.Plan.Given, Inputs: c.inputs, Each: each, Out: out, Read: read, N: n}); err != nil {
		return err
	}
	got, apart, err := oracle.ReadDistinct(c.Plan, c.prog, v.short)
	if err != nil {
		return err
	}
	dev, err := oracle.CompareCall(v.short, n, steps, got, v.answers.of(v.short, false))
	if err != nil {
		return err
	}
	v.note(c, dev.OrWorse(apart), got, record.Verify{Method: record.VerifyWhole, Steps: n * steps, Share: 1})
	return nil
}
