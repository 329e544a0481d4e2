package experiments

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// halfCell is a cell of half of the interval of r's median.
func halfCell(r *record.Record) table.Cell {
	if w, ok := r.Stats.HalfWidth(); ok {
		return table.Number(100*w, quantity.Half(w))
	}
	return missing()
}

// missing is a cell without a value: a dash in tables, null in data.
func missing() table.Cell { return table.Cell{Text: "–"} }

// number is a cell of a value that may be unknown.
func number(v float64, format string) table.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing()
	}
	return table.Number(v, fmt.Sprintf(format, v))
}

// span is the range of the speed-up from a to b that their intervals allow.
func span(a, b *record.Record) (lo, hi float64) {
	if a.Stats.Lo == nil || b.Stats.Lo == nil {
		return 0, math.Inf(1)
	}
	return *a.Stats.Lo / *b.Stats.Hi, *a.Stats.Hi / *b.Stats.Lo
}

// differ reports whether a measured factor is more than 15 % away from the paper's.
func differ(here, paper float64) bool { return math.Abs(math.Log(here/paper)) > math.Log(closeness) }

// clearly reports whether a factor is a gain of more than 15 %, which wants a reason.
func clearly(gain float64) bool { return gain > 1 && differ(gain, 1) }

// medianOfRuns says how times here are averaged.
const medianOfRuns = "medians of runs, where the paper does not say how it averages"

// at keeps the records of one point.
func at(recs []record.Record, p record.Point) []record.Record {
	var out []record.Record
	for _, r := range recs {
		if r.Point == p {
			out = append(out, r)
		}
	}
	return out
}

func geomean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

// ratePoint is the throughput of r at x, with the interval of its median.
func ratePoint(x float64, r *record.Record) plots.Point {
	pt := plots.Point{X: x, Y: r.FLOPS()}
	if lo, hi := r.Stats.Lo, r.Stats.Hi; lo != nil && hi != nil {
		pt.Lo, pt.Hi = float64(r.Work.Flops)/(*hi), float64(r.Work.Flops)/(*lo)
	}
	return pt
}

// mark is e at x, with its interval if that is known.
func (e estimate) mark(x float64) plots.Point {
	pt := plots.Point{X: x, Y: e.at}
	if e.hi != inf {
		pt.Lo, pt.Hi = e.lo, e.hi
	}
	return pt
}

// rate returns a record's throughput as a cell and in FLOP/s: a dash and NaN if r is nil.
func rate(r *record.Record) (table.Cell, float64) {
	if r == nil {
		return missing(), math.NaN()
	}
	return table.Number(r.FLOPS(), quantity.SI(r.FLOPS(), "FLOP/s")), r.FLOPS()
}

// upper returns s with its first letter, an ASCII one, in upper case.
func upper(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]&^0x20) + s[1:]
}

// labels lists the techniques of recs in order of appearance.
func labels(recs []record.Record) []string {
	var list []string
	for _, r := range recs {
		if l := r.Impl.Label; !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// With enoughStreams, the paper reaches almost the maximum speed. It prints no share, so almost is
// the share that stands for its word.
const (
	enoughStreams = 64
	almost        = 0.9
)

// where keeps the records whose points are wanted.
func where(recs []record.Record, wanted func(record.Point) bool) []record.Record {
	var out []record.Record
	for _, r := range recs {
		if wanted(r.Point) {
			out = append(out, r)
		}
	}
	return out
}

// column returns a column of numbers.
func column(name, key string) table.Column { return table.Column{Name: name, Key: key, Right: true} }
