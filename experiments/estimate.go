package experiments

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/record"
)

// An estimate is a measured value with an interval in which it lies. Without samples enough for an
// interval, lo is 0 and hi is infinite.
type estimate struct{ at, lo, hi float64 }

// moment is how far the times of one run may be from those of another for no reason but the moment,
// as a share. Techniques that were measured in turns share their moment, others do not. Package
// compare takes the same share for changes between single runs.
const moment = 0.05

// inf is the upper end of an unknown interval.
var inf = math.Inf(1)

// exactly is a value without error, such as a count.
func exactly(v float64) estimate { return estimate{v, v, v} }

// timesAsFast estimates how many times as fast b is as a. If both were measured in turns, the
// interval is that of the quotients of a round, in which both met the same machine. Otherwise it
// spans the intervals of both, widened by the moment. at is the quotient of the medians. It is
// unknown (NaN) if a record is missing.
func timesAsFast(a, b *record.Record) estimate {
	if a == nil || b == nil || a.Seconds() == 0 || b.Seconds() == 0 {
		return estimate{math.NaN(), 0, inf}
	}
	e := estimate{a.Seconds() / b.Seconds(), 0, inf}
	if quotients := inTurns(a, b); quotients != nil {
		if s, _ := record.Summarize(quotients, 0); s.Lo != nil {
			e.lo, e.hi = min(*s.Lo, e.at), max(*s.Hi, e.at)
		}
		return e
	}
	lo, hi := span(a, b)
	e.lo, e.hi = lo/(1+moment), hi*(1+moment)
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

// throughput estimates how many times the FLOP/s of a record b has.
func throughput(a, b *record.Record) estimate {
	e := timesAsFast(a, b)
	if math.IsNaN(e.at) || a.Work.Flops == 0 {
		return estimate{math.NaN(), 0, inf}
	}
	return e.by(float64(b.Work.Flops) / float64(a.Work.Flops))
}

// by is e times a positive factor without error.
func (e estimate) by(k float64) estimate { return estimate{e.at * k, e.lo * k, e.hi * k} }

// known reports whether there is a value.
func (e estimate) known() bool { return !math.IsNaN(e.at) }

// meanOf is the geometric mean of list. Errors may all go one way, so its ends are the means of the ends.
func meanOf(list []estimate) estimate {
	of := func(get func(estimate) float64) float64 {
		v := make([]float64, len(list))
		for i, e := range list {
			v[i] = get(e)
		}
		return geomean(v)
	}
	return estimate{of(func(e estimate) float64 { return e.at }), of(func(e estimate) float64 { return e.lo }), of(func(e estimate) float64 { return e.hi })}
}

// times spells e as a factor, such as "1.50× (1.40 to 1.61)".
func (e estimate) times() string { return e.text("%.2f", "×") }

// text spells e by format and with a unit, and the ends of its interval unless all are spelled alike.
func (e estimate) text(format, unit string) string {
	s := fmt.Sprintf(format, e.at) + unit
	if ends := e.ends(format); ends != "" {
		s += " (" + ends + ")"
	}
	return s
}

// ends spells the interval; "" if it is too small to see.
func (e estimate) ends(format string) string {
	if e.hi == inf {
		return "interval unknown"
	}
	at, lo, hi := fmt.Sprintf(format, e.at), fmt.Sprintf(format, e.lo), fmt.Sprintf(format, e.hi)
	if lo == at && hi == at {
		return ""
	}
	return lo + " to " + hi
}

// An answer says whether a claim holds.
type answer int

// The answers. Open: the measurement does not tell.
const (
	no answer = iota
	yes
	open
)

func answerOf(holds bool) answer {
	if holds {
		return yes
	}
	return no
}

// both is the answer to whether all of list hold.
func both(list ...answer) answer {
	switch {
	case slices.Contains(list, no):
		return no
	case slices.Contains(list, open):
		return open
	}
	return yes
}

// A band is the values that agree with a claim.
type band struct{ lo, hi float64 }

// closeness is how many times as large or as small as the paper's a value may be that agrees with it.
const closeness = 1.15

func near(paper float64) band { return band{paper / closeness, paper * closeness} }
func atLeast(v float64) band  { return band{v, inf} }
func atMost(v float64) band   { return band{0, v} }

// above and below leave v itself out: a ratio of 1 is no lead.
func above(v float64) band { return band{math.Nextafter(v, inf), inf} }
func below(v float64) band { return band{0, math.Nextafter(v, 0)} }

// holds tells whether e is within b. It is open where e's interval covers an end of b.
func (b band) holds(e estimate) answer {
	switch {
	case e.lo >= b.lo && e.hi <= b.hi:
		return yes
	case e.hi < b.lo || e.lo > b.hi:
		return no
	}
	return open
}

// openness says why b.holds(e) is open.
func (b band) openness(e estimate) string {
	if e.hi == inf {
		return "too few rounds for an interval"
	}
	end := b.lo
	if b.lo < e.lo || b.lo == 0 {
		end = b.hi
	}
	return fmt.Sprintf("the interval covers %.3g, where agreement ends", end)
}

// votes counts points by whether something clearly holds there.
type votes struct{ yes, no, open int }

func (v *votes) add(a answer) {
	switch a {
	case yes:
		v.yes++
	case no:
		v.no++
	default:
		v.open++
	}
}

func (v votes) all() int { return v.yes + v.no + v.open }

// some is the answer to whether it holds at any point.
func (v votes) some() answer { return v.share(0) }

// share is the answer to whether it holds at more than that share of the points.
func (v votes) share(of float64) answer {
	limit := of * float64(v.all())
	switch {
	case float64(v.yes) > limit:
		return yes
	case float64(v.yes+v.open) > limit:
		return open
	}
	return no
}

// openness says why an answer of v is open.
func (v votes) openness() string {
	if v.open == 1 {
		return "one point is within its interval"
	}
	return fmt.Sprintf("%d points are within their intervals", v.open)
}

// String is such as "12 of 20 points, 3 open".
func (v votes) String() string {
	s := fmt.Sprintf("%d of %d points", v.yes, v.all())
	if v.open > 0 {
		s += fmt.Sprintf(", %d open", v.open)
	}
	return s
}
