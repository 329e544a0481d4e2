// Package compare says how runs differ from earlier ones: which points became faster or slower by
// more than chance and by enough to matter, which fail now and which no longer fail.
//
// It is a function of records alone. All samples of a run share what the machine did at that moment.
// So where a side has several runs, their medians are the samples, and a change must exceed the
// spread between runs of one side. Between two single runs, a change gets a verdict only if no such
// moment explains it. All points are tested together: if a thousand points did not change, none of
// them should be called faster or slower.
package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"rnnbench/record"
)

// A Verdict is the outcome at one point.
type Verdict string

// The verdicts. A point that neither run could measure has none.
const (
	Faster    Verdict = "FASTER"
	Slower    Verdict = "SLOWER"
	Same      Verdict = "SAME" // the whole interval of the ratio is too small to matter
	Ambiguous Verdict = "AMBG" // none of these: more runs are needed
	New       Verdict = "NEW"
	Gone      Verdict = "GONE"
	Broken    Verdict = "BROKEN" // had a result and has none now
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
	Across    bool    // compare runs of different devices too
}

// Usual returns the default options.
func Usual() Options { return Options{Alpha: 0.05, MinEffect: 0.02, Level: 0.95} }

// check refuses options that are out of range.
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

// An Interval is an estimate with its confidence interval. NaN: unknown.
type Interval = record.Interval

func unknown() Interval { return Interval{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()} }

// A Change is one technique at one point in two runs.
type Change struct {
	Verdict Verdict
	Base    *record.Record // nil: not measured
	New     *record.Record // with the samples of all runs; nil: not measured
	Ratio   Interval       // time now over time before
	P       float64        // of the test, corrected for the number of points; NaN: not tested
	Spread  float64        // standard deviation of a run's median at this point, as a share; NaN: unknown
	Enough  int            // runs per side that would probably settle an ambiguous change; 0: unknown or too many
	Why     string         // reason of the verdict, if it needs one

	before, after []float64    // log of the median in each run; NaN: no result
	unshifted     [2][]float64 // before and after, less the shift of each run
	freedom       float64      // degrees of freedom of Spread
}

// Record is the new record, or else the base record.
func (c *Change) Record() *record.Record {
	if c.New != nil {
		return c.New
	}
	return c.Base
}

// A Side is one side of a comparison: a run, or several runs of the same program. A machine's speed
// varies from minute to minute, and all samples of a point are from one moment of a run. Only several
// runs in turns tell a change from such a moment.
type Side struct {
	Label string
	Runs  []record.Set
}

// Sides joins runs of the same label, in order of appearance.
func Sides(sets []record.Set) []Side {
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

// A Comparison compares one side with the base side.
type Comparison struct {
	Base, New string // labels
	Changes   []Change
	Unknown   int // points without a result on either side

	Single  bool     // one run per side: a slow moment of one of them looks like a change
	Spread  float64  // standard deviation of a run's median at a typical point, as a share; 0: unknown
	Reach   float64  // for single runs: the largest change that a moment may cause, as a share
	Shift   Interval // ratio by which all points moved together; NaN: too few points to say
	Shifted bool     // Shift exceeds the spread between runs of one side, so every ratio includes it

	shift  effect     // of several runs; zero: unknown
	tested int        // points of all comparisons that were tested together
	away   [2]float64 // for single runs: the largest changes relative to Shift, to less and to more time, as logs
}

// fewestPoints is the least number of points from which their common shift and their typical spread can be
// estimated.
const fewestPoints = 8

// Count is how many changes got the verdict v.
func (c *Comparison) Count(v Verdict) int {
	n := 0
	for i := range c.Changes {
		if c.Changes[i].Verdict == v {
			n++
		}
	}
	return n
}

// ErrNothing says that no point is on both sides with a result on at least one. It is an error since
// "nothing became slower" would mislead.
var ErrNothing = errors.New("nothing overlaps")

// ErrDevices says that the sides are from different devices.
var ErrDevices = errors.New("they are from different devices")

// Runs compares each of sides with base. o.Alpha holds for the tests of all sides together.
func Runs(base Side, sides []Side, o Options) ([]Comparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(sides) == 0 {
		return nil, fmt.Errorf("compare: %w: nothing to compare with %s", ErrNothing, base.Label)
	}
	key := func(r *record.Record) string { return keyOf(r, o) }
	before, err := index(base, key)
	if err != nil {
		return nil, err
	}
	list := make([]Comparison, 0, len(sides))
	for _, side := range sides {
		if err := sameDevice(base, side, o); err != nil {
			return nil, err
		}
		after, err := index(side, key)
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

// match pairs the points of two sides. both counts the pairs with a result on at least one side. Pairs
// with results on both sides get no verdict yet. A point that one side skipped and the other lacks is
// neither new nor gone.
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
