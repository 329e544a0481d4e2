package tuner

import (
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner/wisdom"
)

// Untimed reports whether the budget ended before any candidate was timed, as opposed to none that
// can run.
func (v *Verdict) Untimed() bool { return v.Winner < 0 && !v.Complete }

// recall decides by their records whether the winner of candidates leads that were all measured
// before.
func (v *Verdict) recall() {
	if v.Winner < 0 || v.Evaluations > 0 {
		return
	}
	if v.Clear = len(v.Ties) == 0; v.Objective == record.OfEnergy {
		return
	}
	race := []*record.Record{v.Records[v.Winner]}
	for i, r := range v.Records {
		if i != v.Winner && r != nil && r.Seconds() > 0 {
			race = append(race, r)
		}
	}
	race = append(race[:1], quantity.ByTime(race[1:])...)
	if l, ok := quantity.LeadOf(race); ok {
		v.Clear = l.Clear()
	}
}

// TieLabels returns the labels of the candidates that cannot be told from the winner.
func (v *Verdict) TieLabels() (list []string) {
	for _, i := range v.Ties {
		if r := v.Records[i]; r != nil {
			list = append(list, r.Label())
		}
	}
	return list
}

// Entry returns the wisdom entry of a verdict with a winner. tool and libraries are the versions of
// the program and its libraries.
func (v *Verdict) Entry(cache, tool string, libraries map[string]string) wisdom.Entry {
	w := v.WinnerRecord()
	e := wisdom.Entry{
		Device: w.Device, Cache: cache, Point: v.Point, Objective: v.Objective, Joules: costOf(w, record.OfEnergy), Impl: w.Impl.Name, Knobs: w.Impl.Knobs, Seconds: w.Seconds(), Complete: v.Complete, Unsure: !v.Clear,
		Tool: tool, Libraries: libraries, Run: w.Run, Time: w.Time,
	}
	if v.Objective != record.OfEnergy {
		e.Joules = 0
	}
	e.Tried = v.Timed()
	if v.Second >= 0 {
		e.RunnerUp, e.Lead = v.Records[v.Second].Label(), v.Lead
	}
	return e
}

// Cost is the seconds of the winner's run and, if energy was the objective, its joules; else 0.
func (v *Verdict) Cost() (seconds, joules float64) {
	if v.Objective == record.OfEnergy {
		return v.WinnerRecord().Seconds(), v.Medians[v.Winner]
	}
	return v.Medians[v.Winner], 0
}

// mostElsewhere is how many settings of other machines are tried first at a point.
const mostElsewhere = 4

// Elsewhere lists the settings that the book has for that point, or near it, on other devices.
func Elsewhere(b *wisdom.Book, objective, device, cache string, p record.Point) (list []record.Impl) {
	var keys []string
	for _, m := range b.Elsewhere(objective, device, cache, p) {
		r := record.Record{Impl: record.Impl{Name: m.Impl, Knobs: m.Knobs}}
		if key := r.Key(); len(list) < mostElsewhere && !slices.Contains(keys, key) {
			keys, list = append(keys, key), append(list, r.Impl)
		}
	}
	return list
}

// Incumbent is the setting that the book has for exactly that point and objective. Its name is "" if
// there is none.
func Incumbent(b *wisdom.Book, objective, device, cache string, p record.Point) record.Impl {
	for _, m := range b.LookupFor(objective, device, cache, p) {
		if m.Kind == wisdom.Exact {
			return record.Impl{Name: m.Impl, Knobs: m.Knobs}
		}
	}
	return record.Impl{}
}
