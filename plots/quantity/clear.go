package quantity

import (
	"fmt"
	"slices"

	"rnnbench/results"
)

// leastLead is the least ratio of times that is a lead.
const leastLead = 1.01

// Clear says whether a is faster than b by more than 1 % and by more than their
// confidence intervals tell.
func Clear(a, b *results.Record) bool {
	x, okx := Time(a)
	y, oky := Time(b)
	return okx && oky && y.Value >= leastLead*x.Value && x.Known() && y.Known() && x.Hi < y.Lo
}

// Races sorts records by point, and at each point by time, the fastest first. Of
// several settings of a technique the fastest counts.
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

// A Standing is how much records tell of who is the fastest.
type Standing struct {
	Winners, Clear int // of points with rivals
	Noisy, Timed   int // records
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

// Headline says how noisy the records are, where most of them are; else it is
// empty.
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
