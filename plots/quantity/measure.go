package quantity

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/record"
)

// An Interval is a measured value with its interval. Without an interval, Lo and Hi equal Value.
type Interval struct {
	Value, Lo, Hi float64
}

// Known reports whether there is an interval, not only a value.
func (v Interval) Known() bool { return v.Lo < v.Hi }

// Spread returns the larger half of the interval as a share of the value.
func (v Interval) Spread() float64 {
	if v.Value == 0 {
		return 0
	}
	return math.Max(v.Hi-v.Value, v.Value-v.Lo) / math.Abs(v.Value)
}

// Half spells Spread in percent.
func (v Interval) Half() string { return Half(v.Spread()) }

// A Measure is a quantity that records hold, such as time or throughput.
type Measure struct {
	Name   string // in flags
	Title  string // on axes
	Unit   string
	Key    string // in columns of data, with its unit
	Less   bool   // less is better
	Scaled bool   // values carry SI prefixes
	Ratio  bool   // relates a record to a baseline

	Bars  string                           // sentence that explains intervals; "": confidence intervals of medians
	Ticks func(r *record.Record) []float64 // more values within the interval; nil: none

	of func(r, base *record.Record) (Interval, bool)
}

// Of returns the measure's value in r; false: r has none. Only a Ratio uses base.
func (m Measure) Of(r, base *record.Record) (Interval, bool) {
	v, ok := m.of(r, base)
	for _, x := range []float64{v.Value, v.Lo, v.Hi} {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Interval{}, false
		}
	}
	return v, ok
}

// Format formats a value with its unit.
func (m Measure) Format(v float64) string {
	switch {
	case m.Ratio:
		return Factor(v)
	case m.Unit == "B":
		return Bytes(v)
	case m.Scaled:
		return SI(v, m.Unit)
	}
	return Digits(v, 3) + " " + m.Unit
}

// Short formats a value for the cell of a map: without its unit if the prefix is enough.
func (m Measure) Short(v float64) string {
	switch {
	case m.Ratio || m.Unit == "s" || m.Unit == "B":
		return m.Format(v)
	case m.Scaled:
		return Short(v)
	}
	return Digits(v, 3)
}

// Tick formats a round value for an axis, as briefly as possible.
func (m Measure) Tick(v float64) string {
	switch {
	case m.Ratio:
		return trim(Digits(v, 3)) + "×"
	case m.Unit == "s":
		number, prefix := scale(v, 3)
		return trim(or(number, "n/a")) + " " + prefix + "s"
	}
	return Tick(v)
}

// Measures lists all measures.
func Measures() []Measure {
	// rate is work per time, so its lower end comes from the upper end of the time.
	rate := func(work func(r *record.Record) float64) func(r, _ *record.Record) (Interval, bool) {
		return func(r, _ *record.Record) (Interval, bool) {
			t, ok := Time(r)
			w := work(r)
			if !ok || w <= 0 {
				return Interval{}, false
			}
			return Interval{w / t.Value, w / t.Hi, w / t.Lo}, true
		}
	}
	all := []Measure{
		{Name: "flops", Title: "throughput", Unit: "FLOP/s", Key: "flops_per_s", Scaled: true,
			of: rate(func(r *record.Record) float64 { return float64(r.Work.Flops) })},
		{Name: "time", Title: "time per run", Unit: "s", Key: "time_s", Less: true, Scaled: true,
			of: func(r, _ *record.Record) (Interval, bool) { return Time(r) }},
		{Name: "speedup", Title: "speed-up", Unit: "×", Key: "speedup", Ratio: true, of: speedup,
			Bars: "Bars: intervals of the ratio, paired by rounds where both were measured in turns."},
		{Name: "step", Title: "time per cell step", Unit: "s", Key: "step_s", Less: true, Scaled: true,
			of: func(r, _ *record.Record) (Interval, bool) {
				t, ok := Time(r)
				n := float64(r.Point.Reads()) * float64(r.Point.Steps)
				if !ok || n <= 0 {
					return Interval{}, false
				}
				return Interval{t.Value / n, t.Lo / n, t.Hi / n}, true
			}},
		{Name: "events", Title: "event rate", Unit: "events/s", Key: "events_per_s", Scaled: true,
			of: rate(events)},
		{Name: "bandwidth", Title: "memory traffic", Unit: "B/s", Key: "bytes_per_s", Scaled: true,
			of: rate(func(r *record.Record) float64 { return float64(r.Work.Bytes) })},
		{Name: "executed", Title: "executed operations", Unit: "FLOP/s", Key: "flops_executed_per_s", Scaled: true,
			of: rate(func(r *record.Record) float64 { return float64(r.Work.Executed) })},
		{Name: "percent", Title: "share of peak", Unit: "%", Key: "pct_peak_flops",
			of: func(r, _ *record.Record) (Interval, bool) {
				t, ok := Time(r)
				peak := r.PeakFLOPS()
				if !ok || peak <= 0 {
					return Interval{}, false
				}
				w := 100 * float64(r.Work.Flops) / peak
				return Interval{w / t.Value, w / t.Hi, w / t.Lo}, w > 0
			}},
		{Name: "copy", Title: "share of the copy rate", Unit: "%", Key: "pct_copy",
			of: rate(copies)},
		{Name: "floor", Title: "share of the floor", Unit: "%", Key: "pct_floor", of: rate(func(r *record.Record) float64 {
			if r.Floor == nil {
				return 0
			}
			return 100 * r.Floor.Seconds
		})},
		training("loss", "loss of the minibatch", "nats", func(t *record.Training) (float64, bool) { return t.Loss, true }),
		training("held-out", "loss on held-out data", "nats", func(t *record.Training) (float64, bool) {
			if t.HeldOut == nil {
				return 0, false
			}
			return t.HeldOut.Loss, true
		}),
		top("top1", "1", func(s *record.Score) float64 { return s.Top1 }),
		top("top5", "5", func(s *record.Score) float64 { return s.Top5 }),
		top("top20", "20", func(s *record.Score) float64 { return s.Top20 }),
		training("label-errors", "label error rate of transcripts of held-out data", "%", func(t *record.Training) (float64, bool) {
			if t.HeldOut == nil || t.HeldOut.LabelErrors == nil {
				return 0, false
			}
			return 100 * *t.HeldOut.LabelErrors, true
		}),
		{Name: "memory", Title: "memory", Unit: "B", Key: "mem_bytes", Less: true, Scaled: true,
			of: func(r, _ *record.Record) (Interval, bool) {
				m := float64(r.Work.Memory)
				return Interval{m, m, m}, m > 0
			}},
	}
	return slices.Concat(all, energies(), latencies())
}

// MeasureOf returns the measure of that name.
func MeasureOf(name string) (Measure, error) {
	all := Measures()
	names := make([]string, len(all))
	for i, m := range all {
		if m.Name == name {
			return m, nil
		}
		names[i] = m.Name
	}
	return Measure{}, fmt.Errorf("unknown metric %q: %s", name, suggest(name, names))
}

// Time returns the median time of one run of r in seconds; false: r has no valid time.
func Time(r *record.Record) (Interval, bool) {
	t := r.Seconds()
	if !(t > 0) || math.IsInf(t, 0) {
		return Interval{}, false
	}
	v := Interval{t, t, t}
	if lo, hi := r.Stats.Lo, r.Stats.Hi; lo != nil && hi != nil && *lo > 0 && *lo <= t && t <= *hi && !math.IsInf(*hi, 0) {
		v.Lo, v.Hi = *lo, *hi
	}
	return v, true
}

// speedup returns how many times as fast r is as base, with the interval of record.Ratio.
func speedup(r, base *record.Record) (Interval, bool) {
	if base == nil {
		return Interval{}, false
	}
	v, _ := record.Ratio(r, base)
	switch {
	case !(v.Value > 0):
		return Interval{}, false
	case r == base:
		return Interval{1, 1, 1}, true
	case !v.Known():
		return Interval{v.Value, v.Value, v.Value}, true
	}
	return Interval(v), true
}

// A Baseline finds the record with which a record is compared: the one at the same point with a
// given label.
type Baseline struct {
	Label string
	at    map[place]*record.Record
}

type place struct {
	device, cache, data string
	graph               bool
	point               record.Point
}

func placeOf(r *record.Record) place {
	return place{r.Device, r.Mode.Cache, r.Mode.Data, r.Mode.Graph, r.Point}
}

// NewBaseline collects the records with this label or, if there are none, of the technique with
// this name. It takes the fastest setting at each point.
func NewBaseline(recs []record.Record, label string) Baseline {
	b := Baseline{label, map[place]*record.Record{}}
	if label == "" {
		return b
	}
	latest := Latest(recs)
	match := func(r *record.Record) bool { return Label(r) == label }
	if !slices.ContainsFunc(latest, match) {
		match = func(r *record.Record) bool { return r.Impl.Name == label }
	}
	for _, r := range latest {
		if !match(r) || r.Seconds() <= 0 {
			continue
		}
		p := placeOf(r)
		if old := b.at[p]; old == nil || r.Seconds() < old.Seconds() {
			b.at[p] = r
		}
	}
	return b
}

// For returns the baseline of r, or nil. If the baseline was not measured with r's number of
// streams, For takes its own choice of streams, or else one stream. If r replays a graph and the
// baseline does not, For takes the direct launches.
func (b Baseline) For(r *record.Record) *record.Record {
	p := placeOf(r)
	for _, p.graph = range []bool{p.graph, false} {
		for _, p.point.Streams = range []int{r.Point.Streams, 0, 1} {
			if base := b.at[p]; base != nil {
				return base
			}
		}
	}
	return nil
}

// Empty reports whether there is no record to compare with.
func (b Baseline) Empty() bool { return len(b.at) == 0 }

// copies returns in percent the seconds that a device takes to copy as much as r moves; 0: unknown.
func copies(r *record.Record) float64 {
	if r.Rate == nil || r.Rate.Copies() <= 0 {
		return 0
	}
	return 100 * float64(r.Work.Bytes) / r.Rate.Copies()
}

// events returns the number of steps of all sequences in a run, without padding; 0: unknown.
func events(r *record.Record) float64 {
	n, ok := r.Point.Lengths.Steps(r.Point.Batch, r.Point.Steps)
	if !ok {
		return 0
	}
	return n
}
