package quantity

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/record"
)

// Clear reports whether a is faster than b beyond doubt, by the rule of record.Interval.Leads.
func Clear(a, b *record.Record) bool {
	v, _ := record.Ratio(a, b)
	return v.Leads()
}

// A Lead is how far the fastest record of a race is ahead.
type Lead struct {
	First, Next *record.Record
	Ratio       record.Interval // how many times as fast First is as Next
	Paired      bool            // both were measured in the same rounds
}

// Clear reports whether First is the fastest beyond doubt. If not, it is a tie, or there are too few
// samples to say.
func (l Lead) Clear() bool { return l.Ratio.Leads() }

// Tie reports whether First and Next cannot be told apart.
func (l Lead) Tie() bool { return l.Ratio.Known() && !l.Clear() }

// LeadOf returns the lead in a race, which is sorted by time; false: fewer than two have a time. Next
// is the fastest of the others that First may not beat, or else the runner-up.
func LeadOf(race []*record.Record) (Lead, bool) {
	if len(race) < 2 || race[1].Seconds() <= 0 {
		return Lead{}, false
	}
	var next Lead
	for i, r := range race[1:] {
		l := Lead{First: race[0], Next: r}
		l.Ratio, l.Paired = record.Ratio(race[0], r)
		if i == 0 {
			next = l
		}
		if !next.Clear() {
			break
		}
		if l.Tie() {
			return l, true
		}
	}
	return next, true
}

// Times formats a ratio with its interval, such as 1.25× (1.20–1.31×).
func Times(v record.Interval) string {
	value, lo, hi := Factor(v.Value), Factor(v.Lo), Factor(v.Hi)
	if !v.Known() || lo == hi {
		return value
	}
	return fmt.Sprintf("%s (%s–%s)", value, strings.TrimSuffix(lo, "×"), hi)
}

// Races groups records by point, and sorts each group by time, the fastest first. It takes only the
// fastest setting of each label.
func Races(recs []*record.Record) [][]*record.Record {
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
	var list [][]*record.Record
	for i, r := range chosen {
		if i == 0 || slices.ContainsFunc(axes, func(a Axis) bool { return a.Text(r) != a.Text(chosen[i-1]) }) {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], r)
	}
	for i := range list {
		list[i] = ByTime(list[i])
	}
	return list
}

// ByTime returns records sorted by time, the fastest first. Those without a time are last.
func ByTime(recs []*record.Record) []*record.Record {
	sorted := slices.Clone(recs)
	slices.SortStableFunc(sorted, func(a, b *record.Record) int {
		ta, tb := a.Seconds(), b.Seconds()
		switch {
		case ta > 0 && (tb <= 0 || ta < tb):
			return -1
		case tb > 0 && (ta <= 0 || tb < ta):
			return 1
		}
		return 0
	})
	return sorted
}

// A Standing counts how clear the winners of records are, and how noisy the records.
type Standing struct {
	Winners, Clear int // points where two techniques have a time; of these, clear winners
	Noisy, Timed   int // noisy records, and all that have a time
}

// StandingOf counts clear winners and noisy records.
func StandingOf(recs []*record.Record) Standing {
	var s Standing
	for _, r := range recs {
		if r.Seconds() > 0 {
			s.Timed++
			if slices.Contains(r.Warnings, record.WarnNoisy) {
				s.Noisy++
			}
		}
	}
	for _, x := range Races(recs) {
		if l, ok := LeadOf(x); ok {
			s.Winners++
			if l.Clear() {
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
	noisy := fmt.Sprintf("%d of %s noisy: run rnnbench doctor", s.Noisy, Are(s.Timed, "record"))
	if s.Winners == 0 {
		return noisy
	}
	return fmt.Sprintf("%d of %s clear; %s", s.Clear, Are(s.Winners, "winner"), noisy)
}
