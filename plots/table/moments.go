package table

import (
	"fmt"
	"math"

	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/results/compare"
)

// timeCell is r's time with half of its interval.
func timeCell(r *results.Record) Cell {
	if r == nil {
		return Cell{}
	}
	v, ok := quantity.Time(r)
	if !ok {
		return Cell{}
	}
	text := quantity.SI(v.Value, "s")
	if v.Known() {
		text += " ± " + percent(100*v.Spread())
	}
	return Number(v.Value, text)
}

// moved says how runs differ whatever the program: all points together, and a
// typical one.
func moved(c *compare.Comparison) []string {
	var notes []string
	if !math.IsNaN(c.Shift.Value) {
		s := "All points together: " + change(c.Shift.Value)
		if c.Shift.Known() {
			s += " (" + span(c.Shift) + ")"
		}
		switch {
		case c.Told:
			s += ", more than runs of one side differ by. It is part of every change."
		case c.Single:
			s += ". A moment of either run looks the same."
		default:
			s += ", which runs of one side may differ by as well. Changes are beside it."
		}
		notes = append(notes, s)
	}
	if c.Spread > 0 {
		notes = append(notes, fmt.Sprintf("From run to run, a typical point moves by %s (standard deviation).", percent(100*c.Spread)))
	}
	if c.Single {
		notes = append(notes, fmt.Sprintf("One run a side: a change of less than %s is AMBG, since a slow moment of the machine looks like it.", percent(100*c.Reach)))
	}
	return notes
}

// remedy says what would settle ambiguous points.
func remedy(c *compare.Comparison, o compare.Options) string {
	const turns = "rnnbench compare --ab base new"
	switch n := c.Enough(); {
	case n > 0 && c.Single:
		return fmt.Sprintf("AMBG: about %d runs a side would settle most. %s --runs %d -- sweep … makes them in turns.", n, turns, n)
	case n > 0:
		return fmt.Sprintf("AMBG: about %d runs a side would settle most: %s --runs %d -- sweep …", n, turns, n)
	case c.Spread > 0:
		return fmt.Sprintf("AMBG: the machine is too noisy to tell %s. rnnbench doctor says what may help; --min-effect asks for less.", percent(100*o.MinEffect))
	}
	return "AMBG: several runs of both sides tell more: " + turns + " -- sweep …"
}

// methods says how verdicts come about.
func methods(list []compare.Comparison, o compare.Options) []string {
	single, several := false, false
	for i := range list {
		single, several = single || list[i].Single, several || !list[i].Single
	}
	var notes []string
	if several {
		notes = append(notes, fmt.Sprintf("Change: ratio of the runs' medians, with its %s interval from the spread between runs. "+
			"p: Student's test, spreads weighed over all points (Smyth 2004), corrected for their number (Holm).", percent(100*o.Level)))
	}
	if single {
		notes = append(notes, fmt.Sprintf("Change of single runs: median ratio of all pairs of samples, with its %s interval. "+
			"p: Mann and Whitney's test, corrected for all points (Holm).", percent(100*o.Level)))
	}
	return append(notes, fmt.Sprintf("FASTER and SLOWER: p < %v and at least %s. SAME: the interval lies within that.", o.Alpha, percent(100*o.MinEffect)))
}
