// Package estimate gives ratios of records their intervals, and says whether a claim on them holds.
package estimate

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// An Estimate is a measured value with an interval in which it lies. Without samples enough for an
// interval, lo is 0 and hi is infinite.
type Estimate struct{ At, Lo, Hi float64 }

// Moment is how far the times of one run may be from those of another for no reason but the moment,
// as a share. Techniques that were measured in turns share their moment, others do not. Package
// compare takes the same share for changes between single runs.
const Moment = 0.05

// Inf is the upper end of an unknown interval.
var Inf = math.Inf(1)

// Exactly is a value without error, such as a count.
func Exactly(v float64) Estimate { return Estimate{v, v, v} }

// TimesAsFast estimates how many times as fast b is as a. If both were measured in turns, the
// interval is that of the quotients of a round, in which both met the same machine. Otherwise it
// spans the intervals of both, widened by the moment. at is the quotient of the medians. It is
// unknown (NaN) if a record is missing.
func TimesAsFast(a, b *record.Record) Estimate {
	if a == nil || b == nil || a.Seconds() == 0 || b.Seconds() == 0 {
		return Estimate{math.NaN(), 0, Inf}
	}
	e := Estimate{a.Seconds() / b.Seconds(), 0, Inf}
	if quotients := inTurns(a, b); quotients != nil {
		if s, _ := record.Summarize(quotients, 0); s.Lo != nil {
			e.Lo, e.Hi = min(*s.Lo, e.At), max(*s.Hi, e.At)
		}
		return e
	}
	lo, hi := span(a, b)
	e.Lo, e.Hi = lo/(1+Moment), hi*(1+Moment)
	return e
}

// inTurns returns the quotients of the samples of a and b, round by round, or nil if they were not
// measured in turns.
func inTurns(a, b *record.Record) []float64 {
	const together = 1 // s; records of one sitting are written at once
	if a.Run != b.Run || a.Point != b.Point || a.Mode.Order != "interleaved" || b.Mode.Order != "interleaved" ||
		math.Abs(a.Time.Sub(b.Time).Seconds()) > together {
		return nil
	}
	x, y := samplesOf(a), samplesOf(b)
	list := make([]float64, 0, len(x))
	for i := range min(len(x), len(y)) { // one that settled early lacks the last rounds
		list = append(list, x[i]/y[i])
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// samplesOf returns the samples that r's statistics are of, in seconds.
func samplesOf(r *record.Record) []float64 {
	switch {
	case r.Samples == nil:
		return nil
	case r.Mode.Timer == "event":
		return r.Samples.Device
	}
	return r.Samples.Wall
}

// Throughput estimates how many times the FLOP/s of a record b has.
func Throughput(a, b *record.Record) Estimate {
	e := TimesAsFast(a, b)
	if math.IsNaN(e.At) || a.Work.Flops == 0 {
		return Estimate{math.NaN(), 0, Inf}
	}
	return e.By(float64(b.Work.Flops) / float64(a.Work.Flops))
}

// By is e times a positive factor without error.
func (e Estimate) By(k float64) Estimate { return Estimate{e.At * k, e.Lo * k, e.Hi * k} }

// Known reports whether there is a value.
func (e Estimate) Known() bool { return !math.IsNaN(e.At) }

// Mean is the geometric mean of list. Errors may all go one way, so its ends are the means of the ends.
func Mean(list []Estimate) Estimate {
	of := func(get func(Estimate) float64) float64 {
		v := make([]float64, len(list))
		for i, e := range list {
			v[i] = get(e)
		}
		return Geomean(v)
	}
	return Estimate{of(func(e Estimate) float64 { return e.At }), of(func(e Estimate) float64 { return e.Lo }), of(func(e Estimate) float64 { return e.Hi })}
}

// Times spells e as a factor, such as "1.50× (1.40 to 1.61)".
func (e Estimate) Times() string { return e.spelled(quantity.Ratio, "×") }

// Text spells e by format and with a unit, and the ends of its interval unless all are spelled alike.
func (e Estimate) Text(format, unit string) string {
	return e.spelled(func(v float64) string { return fmt.Sprintf(format, v) }, unit)
}

// spelled is text with a function in place of a format.
func (e Estimate) spelled(spell func(float64) string, unit string) string {
	s := spell(e.At) + unit
	if ends := e.ends(spell); ends != "" {
		s += " (" + ends + ")"
	}
	return s
}

// ends spells the interval; "" if it is too small to see.
func (e Estimate) ends(spell func(float64) string) string {
	if e.Hi == Inf {
		return "interval unknown"
	}
	at, lo, hi := spell(e.At), spell(e.Lo), spell(e.Hi)
	if lo == at && hi == at {
		return ""
	}
	return lo + " to " + hi
}

// An Answer says whether a claim holds.
type Answer int

// The answers. Open: the measurement does not tell.
const (
	No Answer = iota
	Yes
	Open
)

// AnswerOf is the answer of a finding without error.
func AnswerOf(holds bool) Answer {
	if holds {
		return Yes
	}
	return No
}

// Both is the answer to whether all of list hold.
func Both(list ...Answer) Answer {
	switch {
	case slices.Contains(list, No):
		return No
	case slices.Contains(list, Open):
		return Open
	}
	return Yes
}

// A Band is the values that agree with a claim.
type Band struct{ Lo, Hi float64 }

// Closeness is how many times as large or as small as the paper's a value may be that agrees with it.
const Closeness = 1.15

// Near is the values that are close to the paper's.
func Near(paper float64) Band { return Band{paper / Closeness, paper * Closeness} }

// AtLeast is v and all larger values.
func AtLeast(v float64) Band { return Band{v, Inf} }

// AtMost is v and all smaller values.
func AtMost(v float64) Band { return Band{0, v} }

// Above is the values larger than v. It leaves v itself out: a ratio of 1 is no lead.
func Above(v float64) Band { return Band{math.Nextafter(v, Inf), Inf} }

// Below is the values smaller than v.
func Below(v float64) Band { return Band{0, math.Nextafter(v, 0)} }

// Holds tells whether e is within b. It is open where e's interval covers an end of b.
func (b Band) Holds(e Estimate) Answer {
	switch {
	case e.Lo >= b.Lo && e.Hi <= b.Hi:
		return Yes
	case e.Hi < b.Lo || e.Lo > b.Hi:
		return No
	}
	return Open
}

// Openness says why b.holds(e) is open.
func (b Band) Openness(e Estimate) string {
	if e.Hi == Inf {
		return "too few rounds for an interval"
	}
	end := b.Lo
	if b.Lo < e.Lo || b.Lo == 0 {
		end = b.Hi
	}
	return fmt.Sprintf("the interval covers %.3g, where agreement ends", end)
}

// Votes counts points by whether something clearly holds there.
type Votes struct{ Yes, No, Open int }

// Add counts a point.
func (v *Votes) Add(a Answer) {
	switch a {
	case Yes:
		v.Yes++
	case No:
		v.No++
	default:
		v.Open++
	}
}

// All is the number of points.
func (v Votes) All() int { return v.Yes + v.No + v.Open }

// Some is the answer to whether it holds at any point.
func (v Votes) Some() Answer { return v.Share(0) }

// Share is the answer to whether it holds at more than that share of the points.
func (v Votes) Share(of float64) Answer {
	limit := of * float64(v.All())
	switch {
	case float64(v.Yes) > limit:
		return Yes
	case float64(v.Yes+v.Open) > limit:
		return Open
	}
	return No
}

// Openness says why an answer of v is open.
func (v Votes) Openness() string {
	if v.Open == 1 {
		return "one point is within its interval"
	}
	return fmt.Sprintf("%d points are within their intervals", v.Open)
}

// String is such as "12 of 20 points, 3 open".
func (v Votes) String() string {
	s := fmt.Sprintf("%d of %d points", v.Yes, v.All())
	if v.Open > 0 {
		s += fmt.Sprintf(", %d open", v.Open)
	}
	return s
}
