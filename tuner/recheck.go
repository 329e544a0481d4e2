package tuner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/oracle"
)

// A recheck says how the answers of a candidate's timed samples are checked. The first check of an
// answer says nothing about later runs, or about runs back to back. So some samples, the last one
// among them, compute from inputs that the program has not had. Where their answer goes, there are no
// numbers before. Other samples are checked as far as time allows.
//
// This is a sample of the runs. Of k checks, each finds a fault in one run of 20 with a probability of
// 1/20, so all of them find it with 1 - 0.95^k: 10 % of the two that are required, 81 % of 32. A point
// whose runs take microseconds gets dozens of checks, and a run of seconds two.
type recheck struct {
	check *verification
	at    []int           // numbers of samples with inputs of their own; nobody can know them
	turns int             // how often the inputs were exchanged
	spent time.Duration   // on checks beyond the required ones
	each  time.Duration   // that a check takes
	own   []oracle.Tensor // the verified answer, if later ones can be compared with no other
}

// recheckShare is the share of the measuring time that checks beyond the required ones may take.
var recheckShare = 0.02

// mostRechecks is how many such checks follow one sample at most.
var mostRechecks = 32

// watchOver begins the checks of c, whose answer has been verified. It will take about so many samples.
func (c *candidate) watchOver(check *verification, samples int) error {
	c.again = recheck{check: check, at: []int{rand.IntN(max(1, samples-1))}}
	if check.whole || check.peer != nil {
		return nil
	}
	var err error
	c.again.own, _, err = oracle.ReadDistinct(c.Plan, c.prog, check.data)
	return err
}

// due reports whether the next sample of c gets inputs of its own. last says that it is the last one.
// So is a sample after which c will have used up its time.
func (c *candidate) due(last bool, limit time.Duration) bool {
	if c.again.check == nil {
		return false
	}
	n := len(c.samples.Wall)
	return last || slices.Contains(c.again.at, n) || overtime(c.expected(), limit)
}

// expected is the time that c will have taken after the next sample.
func (c *candidate) expected() time.Duration {
	next := c.last
	if n := len(c.samples.Wall); n > 0 {
		next = c.samples.Wall[n-1]
	}
	return time.Duration(min(c.record.Cost.Measure+next*float64(c.perSample), 1e9) * float64(time.Second))
}

// renew gives the program inputs that differ from those before, and removes the answer.
func (c *candidate) renew() error {
	v := c.again.check
	c.again.turns++
	rnn.SetTurn(c.Plan, v.data.Turn(c.again.turns))
	if c.Problem.Calls > 0 {
		c.inputs = v.inputs(c.Plan)
	}
	return c.rewrite()
}

// rewrite removes the answer, writes the inputs and packs the weights.
func (c *candidate) rewrite() error {
	if c.record.Rival == nil { // a rival keeps its answer to itself
		if err := oracle.Poison(c.Plan, c.prog); err != nil {
			return err
		}
	}
	return errors.Join(c.Plan.Write(c.prog, c.input), c.prog.Prepare())
}

// attempt calls f for c, once more if another candidate broke the device or the worker was killed.
func attempt(s *Sweep, c *candidate, f func() error) error {
	err := f()
	if errors.Is(err, device.ErrLost) || c.retry(err) {
		if err = s.load(c); err == nil {
			err = f()
		}
	}
	return err
}

// review checks the answer of the latest sample. fresh says that the check is required. Where time is
// left, it checks single runs too.
func review(ctx context.Context, s *Sweep, c *candidate, fresh bool) {
	if c.again.check == nil || c.record.Status != record.OK {
		return
	}
	if fresh {
		reviewOnce(s, c)
	}
	for i := 0; i < mostRechecks && c.record.Status == record.OK && ctx.Err() == nil && c.affords(s.Settings.Idle()); i++ {
		start := time.Now()
		if i > 0 || fresh {
			if _, err := c.run(1); err != nil {
				s.fail(c, err)
				return
			}
		}
		reviewOnce(s, c)
		c.again.spent += time.Since(start)
	}
}

// affords reports whether another check takes little time beside the samples. idle says that samples
// are not timed, so that checks may take as long.
func (c *candidate) affords(idle bool) bool {
	if c.Problem.Calls > 0 || c.record.Rival != nil { // a rival's answer comes in a file
		return false
	}
	share := recheckShare
	if idle {
		share = max(share, 1)
	}
	return (c.again.spent + c.again.each).Seconds() < share*c.record.Cost.Measure
}

// reviewOnce checks the answer that c's program has now. If it is wrong, so are c's times.
func reviewOnce(s *Sweep, c *candidate) {
	start, was := time.Now(), c.record.Verify
	s.tidier.tidy(garbageOf(c.Layout))
	err := attemptReview(s, c)
	c.again.each = time.Since(start)
	c.record.Cost.Verify += c.again.each.Seconds()
	switch v := c.record.Verify; {
	case err != nil:
		s.fail(c, err)
	case !v.OK:
		status, code := record.Incorrect, record.ReasonMismatch
		if _, unconverged, err := oracle.Unconverged(c.Plan, c.prog, v.Tolerance); err == nil && unconverged {
			status, code = record.NotConverged, record.ReasonUnconverged
		}
		c.close()
		c.decline(status, code, "it was right before it was timed, but wrong afterwards: "+mismatch(v))
	default:
		c.record.Verify = was
	}
}

// attemptReview is the check itself: it puts its outcome into c's record.
func attemptReview(s *Sweep, c *candidate) error {
	v := c.again.check
	switch {
	case v.problem.Calls > 0:
		return v.serveAgain(c)
	case v.whole:
		if err := v.checkWhole(c, c.prog, c.Plan, v.data); err != nil || c.record.Verify.OK {
			return err
		}
	default:
		want, label := c.again.own, c.Spec.Label
		if want == nil {
			want, label = v.peer.answer, v.peer.label
		}
		dev, got, err := oracle.Check(c.Plan, c.prog, want)
		if err != nil {
			return err
		}
		dev.Tolerance *= 2 // both answers may be off
		v.note(c, dev, got, record.Verify{Method: record.VerifyPeer, Steps: v.problem.Steps, Share: 1, Peer: label})
		if dev.OK() {
			return nil
		}
	}
	if !v.kinked() {
		return nil
	}
	return thoroughly(func() error { return v.turnedKinks(s, c) })
}

// turnedKinks checks an answer again that may be right though it differs: at a kink either gradient
// is. It checks the states by those that are expected and, where it can, the gradients step by step.
func (v *verification) turnedKinks(s *Sweep, c *candidate) error {
	got, err := oracle.Read(c.Plan, c.prog)
	if err != nil {
		return err
	}
	want := c.again.own
	switch {
	case v.whole:
		want = v.answers.of(v.data, true)
	case want == nil:
		want = v.peer.answer
	}
	dev, err := oracle.Compare(v.problem, statesOf(got), statesOf(want))
	if err != nil || !dev.OK() {
		return err
	}
	each := v.eachMayDiffer(s)
	if !steps(c.Layout) || v.whole && !each {
		if !v.whole {
			v.note(c, dev, got, *c.record.Verify)
		}
		return nil
	}
	turn := v.data.Turn(c.again.turns)
	data := v.data
	if c.again.turns > 0 {
		data = data.Turned(turn)
		rnn.SetTurn(c.Plan, nil) // the steps are checked where they are
		defer rnn.SetTurn(c.Plan, turn)
	}
	check := oracle.Stepwise{Seed: v.seed, FLOPs: referenceFLOPs}
	var covered oracle.Covered
	if each {
		dev, covered, err = check.CheckEach(c.Plan, c.prog, data)
	} else if got, _, err = oracle.ReadDistinct(c.Plan, c.prog, data); err == nil {
		dev, covered, err = check.Check(c.Plan, c.prog, data, got)
	}
	if err != nil || !dev.OK() {
		return err
	}
	v.note(c, dev, got, record.Verify{Method: record.VerifyStepwise, Steps: covered.Steps, Share: covered.Share, Kinks: counted(covered.Kinks)})
	return nil
}

// reviewLast checks the answer of a candidate that takes no more samples. If no sample had inputs of
// its own, one more run back to back has.
func reviewLast(s *Sweep, c *candidate) {
	if c.again.check == nil || c.record.Status != record.OK || c.prog == nil {
		return
	}
	if c.again.turns == 0 && c.Problem.Calls == 0 {
		err := attempt(s, c, func() error {
			err := c.renew()
			if err == nil {
				_, err = c.run(max(1, c.perSample))
			}
			return err
		})
		if err != nil {
			s.fail(c, err)
			return
		}
	}
	reviewOnce(s, c)
}
