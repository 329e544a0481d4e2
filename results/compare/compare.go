// Package compare says how runs differ from those before: what became faster or
// slower by more than chance and by more than matters, what broke and what was
// mended.
//
// It is a function of records alone. Nothing is assumed of the distribution of
// samples, and all points are tested together, so that of a thousand points
// that did not change none should be called faster or slower.
package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

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
		return fmt.Errorf("compare: the least effect is %v and must be a share such as 0.02", o.MinEffect)
	}
	return nil
}

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
	Why     string          // of a verdict that does not speak for itself

	before, after []float64 // median of each run
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
// moment of a run: several runs in turns tell a change from such a moment.
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

	Single bool // one run a side: whatever slowed one of them is taken for a change

	// Noise is how far points of these sides differ one way or the other, as a
	// share: changes of less are not told from it. 0: too few points to say.
	Noise float64
}

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
var ErrDevices = errors.New("they are of different devices")

// Runs compares sides with base. The tests of all of them together are held to
// o.Alpha.
func Runs(base Side, sides []Side, o Options) ([]Comparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(sides) == 0 {
		return nil, fmt.Errorf("compare: %w: there is nothing beside %s", ErrNothing, base.Label)
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
		c.Base, c.New = base.Label, side.Label
		c.Single = len(base.Runs) == 1 || len(side.Runs) == 1
		list = append(list, c)
	}
	judge(list, o)
	return list, nil
}

// match pairs what was measured, and counts the pairs of which one has a result.
// Those where both have are left without a verdict.
func match(before, after places) (c Comparison, both int) {
	for _, key := range before.keys {
		b, a := before.at[key], after.at[key]
		ch := Change{Base: b.record, Ratio: unknown(), P: math.NaN(), before: b.medians}
		if a == nil {
			ch.Verdict = Gone
			c.Changes = append(c.Changes, ch)
			continue
		}
		ch.New, ch.after = a.record, a.medians
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
		if before.at[key] == nil {
			c.Changes = append(c.Changes, Change{Verdict: New, New: after.at[key].record, Ratio: unknown(), P: math.NaN()})
		}
	}
	return c, both
}

// ok says whether r has a time.
func ok(r *results.Record) bool { return r.Seconds() > 0 }

func reason(r *results.Record) string {
	s := string(r.Status)
	if r.Reason != nil && *r.Reason != "" {
		s += ": " + *r.Reason
	}
	return s
}

// places are what a side measured, in order.
type places struct {
	keys []string
	at   map[string]*place
}

// A place is one technique at one point in all runs of a side.
type place struct {
	record  *results.Record // with the samples of all, or one without a result
	medians []float64
}

func (s Side) records() []results.Record {
	var list []results.Record
	for _, run := range s.Runs {
		list = append(list, run.Records...)
	}
	return list
}

func index(s Side, o Options) (places, error) {
	p := places{at: map[string]*place{}}
	for _, run := range s.Runs {
		for i := range run.Records {
			r := &run.Records[i]
			if r.ReasonCode != nil && *r.ReasonCode == results.ReasonInterrupted {
				continue // as good as not measured
			}
			key := keyOf(r, o)
			at := p.at[key]
			switch {
			case at == nil:
				at = &place{record: r}
				p.keys = append(p.keys, key)
				p.at[key] = at
			case at.record.Device != r.Device:
				return p, fmt.Errorf("compare: %s measured on %s and on %s: choose the records of one device", s.Label, at.record.Device, r.Device)
			case ok(at.record) && ok(r):
				at.record = join(at.record, r)
			case ok(at.record):
				at.record = r // what fails in one of the runs fails
			}
			if ok(r) {
				at.medians = append(at.medians, r.Seconds())
			}
		}
	}
	return p, nil
}

// join is a with the samples of both.
func join(a, b *results.Record) *results.Record {
	j := *a
	all := slices.Concat(samples(a), samples(b))
	j.Samples = &results.Samples{Wall: all, Device: all}
	st, _ := results.Summarize(all, 0)
	j.Stats = &st
	j.Warnings = slices.Clone(a.Warnings)
	for _, w := range b.Warnings {
		if !slices.Contains(j.Warnings, w) {
			j.Warnings = append(j.Warnings, w)
		}
	}
	return &j
}

// keyOf is what two records must share to be compared: how a point was measured
// counts as well, but not in which order or with which seed.
func keyOf(r *results.Record, o Options) string {
	q := *r
	if o.Across {
		q.Device = ""
	}
	return fmt.Sprintf("%s|%s|%t|%s|%s", q.Key(), q.Mode.Cache, q.Mode.Graph, q.Mode.Timer, q.Mode.Data)
}

func sameDevice(a, b Side, o Options) error {
	da, db := devices(a.records()), devices(b.records())
	if o.Across || len(da) == 0 || len(db) == 0 || slices.ContainsFunc(da, func(d string) bool { return slices.Contains(db, d) }) {
		return nil
	}
	return fmt.Errorf("compare: %s and %s: %w: %s and %s", a.Label, b.Label, ErrDevices, strings.Join(da, ", "), strings.Join(db, ", "))
}

func devices(recs []results.Record) []string {
	var list []string
	for _, r := range recs {
		if !slices.Contains(list, r.Device) {
			list = append(list, r.Device)
		}
	}
	return list
}

// apart says in what two runs without a common point differ.
func apart(a, b []results.Record) string {
	type property struct {
		name string
		of   func(*results.Record) string
	}
	list := []property{
		{"technique", func(r *results.Record) string { return r.Impl.Name }},
		{"cell", func(r *results.Record) string { return r.Point.Cell }},
		{"pass", func(r *results.Record) string { return r.Point.Pass }},
		{"precision", func(r *results.Record) string { return r.Point.Precision }},
		{"cache", func(r *results.Record) string { return r.Mode.Cache }},
		{"timer", func(r *results.Record) string { return r.Mode.Timer }},
		{"data", func(r *results.Record) string { return r.Mode.Data }},
	}
	for _, axis := range results.Axes {
		list = append(list, property{axis, func(r *results.Record) string { v, _ := r.Point.Axis(axis); return fmt.Sprint(v) }})
	}
	var words []string
	for _, p := range list {
		seen := map[string]bool{}
		for i := range a {
			seen[p.of(&a[i])] = true
		}
		if len(b) > 0 && !slices.ContainsFunc(b, func(r results.Record) bool { return seen[p.of(&r)] }) {
			words = append(words, p.name)
		}
	}
	if words == nil {
		return "no point has a result in one and was measured in the other"
	}
	return "no " + strings.Join(words, " and no ") + " is in both"
}

// judge tests what both runs measured and gives the verdicts.
func judge(list []Comparison, o Options) {
	var tested []*Change
	t := tables{}
	for i := range list {
		for j := range list[i].Changes {
			if c := &list[i].Changes[j]; c.Verdict == "" {
				var lg Interval
				lg, c.P = t.shift(logs(c.Base), logs(c.New), o.Level)
				c.Ratio = Interval{math.Exp(lg.Value), math.Exp(lg.Lo), math.Exp(lg.Hi)}
				tested = append(tested, c)
			}
		}
	}
	holm(tested)
	for i := range list {
		c := &list[i]
		c.Noise = spread(c.Changes)
		for j := range c.Changes {
			if c.Changes[j].Verdict == "" {
				c.Changes[j].decide(o, c.Noise)
			}
		}
	}
}

// spread is how far the changes of unchanged points reach from one run to
// another: three standard deviations, estimated from the median distance of all
// changes from their median, which holds as long as most points did not change.
// What moves all points alike is not part of it.
func spread(changes []Change) float64 {
	const least = 20 // points, for an estimate that is worth it
	var logs []float64
	for i := range changes {
		if v := changes[i].Ratio.Value; v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	if len(logs) < least {
		return 0
	}
	slices.Sort(logs)
	middle := logs[len(logs)/2]
	for i, l := range logs {
		logs[i] = math.Abs(l - middle)
	}
	slices.Sort(logs)
	return math.Expm1(3 * 1.4826 * logs[len(logs)/2])
}

// decide gives the verdict of a point that both sides measured. The least effect
// is the same factor in both directions.
func (c *Change) decide(o Options, noise float64) {
	most := 1 + o.MinEffect
	n, m := len(samples(c.Base)), len(samples(c.New))
	differs := c.P < o.Alpha && (c.Ratio.Value >= most || c.Ratio.Value <= 1/most)
	switch {
	case differs && math.Abs(math.Log(c.Ratio.Value)) < math.Log1p(noise):
		c.Verdict, c.Why = Ambiguous, "within what points of these runs differ by anyway"
	case differs && !disjoint(c.before, c.after, most):
		c.Verdict, c.Why = Ambiguous, "not in every run"
	case differs && c.Ratio.Value > 1:
		c.Verdict = Slower
	case differs:
		c.Verdict = Faster
	case !c.Ratio.Known():
		c.Verdict, c.Why = Ambiguous, fmt.Sprintf("%d and %d samples are too few", n, m)
	case c.Ratio.Lo >= 1/most && c.Ratio.Hi <= most:
		c.Verdict = Same
	case c.P < o.Alpha:
		c.Verdict, c.Why = Ambiguous, "differs, and it cannot be told whether by enough to matter"
	case c.Ratio.Lo > 1 || c.Ratio.Hi < 1:
		c.Verdict, c.Why = Ambiguous, "may be chance among so many points"
	default:
		c.Verdict, c.Why = Ambiguous, "the samples spread too far"
	}
	if w := told(c); w != "" && c.Verdict != Same {
		c.Why = strings.TrimPrefix(c.Why+"; "+w, "; ")
	}
}

// disjoint says whether every run of one side is beyond every run of the other
// by that factor, and by more than runs of one side differ among themselves.
func disjoint(a, b []float64, by float64) bool {
	within := max(by, slices.Max(a)/slices.Min(a), slices.Max(b)/slices.Min(b))
	return within*slices.Max(a) <= slices.Min(b) || within*slices.Max(b) <= slices.Min(a)
}

// told repeats what the records warn of.
func told(c *Change) string {
	var words []string
	for _, side := range []struct {
		name string
		r    *results.Record
	}{{"before", c.Base}, {"now", c.New}} {
		if len(side.r.Warnings) > 0 {
			words = append(words, side.name+" "+strings.Join(side.r.Warnings, " "))
		}
	}
	return strings.Join(words, ", ")
}

// samples are the times of r by the clock that counts.
func samples(r *results.Record) []float64 {
	switch {
	case r.Samples == nil:
		return nil
	case r.Mode.Timer == "event":
		return r.Samples.Device
	}
	return r.Samples.Wall
}

// logs are the logarithms of r's times, in order of size. A time that is not
// one is left out.
func logs(r *results.Record) []float64 {
	var list []float64
	for _, s := range samples(r) {
		if l := math.Log(s); !math.IsNaN(l) && !math.IsInf(l, 0) {
			list = append(list, l)
		}
	}
	slices.Sort(list)
	return list
}
