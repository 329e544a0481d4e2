// Package compare says how runs differ from those before: what became faster or
// slower by more than chance and by more than matters, what broke and what was
// mended.
//
// It is a function of records alone. All samples of a run share its moment, so
// where a side has several runs their medians are the samples: a change must
// exceed what runs of one side differ by. Of two single runs only a change that
// no moment of either explains gets a verdict. All points are tested together,
// so that of a thousand points that did not change none should be called faster
// or slower.
package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"rnnbench/results"
)

// A Verdict is what came of one point.
type Verdict string

// The verdicts. A point that neither run could measure has none.
const (
	Faster    Verdict = "FASTER"
	Slower    Verdict = "SLOWER"
	Same      Verdict = "SAME" // the interval of the ratio is within what does not matter
	Ambiguous Verdict = "AMBG" // neither: more samples are needed
	New       Verdict = "NEW"
	Gone      Verdict = "GONE"
	Broken    Verdict = "BROKEN" // had a result and has none
	Fixed     Verdict = "FIXED"
)

// Verdicts lists the verdicts in the order of summaries.
func Verdicts() []Verdict {
	return []Verdict{Slower, Broken, Faster, Fixed, Same, Ambiguous, New, Gone}
}

// Options say when a difference counts.
type Options struct {
	Alpha     float64 // chance of calling any unchanged point faster or slower
	MinEffect float64 // relative change that matters, such as 0.02
	Level     float64 // confidence of intervals
	Across    bool    // compare whatever the device
}

// Usual are the options that are right for most.
func Usual() Options { return Options{Alpha: 0.05, MinEffect: 0.02, Level: 0.95} }

// check refuses options that no difference, or every one, would meet.
func (o Options) check() error {
	for _, v := range []struct {
		name  string
		value float64
	}{{"level of the tests", o.Alpha}, {"confidence", o.Level}} {
		if !(v.value > 0 && v.value < 1) {
			return fmt.Errorf("compare: the %s is %v and must be between 0 and 1", v.name, v.value)
		}
	}
	if !(o.MinEffect >= 0 && o.MinEffect < 10) {
		return fmt.Errorf("compare: the minimum effect is %v and must be a share such as 0.02", o.MinEffect)
	}
	return nil
}

// effect is the logarithm of the least ratio that matters.
func (o Options) effect() float64 { return math.Log1p(o.MinEffect) }

// An Interval is an estimate between the ends of its confidence interval. NaN:
// unknown.
type Interval struct {
	Value, Lo, Hi float64
}

// Known says whether there is an interval and not just an estimate.
func (v Interval) Known() bool { return v.Lo <= v.Hi }

func unknown() Interval { return Interval{math.NaN(), math.NaN(), math.NaN()} }

// A Change is one technique at one point in two runs.
type Change struct {
	Verdict Verdict
	Base    *results.Record // nil: not measured
	New     *results.Record // of several runs: with the samples of all
	Ratio   Interval        // of the time now to the time before
	P       float64         // of the test, corrected for the number of points; NaN: not tested
	Spread  float64         // standard deviation of a run's median at this point, as a share; NaN: unknown
	Enough  int             // runs of each side that would probably settle an ambiguous change; 0: none or too many
	Why     string          // of a verdict that does not speak for itself

	before, after []float64    // logarithm of the median in each run; NaN: no result
	beside        [2][]float64 // the same without what moved all points of a run
	freedom       float64      // degrees of freedom of Spread
}

// Record is the newer record that there is.
func (c *Change) Record() *results.Record {
	if c.New != nil {
		return c.New
	}
	return c.Base
}

// A Side is what is compared: a run, or several runs of the same. A machine's
// speed moves from one minute to the next, and all samples of a point are of one
// moment of a run: only several runs in turns tell a change from such a moment.
type Side struct {
	Label string
	Runs  []results.Set
}

// Sides joins runs of the same label, in order of appearance.
func Sides(sets []results.Set) []Side {
	var list []Side
	for _, s := range sets {
		i := slices.IndexFunc(list, func(side Side) bool { return side.Label == s.Label })
		if i < 0 {
			i = len(list)
			list = append(list, Side{Label: s.Label})
		}
		list[i].Runs = append(list[i].Runs, s)
	}
	return list
}

// A Comparison is one side beside the one that all are compared with.
type Comparison struct {
	Base, New string // labels
	Changes   []Change
	Unknown   int // points that have no result in either

	Single bool     // one run a side: what slowed one of them looks like a change
	Spread float64  // standard deviation of a run's median at a typical point, as a share; 0: unknown
	Reach  float64  // of single runs: the change that a moment of either may look like, as a share
	Shift  Interval // ratio by which all points moved together; NaN: too few points to say
	Told   bool     // Shift is more than runs of one side differ by, and part of every ratio

	away [2]float64 // of single runs: the largest change beside Shift to less and to more time, as logarithms
}

// together is the least number of points of which a movement of all of them,
// and the spread of a typical one, can be estimated.
const together = 8

// Count is how many changes got a verdict.
func (c *Comparison) Count(v Verdict) int {
	n := 0
	for i := range c.Changes {
		if c.Changes[i].Verdict == v {
			n++
		}
	}
	return n
}

// ErrNothing says that no point is in both runs with a result in one of them:
// whoever asks whether something became slower must not be told no.
var ErrNothing = errors.New("nothing overlaps")

// ErrDevices says that runs are of different machines.
var ErrDevices = errors.New("they are from different devices")

// Runs compares sides with base. The tests of all of them together are held to
// o.Alpha.
func Runs(base Side, sides []Side, o Options) ([]Comparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(sides) == 0 {
		return nil, fmt.Errorf("compare: %w: nothing to compare with %s", ErrNothing, base.Label)
	}
	before, err := index(base, o)
	if err != nil {
		return nil, err
	}
	list := make([]Comparison, 0, len(sides))
	for _, side := range sides {
		if err := sameDevice(base, side, o); err != nil {
			return nil, err
		}
		after, err := index(side, o)
		if err != nil {
			return nil, err
		}
		c, both := match(before, after)
		if both == 0 {
			return nil, fmt.Errorf("compare: %s and %s: %w: %s", base.Label, side.Label, ErrNothing, apart(base.records(), side.records()))
		}
		c.Base, c.New, c.Shift = base.Label, side.Label, unknown()
		c.Single = len(base.Runs) == 1 && len(side.Runs) == 1
		list = append(list, c)
	}
	judge(list, o)
	return list, nil
}

// match pairs what was measured, and counts the pairs of which one has a result.
// Those where both have are left without a verdict. A point that one side skipped and the
// other does not have is neither new nor gone.
func match(before, after places) (c Comparison, both int) {
	for _, key := range before.keys {
		b, a := before.at[key], after.at[key]
		ch := Change{Base: b.record, Ratio: unknown(), P: math.NaN(), Spread: math.NaN(), before: b.runs}
		switch {
		case a == nil && skipped(b):
			c.Unknown++
			continue
		case a == nil:
			ch.Verdict = Gone
			c.Changes = append(c.Changes, ch)
			continue
		}
		ch.New, ch.after = a.record, a.runs
		switch {
		case ok(ch.Base) && ok(ch.New):
		case ok(ch.Base):
			ch.Verdict, ch.Why = Broken, reason(ch.New)
		case ok(ch.New):
			ch.Verdict, ch.Why = Fixed, "was "+reason(ch.Base)
		default:
			c.Unknown++
			continue
		}
		both++
		c.Changes = append(c.Changes, ch)
	}
	for _, key := range after.keys {
		switch a := after.at[key]; {
		case before.at[key] != nil:
		case skipped(a):
			c.Unknown++
		default:
			c.Changes = append(c.Changes, Change{Verdict: New, New: a.record, Ratio: unknown(), P: math.NaN(), Spread: math.NaN()})
		}
	}
	return c, both
}
