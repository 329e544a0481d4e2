// Package show writes measured values as cells of tables and marks of figures.
package show

import (
	"fmt"
	"math"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// HalfCell is a cell of half of the interval of r's median.
func HalfCell(r *record.Record) table.Cell {
	if w, ok := r.Stats.HalfWidth(); ok {
		return table.Number(100*w, quantity.Half(w)).Of(r)
	}
	return Missing()
}

// Missing is a cell without a value: a dash in tables, null in data.
func Missing() table.Cell { return table.Cell{Text: "–"} }

// Number is a cell of a value that may be unknown.
func Number(v float64, format string) table.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing()
	}
	return table.Number(v, fmt.Sprintf(format, v))
}

// Digits is a cell of a value that may be unknown, with n significant digits and no exponent.
func Digits(v float64, n int) table.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing()
	}
	return table.Number(v, quantity.Digits(v, n))
}

// Ratio is a cell of a ratio that may be unknown.
func Ratio(v float64) table.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Missing()
	}
	return table.Number(v, quantity.Ratio(v))
}

// RatePoint is the throughput of r at x, with the interval of its median.
func RatePoint(x float64, r *record.Record) plots.Point {
	pt := plots.Point{X: x, Y: r.FLOPS(), From: r}
	if lo, hi := r.Stats.Lo, r.Stats.Hi; lo != nil && hi != nil {
		pt.Lo, pt.Hi = float64(r.Work.Flops)/(*hi), float64(r.Work.Flops)/(*lo)
	}
	return pt
}

// Rate returns a record's throughput as a cell and in FLOP/s: a dash and NaN if r is nil.
func Rate(r *record.Record) (table.Cell, float64) {
	if r == nil {
		return Missing(), math.NaN()
	}
	return table.Throughput(r), r.FLOPS()
}

// Upper returns s with its first letter, an ASCII one, in upper case.
func Upper(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]&^0x20) + s[1:]
}

// Column returns a column of numbers.
func Column(name, key string) table.Column { return table.Column{Name: name, Key: key, Right: true} }

// Share formats a share of 1 in percent.
func Share(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// Times spells a ratio, without the last digits of a sum such as 1 + 0.1 + 0.1.
func Times(v float64) string { return fmt.Sprintf("%.6g×", v+0) }
