// Package compare says how runs differ from a run before: what became faster or
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
	New     *results.Record
	Ratio   Interval // of the time now to the time before
	P       float64  // of the test, corrected for the number of points; NaN: not tested
	Why     string   // of a verdict that does not speak for itself
}

// Record is the newer record that there is.
func (c *Change) Record() *results.Record {
	if c.New != nil {
		return c.New
	}
	return c.Base
}

// A Comparison is one run beside the one that all are compared with.
type Comparison struct {
	Base, New string // labels
	Changes   []Change
	Unknown   int // points that have no result in either
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

// Runs compares runs with base. The tests of all runs together are held to
// o.Alpha.
func Runs(base results.Set, runs []results.Set, o Options) ([]Comparison, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	before, err := index(base, o)
	if err != nil {
		return nil, err
	}
	list := make([]Comparison, 0, len(runs))
	for _, run := range runs {
		if err := sameDevice(base, run, o); err != nil {
			return nil, err
		}
		after, err := index(run, o)
		if err != nil {
			return nil, err
		}
		c := Comparison{Base: base.Label, New: run.Label}
		both := 0
		for _, key := range before.keys {
			ch := Change{Base: before.at[key], New: after.at[key], Ratio: unknown(), P: math.NaN()}
			switch {
			case ch.New == nil:
				ch.Verdict = Gone
			case ok(ch.Base) && ok(ch.New):
				both++
			case ok(ch.Base):
				ch.Verdict, ch.Why = Broken, reason(ch.New)
				both++
			case ok(ch.New):
				ch.Verdict, ch.Why = Fixed, "was "+reason(ch.Base)
				both++
			default:
				c.Unknown++
				continue
			}
			c.Changes = append(c.Changes, ch)
		}
		for _, key := range after.keys {
			if before.at[key] == nil {
				c.Changes = append(c.Changes, Change{Verdict: New, New: after.at[key], Ratio: unknown(), P: math.NaN()})
			}
		}
		if both == 0 {
			return nil, fmt.Errorf("compare: %s and %s: %w: %s", base.Label, run.Label, ErrNothing, apart(base, run))
		}
		list = append(list, c)
	}
	judge(list, o)
	return list, nil
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

// places are the records of a run by what they measured, in order.
type places struct {
	keys []string
	at   map[string]*results.Record
}

func index(s results.Set, o Options) (places, error) {
	p := places{at: map[string]*results.Record{}}
	for i := range s.Records {
		r := &s.Records[i]
		if r.ReasonCode != nil && *r.ReasonCode == results.ReasonInterrupted {
			continue // as good as not measured
		}
		key := keyOf(r, o)
		if old := p.at[key]; old == nil {
			p.keys = append(p.keys, key)
		} else if old.Device != r.Device {
			return p, fmt.Errorf("compare: %s measured on %s and on %s: choose the records of one device", s.Label, old.Device, r.Device)
		}
		p.at[key] = r
	}
	return p, nil
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

func sameDevice(a, b results.Set, o Options) error {
	da, db := devices(a), devices(b)
	if o.Across || len(da) == 0 || len(db) == 0 || slices.ContainsFunc(da, func(d string) bool { return slices.Contains(db, d) }) {
		return nil
	}
	return fmt.Errorf("compare: %s and %s: %w: %s and %s", a.Label, b.Label, ErrDevices, strings.Join(da, ", "), strings.Join(db, ", "))
}

func devices(s results.Set) []string {
	var list []string
	for _, r := range s.Records {
		if !slices.Contains(list, r.Device) {
			list = append(list, r.Device)
		}
	}
	return list
}

// apart says in what two runs without a common point differ.
func apart(a, b results.Set) string {
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
		for i := range a.Records {
			seen[p.of(&a.Records[i])] = true
		}
		if len(b.Records) > 0 && !slices.ContainsFunc(b.Records, func(r results.Record) bool { return seen[p.of(&r)] }) {
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
	for _, c := range tested {
		c.decide(o)
	}
}

// decide gives the verdict of a point that both runs measured. The least effect
// is the same factor in both directions.
func (c *Change) decide(o Options) {
	most := 1 + o.MinEffect
	n, m := len(samples(c.Base)), len(samples(c.New))
	switch {
	case c.P < o.Alpha && c.Ratio.Value >= most:
		c.Verdict = Slower
	case c.P < o.Alpha && c.Ratio.Value <= 1/most:
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
	if w := noise(c); w != "" && c.Verdict != Same {
		c.Why = strings.TrimPrefix(c.Why+"; "+w, "; ")
	}
}

// noise repeats what the records warn of.
func noise(c *Change) string {
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
