package table

import (
	"fmt"
	"math"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/compare"
)

// timeCell returns a cell of r's time with the larger half of its interval in percent.
func timeCell(r *record.Record) Cell {
	if r == nil {
		return Cell{}
	}
	v, ok := quantity.Time(r)
	if !ok {
		return Cell{}
	}
	text := quantity.SI(v.Value, "s")
	if v.Known() {
		text += " ± " + v.Half()
	}
	return Number(v.Value, text)
}

// moved returns notes on how runs differ apart from the program: the shift of all points together,
// and the spread of a typical point.
func moved(c *compare.Comparison) []string {
	var notes []string
	if !math.IsNaN(c.Shift.Value) {
		s := "All points together: " + change(c.Shift.Value)
		if c.Shift.Known() {
			s += " (" + span(c.Shift) + ")"
		}
		switch {
		case c.Shifted:
			s += ", more than runs of one side differ. Each change includes it."
		case c.Single:
			s += ". A slow moment in either run would look the same."
		default:
			s += ", no more than runs of one side may differ. Changes are relative to it."
		}
		notes = append(notes, s)
	}
	if c.Spread > 0 {
		notes = append(notes, fmt.Sprintf("A typical point moves by %s from run to run (standard deviation).", percent(100*c.Spread)))
	}
	if c.Single {
		notes = append(notes, fmt.Sprintf("One run per side: a change below %s is AMBG, because a slow moment of the machine looks the same.", percent(100*c.Reach)))
	}
	return notes
}

// remedy returns a note on what would resolve ambiguous points.
func remedy(c *compare.Comparison, o compare.Options) string {
	const turns = "rnnbench compare --ab base new"
	switch n := c.Enough(); {
	case n > 0 && c.Single:
		return fmt.Sprintf("AMBG: about %d runs per side would settle most. %s --runs %d -- sweep … alternates the sides.", n, turns, n)
	case n > 0:
		return fmt.Sprintf("AMBG: about %d runs per side would settle most: %s --runs %d -- sweep …", n, turns, n)
	case c.Spread > 0:
		return fmt.Sprintf("AMBG: the machine is too noisy to resolve %s. Run rnnbench doctor, or use a larger --min-effect.", percent(100*o.MinEffect))
	}
	return "AMBG: more runs of both sides would help: " + turns + " -- sweep …"
}

// methods returns notes on how changes and verdicts are computed.
func methods(list []compare.Comparison, o compare.Options) []string {
	single, several := false, false
	for i := range list {
		single, several = single || list[i].Single, several || !list[i].Single
	}
	var notes []string
	if several {
		notes = append(notes, fmt.Sprintf("Change: ratio of the runs' medians, with its %s interval from the spread between runs. "+
			"p: Student's t-test with spreads moderated over all points (Smyth 2004), Holm-corrected.", percent(100*o.Level)))
	}
	if single {
		notes = append(notes, fmt.Sprintf("Change of single runs: median ratio of all pairs of samples, with its %s interval. "+
			"p: Mann-Whitney test, Holm-corrected over all points.", percent(100*o.Level)))
	}
	return append(notes, fmt.Sprintf("FASTER and SLOWER: p < %v and a change of at least %s. SAME: the interval lies within that margin.", o.Alpha, percent(100*o.MinEffect)))
}
