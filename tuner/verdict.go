package tuner

import (
	"rnnbench/results"
	"rnnbench/tuner/wisdom"
)

// Untimed reports whether the budget was spent before a candidate was timed, which
// is not that none can run.
func (v *Verdict) Untimed() bool { return v.Winner < 0 && !v.Complete }

// TieLabels are the labels of those that cannot be told from the winner.
func (v *Verdict) TieLabels() (list []string) {
	for _, i := range v.Ties {
		if r := v.Records[i]; r != nil {
			list = append(list, r.Label())
		}
	}
	return list
}

// Entry is what a verdict with a winner adds to the wisdom of a program and of
// libraries of such versions.
func (v *Verdict) Entry(cache, tool string, libraries map[string]string) wisdom.Entry {
	w := v.WinnerRecord()
	e := wisdom.Entry{
		Device: w.Device, Cache: cache, Point: v.Point, Objective: v.Objective, Joules: costOf(w, results.OfEnergy), Impl: w.Impl.Name, Knobs: w.Impl.Knobs, Seconds: w.Seconds(), Complete: v.Complete,
		Tool: tool, Libraries: libraries, Run: w.Run, Time: w.Time,
	}
	if v.Objective != results.OfEnergy {
		e.Joules = 0
	}
	e.Tried = v.Timed()
	if v.Second >= 0 {
		e.RunnerUp, e.Lead = v.Records[v.Second].Label(), v.Lead
	}
	return e
}

// Cost is what a run of the winner takes: seconds, and where energy was the objective also
// joules.
func (v *Verdict) Cost() (seconds, joules float64) {
	if v.Objective == results.OfEnergy {
		return v.WinnerRecord().Seconds(), v.Medians[v.Winner]
	}
	return v.Medians[v.Winner], 0
}

// Incumbent is what the book says of a point already, by an objective; its name may be "".
func Incumbent(b *wisdom.Book, objective, device, cache string, p results.Point) results.Impl {
	for _, m := range b.LookupFor(objective, device, cache, p) {
		if m.Kind == wisdom.Exact {
			return results.Impl{Name: m.Impl, Knobs: m.Knobs}
		}
	}
	return results.Impl{}
}
