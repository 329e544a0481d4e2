package tuner

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"runtime/debug"
	"slices"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/oracle"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A verification checks the techniques at one point. It holds the inputs and, once needed, the
// answer of the reference or of a technique that was checked.
//
// Small problems are checked whole. The run of a large problem is checked step by step, by
// oracle.Stepwise. All steps and sequences of the other techniques are then compared with that run. A
// technique that allows neither check is verified over fewer steps.
type verification struct {
	answers *answers
	problem rnn.Problem
	seed    uint64
	whole   bool // the reference computes the whole problem
	data    *rnn.Data
	short   *rnn.Data // fewer steps of it; nil until it is needed
	peer    *peer     // nil: none so far
	sought  bool      // seek has looked for a peer
	taken   int64     // bytes of the programs in memory
}

// A peer is a technique whose run was checked, with its answer.
type peer struct {
	label  string
	answer []oracle.Tensor
}

// referenceFLOPs is how much the reference may compute at a point: about a second on one processor.
var referenceFLOPs = 4e9

// answers caches the reference's latest answers in a sweep. Long problems that differ only in their
// length are checked over the same few steps, so they share an answer.
type answers struct {
	list   []answer
	values int // of all
}

type answer struct {
	problem  rnn.Problem
	distinct int
	tensors  []oracle.Tensor
	values   int
	whole    bool          // of a whole problem: only the next point may use it
	kinks    *oracle.Kinks // in the reference; nil: not counted yet
}

// keptValues is how many values are kept at most, a gigabyte, besides those of the latest answer.
const keptValues = 1 << 27

// of returns the reference's answer for d. d's values must follow from its problem. whole says that
// no other problem shares the answer: then the next answer replaces it.
func (a *answers) of(d *rnn.Data, whole bool) []oracle.Tensor {
	for _, known := range a.list {
		if known.problem == d.Problem && known.distinct == d.Distinct {
			return known.tensors
		}
	}
	a.list = slices.DeleteFunc(a.list, func(old answer) bool {
		if old.whole {
			a.values -= old.values
		}
		return old.whole
	})
	n := answer{problem: d.Problem, distinct: d.Distinct, tensors: oracle.Reference(d), whole: whole}
	for _, t := range n.tensors {
		n.values += len(t.Values)
	}
	a.list, a.values = append(a.list, n), a.values+n.values
	for len(a.list) > 1 && a.values > keptValues {
		a.values -= a.list[0].values
		a.list = slices.Delete(a.list, 0, 1)
	}
	return n.tensors
}

// kinksOf returns the kinks in the reference's run of d. They are cached with its answer.
func (a *answers) kinksOf(d *rnn.Data) oracle.Kinks {
	for i := range a.list {
		if known := &a.list[i]; known.problem == d.Problem && known.distinct == d.Distinct {
			if known.kinks == nil {
				found := oracle.FindKinks(d)
				known.kinks = &found
			}
			return *known.kinks
		}
	}
	return oracle.FindKinks(d)
}

// sample chooses how much of p the reference checks: all sequences and steps of small problems. In
// large ones the batch repeats a few distinct sequences, unless the sequences have lengths. Where
// even these take too long, checked is the same problem with fewer steps.
func sample(p rnn.Problem) (distinct int, checked rnn.Problem) {
	distinct, checked = p.Batch, p
	for p.Lengths == "" && distinct > 3 && float64(oracle.ReferenceFLOPs(p, distinct)) > referenceFLOPs {
		distinct = max(3, distinct/2)
	}
	if f := float64(oracle.ReferenceFLOPs(p, distinct)); f > referenceFLOPs {
		share := referenceFLOPs / f
		checked = rnn.Resized(p, min(p.Steps, max(3, int(float64(p.Steps)*share))))
		checked.History = min(p.History, max(3, int(float64(p.History)*share)))
	}
	return distinct, checked
}

// newVerification draws the inputs of p.
func newVerification(p rnn.Problem, m config.Measure, known *answers) *verification {
	distinct, checked := sample(p)
	h := fnv.New64a()
	fmt.Fprint(h, p, m.Seed) // each point and seed checks other units and steps
	if p.Calls > 0 {
		of := serviceOf(p)
		return &verification{answers: known, problem: p, seed: h.Sum64(), whole: true, data: rnn.NewData(of.served, m.Seed, of.distinct, m.Data)}
	}
	return &verification{answers: known, problem: p, seed: h.Sum64(), whole: checked == p, data: rnn.NewData(p, m.Seed, distinct, m.Data)}
}

// input returns the data that a program starts with.
func (v *verification) input() *rnn.Data {
	if v.problem.Calls > 0 {
		return v.data.Cut(v.problem)
	}
	return v.data
}

// alone reports whether l's run can be checked without a peer.
func (v *verification) alone(l *Layout) bool {
	return v.whole || steps(l)
}

// steps reports whether l's run can be checked step by step.
func steps(l *Layout) bool {
	states, gradients := oracle.Steps(l.Plan)
	return states && gradients
}

// run checks c, whose program holds the inputs already. Once the user has ended ctx, it returns an error
// between the runs of many calls, and before the next technique that it tries as a peer.
func (v *verification) run(ctx context.Context, s *Sweep, c *candidate) error {
	if v.problem.Calls > 0 {
		return v.serve(ctx, c)
	}
	if _, err := c.run(1); err != nil {
		return err
	}
	if v.whole {
		if err := v.checkWhole(c, c.prog, c.Plan, v.data); err != nil || c.record.Verify.OK {
			return err
		}
		return v.recheckEach(s, c)
	}
	if err := v.findPeer(ctx, s, c); err != nil {
		return err
	}
	states := 0 // steps of this run whose states were compared
	if v.peer != nil {
		dev, got, err := v.compareWithPeer(c)
		if err == nil && !dev.OK() && v.kinked() {
			// both may be right: a kink has two right gradients, but the states are the same
			if dev, err = v.compareStates(c); err == nil && dev.OK() {
				states = v.problem.Steps
			}
		}
		if err != nil {
			return err
		}
		if states == 0 {
			v.note(c, dev, got, record.Verify{Method: record.VerifyPeer, Steps: v.problem.Steps, Share: 1, Peer: v.peer.label})
			return v.alsoShorter(s, c)
		}
	}
	kept, _ := oracle.Steps(c.Plan)
	alone := v.alone(c.Layout)
	if kept {
		if err := v.checkStepwise(s, c, alone); err != nil || !c.record.Verify.OK {
			return err
		}
		if alone {
			return v.alsoShorter(s, c)
		}
		states = c.record.Verify.Steps
	}
	err := v.checkShorter(s, c)
	if c.record.Verify != nil {
		c.record.Verify.States = states
	}
	return err
}

// kinked reports whether two right answers may have different gradients.
func (v *verification) kinked() bool { return rnn.Kinked(v.problem) }

// checkWhole compares the whole answer of a program with the reference's for d.
func (v *verification) checkWhole(c *candidate, prog rnn.Memory, plan *rnn.Plan, d *rnn.Data) error {
	dev, got, err := oracle.Check(plan, prog, v.answers.of(d, d.Problem == v.problem))
	var found oracle.Kinks
	switch {
	case err != nil:
	case dev.OK():
		found = v.answers.kinksOf(d)
	default:
		err = thoroughly(func() (err error) {
			if got, err = oracle.Read(plan, prog); err == nil {
				dev, found, err = oracle.CompareAgain(d, got)
			}
			return err
		})
	}
	how := record.Verify{Method: record.VerifyWhole, Steps: d.Problem.Steps, Share: 1, Kinks: counted(found)}
	if d.Problem != v.problem {
		how.Method, how.Share = record.VerifyShorter, 0
	}
	v.note(c, dev, got, how)
	return err
}

// compareWithPeer compares the whole run of c with that of the peer.
func (v *verification) compareWithPeer(c *candidate) (oracle.Deviation, []oracle.Tensor, error) {
	dev, got, err := oracle.Check(c.Plan, c.prog, v.peer.answer)
	dev.Tolerance *= 2 // both answers may be off
	return dev, got, err
}

// compareStates compares the states of c's whole run with those of the peer.
func (v *verification) compareStates(c *candidate) (dev oracle.Deviation, err error) {
	err = thoroughly(func() error {
		got, err := oracle.Read(c.Plan, c.prog)
		if err != nil {
			return err
		}
		dev, err = oracle.Compare(v.problem, statesOf(got), statesOf(v.peer.answer))
		dev.Tolerance *= 2 // both answers may be off
		return err
	})
	return dev, err
}

// stepwiseGarbage is the garbage, in percent of the live heap, at which a stepwise check collects it.
// It is low because the check's own data may be as large as the measured program's.
const stepwiseGarbage = 25

// checkStepwise checks the run of c step by step. If all says that this covers gradients too, a right
// answer makes c the peer of the next candidates.
func (v *verification) checkStepwise(s *Sweep, c *candidate, all bool) error {
	defer debug.SetGCPercent(debug.SetGCPercent(stepwiseGarbage))
	got, apart, err := oracle.ReadDistinct(c.Plan, c.prog, v.data)
	if err != nil {
		return err
	}
	dev, covered, err := oracle.Stepwise{Seed: v.seed, FLOPs: referenceFLOPs}.Check(c.Plan, c.prog, v.data, got)
	if err != nil {
		return err
	}
	dev = dev.OrWorse(apart)
	if all && !dev.OK() && v.eachMayDiffer(s) {
		if dev, covered, err = v.checkEach(c); err != nil {
			return err
		}
	}
	how := record.Verify{Method: record.VerifyStepwise, Steps: min(covered.Steps, v.problem.Steps), Share: covered.Share, Kinks: counted(covered.Kinks)}
	v.note(c, dev, got, how)
	if covered.Steps < v.problem.Frames() {
		c.warn(record.WarnPart)
	}
	if all && dev.OK() && v.peer == nil {
		v.peer = &peer{c.Spec.Label, got}
	}
	return nil
}

// peerBytes is how much memory a peer's schedule may take. Laying out a larger one takes minutes, as
// long as a hang.
var peerBytes int64 = 2 << 30

// findPeer finds a peer for c if it needs one and there is none. It runs other techniques once, even if
// they are not measured at this point, until one can be checked step by step. A technique that breaks
// the device is no peer, and c, whose program is lost then, runs anew.
func (v *verification) findPeer(ctx context.Context, s *Sweep, c *candidate) error {
	if v.peer != nil || v.sought || v.alone(c.Layout) {
		return nil
	}
	v.sought = true
	limit, laid, broken := s.memory(), peerBytes, false
	if limit > 0 {
		laid = min(laid, limit)
	}
	for _, t := range s.Techniques {
		if cancelled(ctx) {
			return ctx.Err()
		}
		l, err := LayOutWithin(s.Device, s.Techniques, c.Point, grid.Spec{Name: t.Name(), Label: t.Name()}, laid)
		if err != nil || l.Reason != "" || !v.alone(l) || limit > 0 && v.taken+c.Memory+l.Need() > limit {
			continue
		}
		err = v.tryPeer(s, &candidate{Layout: l, input: v.data})
		switch {
		case errors.Is(err, device.ErrStart):
			return err
		case errors.Is(err, device.ErrHang), errors.Is(err, device.ErrFault), lost(err):
			broken = true
		}
		if v.peer != nil {
			break
		}
	}
	if !broken {
		return nil
	}
	c.close()
	if err := s.load(c); err != nil {
		return err
	}
	_, err := c.run(1)
	return err
}

// tryPeer runs other once. A right answer makes it the peer.
func (v *verification) tryPeer(s *Sweep, other *candidate) error {
	defer other.close()
	if err := s.load(other); err != nil {
		return err
	}
	if _, err := other.run(1); err != nil {
		return err
	}
	return v.checkStepwise(s, other, true)
}

// note puts the outcome of a check into c's record.
func (v *verification) note(c *candidate, dev oracle.Deviation, got []oracle.Tensor, how record.Verify) {
	how.Reference, how.Tensor, how.MaxAbs, how.Error, how.Tolerance = "cpu_f64", dev.Tensor, finite(dev.MaxAbs), finite(dev.Error), dev.Tolerance
	how.Sequences, how.OK, how.Partial, how.UnitError = v.data.Distinct, dev.OK(), []string{}, c.Plan.UnitError
	for _, t := range got {
		if t.First > 0 || t.Later > 0 {
			how.Partial = append(how.Partial, t.Name)
		}
	}
	c.record.Verify = &how
}

// counted converts kinks for the record; nil where no unit was examined.
func counted(k oracle.Kinks) *record.Kinks {
	if k.Units == 0 {
		return nil
	}
	return &record.Kinks{Units: k.Units, Near: k.Near, Shown: k.Shown, Other: k.Other}
}

// mismatch says in a sentence what is wrong with an answer.
func mismatch(v *record.Verify) string {
	truth := "the reference"
	if v.Peer != "" {
		truth = "the verified answer of " + v.Peer
	}
	s := fmt.Sprintf("%s differs from %s by %.3g of its largest value; the tolerance is %.3g", v.Tensor, truth, v.Error, v.Tolerance)
	if k := v.Kinks; k != nil && k.Near > 0 {
		s += "; " + k.String()
		if (oracle.Kinks{Units: k.Units, Near: k.Near, Shown: k.Shown}).TooMany() {
			s += ", which are too many to accept either gradient"
		}
	}
	return s
}

// alsoShorter checks c, whose timed run was found right, over fewer steps as well where other
// techniques may be checked over these alone. So all techniques of a point are checked over the same
// steps, whatever else is checked. A technique that cannot run so few steps is left as it is.
func (v *verification) alsoShorter(s *Sweep, c *candidate) error {
	was := c.record.Verify
	if !was.OK || !v.kinked() {
		return nil
	}
	if _, _, err := v.layShorter(c); err != nil {
		return nil
	}
	err := v.shorter(s, c)
	if now := c.record.Verify; err == nil && now.OK {
		was.Shorter = now.Steps
		c.record.Verify = was
	}
	return err
}

// checkShorter checks c's technique by a program of fewer steps.
func (v *verification) checkShorter(s *Sweep, c *candidate) error {
	c.warn(record.WarnPart)
	return v.shorter(s, c)
}

// layShorter lays out c's technique over fewer steps.
func (v *verification) layShorter(c *candidate) (*rnn.Plan, *schedule.Schedule, error) {
	_, checked := sample(v.problem)
	knobs := c.Knobs
	if n, ok := knobs["inputbatch"]; ok && n > checked.Steps {
		knobs = maps.Clone(knobs)
		knobs["inputbatch"] = 0
	}
	return rnn.Layout(c.Technique, checked, knobs)
}

// shorter compares the whole answer of a program of fewer steps with the reference's.
func (v *verification) shorter(s *Sweep, c *candidate) error {
	plan, sched, err := v.layShorter(c)
	if err != nil {
		return err
	}
	if v.short == nil {
		_, checked := sample(v.problem)
		v.short = v.data.Cut(checked)
	}
	d := c.host(s.Device)
	prog, err := d.Compile(sched, settingsOfFewer(c.DeviceKnobs, d.Knobs(sched)))
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := errors.Join(plan.Write(prog, v.short), prog.Prepare()); err != nil {
		return err
	}
	if _, err := prog.Run(1); err != nil {
		return err
	}
	return v.checkWhole(c, prog, plan, v.short)
}

// settingsOfFewer returns the settings that a schedule of fewer steps accepts. A value above the new
// maximum becomes the maximum.
func settingsOfFewer(p knob.Params, knobs []knob.Knob) knob.Params {
	out := knob.Params{}
	for _, k := range knobs {
		if v, ok := p[k.Name]; ok && k.Accepts(v) {
			out[k.Name] = v
		} else if ok && v > k.Max && k.Accepts(k.Max) {
			out[k.Name] = k.Max
		}
	}
	return out
}

// finite replaces what JSON cannot express by the largest float64.
func finite(v float64) float64 {
	if !(v <= math.MaxFloat64) {
		return math.MaxFloat64
	}
	return v
}
