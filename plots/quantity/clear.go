package quantity

import (
	"fmt"
	"slices"

	"rnnbench/results"
)

// leastLead is the smallest ratio of times that counts as a lead.
const leastLead = 1.01

// Clear reports whether a is faster than b by at least 1 % and their confidence intervals do not
// overlap.
func Clear(a, b *results.Record) bool {
	x, okx := Time(a)
	y, oky := Time(b)
	return okx && oky && y.Value >= leastLead*x.Value && x.Known() && y.Known() && x.Hi < y.Lo
}

// Races groups records by point, and sorts each group by time, the fastest first. It takes only the
// fastest setting of each label.
func Races(recs []*results.Record) [][]*results.Record {
	var axes, impl []Axis
	for _, a := range Axes() {
		switch a.Name {
		case "impl":
			impl = append(impl, a)
		case "streams": // a setting like any other
		default:
			axes = append(axes, a)
		}
	}
	chosen, _ := Choose(recs, append(slices.Clone(axes), impl...)...)
	var list [][]*results.Record
	for i, r := range chosen {
		if i == 0 || slices.ContainsFunc(axes, func(a Axis) bool { return a.Text(r) != a.Text(chosen[i-1]) }) {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], r)
	}
	for _, x := range list {
		slices.SortStableFunc(x, func(a, b *results.Record) int {
			ta, tb := a.Seconds(), b.Seconds()
			switch {
			case ta > 0 && (tb <= 0 || ta < tb):
				return -1
			case tb > 0 && (ta <= 0 || tb < ta):
				return 1
			}
			return 0
		})
	}
	return list
}

// A Standing counts how clear the winners of records are, and how noisy the records.
type Standing struct {
	Winners, Clear int // points where two techniques have a time; of these, clear winners
	Noisy, Timed   int // noisy records, and all that have a time
}

// StandingOf counts clear winners and noisy records.
func StandingOf(recs []*results.Record) Standing {
	var s Standing
	for _, r := range recs {
		if r.Seconds() > 0 {
			s.Timed++
			if slices.Contains(r.Warnings, results.WarnNoisy) {
				s.Noisy++
			}
		}
	}
	for _, x := range Races(recs) {
		if len(x) > 1 && x[1].Seconds() > 0 {
			s.Winners++
			if Clear(x[0], x[1]) {
				s.Clear++
			}
		}
	}
	return s
}

// Headline returns a line on the noise if more than half of the timed records are noisy, else "".
func (s Standing) Headline() string {
	if 2*s.Noisy <= s.Timed {
		return ""
	}
	records := "records are"
	if s.Timed == 1 {
		records = "record is"
	}
	noisy := fmt.Sprintf("%d of %d %s noisy: run rnnbench doctor", s.Noisy, s.Timed, records)
	if s.Winners == 0 {
		return noisy
	}
	winners := "winners are"
	if s.Winners == 1 {
		winners = "winner is"
	}
	return fmt.Sprintf("%d of %d %s clear; %s", s.Clear, s.Winners, winners, noisy)
}
