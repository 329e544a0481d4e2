package experiments

import (
	"fmt"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// moreEvents is the events per second of a over those of b. Its interval spans the extreme ratios of
// the two intervals, so it errs on the wide side.
func moreEvents(a, b *results.Record) quantity.Interval {
	v := quantity.Interval{Value: events(a) / events(b)}
	s, oka := quantity.Time(a)
	t, okb := quantity.Time(b)
	if v.Lo, v.Hi = v.Value, v.Value; oka && okb {
		v.Lo, v.Hi = v.Value*s.Value/s.Hi*t.Lo/t.Value, v.Value*s.Value/s.Lo*t.Hi/t.Value
	}
	return v
}

// withInterval spells a value with its interval: "2.50× (2.41 to 2.63)".
func withInterval(v quantity.Interval, format, unit string) string {
	s := fmt.Sprintf(format, v.Value) + unit
	if lo, hi := fmt.Sprintf(format, v.Lo), fmt.Sprintf(format, v.Hi); v.Known() && lo != hi {
		s += fmt.Sprintf(" (%s to %s)", lo, hi)
	}
	return s
}

// claimAbove adds a paper's claim that v exceeds least.
func claimAbove(r *Report, on Target, paper, here string, v quantity.Interval, least float64, why string) {
	r.claim(on, paper, here, v.Value > least, why)
}

// claimNear adds a paper's claim that v is a number, which it is within differ's margin.
func claimNear(r *Report, on Target, paper, here string, v quantity.Interval, number float64, why string) {
	r.claim(on, paper, here, !differ(v.Value, number), why)
}

// compareAbove is claimAbove with a finding that ends with whether it agrees, with the same cause.
func compareAbove(r *Report, on Target, finding, paper, here string, v quantity.Interval, least float64, why string) {
	r.Findings = append(r.Findings, finding+on.agree(v.Value > least, why))
	claimAbove(r, on, paper, here, v, least, why)
}
