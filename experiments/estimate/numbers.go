package estimate

import (
	"math"
	"slices"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// Events is a record's throughput in 1000 events a second.
func Events(r *record.Record) float64 {
	return float64(r.Point.Steps*r.Point.Batch) / r.Seconds() / 1000
}

// MoreEvents is the events per second of a over those of b.
func MoreEvents(a, b *record.Record) quantity.Interval {
	e := TimesAsFast(b, a)
	e = e.By(Events(a) * a.Seconds() / (Events(b) * b.Seconds()))
	return quantity.Interval{Value: e.At, Lo: e.Lo, Hi: e.Hi}
}

// WithInterval spells a value with its interval: "2.50× (2.41 to 2.63)".
func WithInterval(v quantity.Interval, format, unit string) string {
	return Of(v).Text(format, unit)
}

// Of is v as an estimate.
func Of(v quantity.Interval) Estimate { return Estimate{v.Value, v.Lo, v.Hi} }

// span is the range of the speed-up from a to b that their intervals allow.
func span(a, b *record.Record) (lo, hi float64) {
	if a.Stats.Lo == nil || b.Stats.Lo == nil {
		return 0, math.Inf(1)
	}
	return *a.Stats.Lo / *b.Stats.Hi, *a.Stats.Hi / *b.Stats.Lo
}

// Differ reports whether a measured factor is more than 15 % away from the paper's.
func Differ(here, paper float64) bool { return math.Abs(math.Log(here/paper)) > math.Log(Closeness) }

// Clearly reports whether a factor is a gain of more than 15 %, which wants a reason.
func Clearly(gain float64) bool { return gain > 1 && Differ(gain, 1) }

// Geomean is the geometric mean of v.
func Geomean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

// Mark is e at x, with its interval if that is known.
func (e Estimate) Mark(x float64) plots.Point {
	pt := plots.Point{X: x, Y: e.At}
	if e.Hi != Inf {
		pt.Lo, pt.Hi = e.Lo, e.Hi
	}
	return pt
}

// Almost is the share that stands for a paper's word "almost", where it prints none.
const Almost = 0.9

// Middle is the median of values; not a number: there are none.
func Middle(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
