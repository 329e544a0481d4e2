package experiments

import (
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// moreEvents is the events per second of a over those of b.
func moreEvents(a, b *record.Record) quantity.Interval {
	e := timesAsFast(b, a)
	e = e.by(events(a) * a.Seconds() / (events(b) * b.Seconds()))
	return quantity.Interval{Value: e.at, Lo: e.lo, Hi: e.hi}
}

// withInterval spells a value with its interval: "2.50× (2.41 to 2.63)".
func withInterval(v quantity.Interval, format, unit string) string {
	return estimateOf(v).text(format, unit)
}

func estimateOf(v quantity.Interval) estimate { return estimate{v.Value, v.Lo, v.Hi} }

// claimAbove adds a paper's claim that v exceeds least.
func claimAbove(r *Report, on Target, paper, here string, v quantity.Interval, least float64, why string) {
	claimOf(r, on, paper, here, estimateOf(v), above(least), why)
}

// claimNear adds a paper's claim that v is a number, which it is close to.
func claimNear(r *Report, on Target, paper, here string, v quantity.Interval, number float64, why string) {
	claimOf(r, on, paper, here, estimateOf(v), near(number), why)
}

// compareAbove is claimAbove with a finding that ends with whether it agrees, with the same cause.
func compareAbove(r *Report, on Target, finding, paper, here string, v quantity.Interval, least float64, why string) {
	compareOf(r, on, finding, paper, here, estimateOf(v), above(least), why)
}
