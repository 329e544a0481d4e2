package table

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/compare"
)

// A changed is a change with the comparison to which it belongs.
type changed struct {
	of *compare.Comparison
	*compare.Change
}

// Changes returns a table of the changes of compared runs, sorted by point. Its notes summarise
// each run. If only is not nil, it lists only these verdicts; the notes cover all.
func Changes(list []compare.Comparison, o compare.Options, only []compare.Verdict) *Table {
	var all []*record.Record
	for i := range list {
		for j := range list[i].Changes {
			all = append(all, list[i].Changes[j].Record())
		}
	}
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "impl" })
	t := &changeColumns{builder[changed]{Table: &Table{Title: title(all)}}}
	t.points(all, axes, len(list) > 1)
	t.times(list)
	t.verdicts()
	for i := range list {
		c := &list[i]
		for _, ch := range inOrder(c, axes) {
			if only == nil || slices.Contains(only, ch.Verdict) {
				t.row(changed{c, ch})
			}
		}
		t.Notes = append(t.Notes, summary(c, o)...)
	}
	t.spare("p", "interval")
	t.Notes = append(t.Notes, methods(list, o)...)
	t.Notes = append(t.Notes, quantity.Doubts(sides(list))...)
	return t.Table
}

// changeColumns builds a table of changes.
type changeColumns struct{ builder[changed] }

// points adds columns of the run, the axes and the technique. Text formats show only axes on which
// records differ, and the run if there are several.
func (t *changeColumns) points(all []*record.Record, axes []quantity.Axis, several bool) {
	run := Column{Key: "run"}
	if several {
		run.Name = "run"
	}
	t.column(run, func(c changed) Cell { return Text(c.of.New) })
	varying := map[string]bool{}
	for _, a := range quantity.Varying(all) {
		varying[a.Name] = true
	}
	for _, a := range axes {
		c := Column{Key: a.Name, Right: a.Numeric}
		if varying[a.Name] {
			c.Name = a.Name
		}
		t.column(c, func(c changed) Cell { return axisCell(a, c.Record()) })
	}
	t.column(Column{Name: "impl", Key: "impl"}, func(c changed) Cell { return Text(quantity.Label(c.Record())) })
	knobs := varyingKnobs(all)
	settings := Column{Key: "knobs"}
	if len(knobs) > 0 {
		settings.Name = "knobs"
	}
	t.column(settings, func(c changed) Cell { return knobCell(c.Record(), knobs) })
}

// times adds columns of both times and their ratio. Where changes leave out what moved all points
// alike, the change from one time to the other is in a column of its own.
func (t *changeColumns) times(list []compare.Comparison) {
	t.column(Column{Name: "before", Key: "before_s", Right: true}, func(c changed) Cell { return timeCell(c.Base) })
	t.column(Column{Name: "now", Key: "now_s", Right: true}, func(c changed) Cell { return timeCell(c.New) })
	asTimed := Column{Key: "times_ratio", Right: true}
	for i := range list {
		for _, ch := range list[i].Changes {
			if raw := timesRatio(&ch); !math.IsNaN(raw) && math.Abs(raw-ch.Ratio.Value) > 0.01*raw {
				asTimed.Name = "of the times"
			}
		}
	}
	t.column(asTimed, func(c changed) Cell { return Number(timesRatio(c.Change), change(timesRatio(c.Change))) })
	if asTimed.Name != "" {
		t.Notes = append(t.Notes, "Of the times: now over before, as measured. Change: without what moved all points alike, or without outliers.")
	}
	t.column(Column{Name: "change", Key: "ratio", Right: true}, func(c changed) Cell {
		return Number(c.Ratio.Value, change(c.Ratio.Value))
	})
	t.column(Column{Name: "interval", Right: true}, func(c changed) Cell { return Cell{Text: span(c.Ratio)} })
	t.column(Column{Key: "ratio_lo"}, func(c changed) Cell { return Number(c.Ratio.Lo, "") })
	t.column(Column{Key: "ratio_hi"}, func(c changed) Cell { return Number(c.Ratio.Hi, "") })
}

// timesRatio is the time now over the time before; NaN: one of them is missing, or there is no change.
func timesRatio(c *compare.Change) float64 {
	if c.Base == nil || c.New == nil || !(c.Base.Seconds() > 0 && c.New.Seconds() > 0) || math.IsNaN(c.Ratio.Value) {
		return math.NaN()
	}
	return c.New.Seconds() / c.Base.Seconds()
}

// verdicts adds columns of the statistical tests and the verdict.
func (t *changeColumns) verdicts() {
	t.column(Column{Name: "p", Key: "p_holm", Right: true}, func(c changed) Cell { return Number(c.P, probability(c.P)) })
	t.column(Column{Key: "spread"}, func(c changed) Cell { return Number(c.Spread, "") })
	t.column(Column{Key: "runs_enough"}, func(c changed) Cell {
		if c.Enough == 0 {
			return Cell{}
		}
		return Int(c.Enough)
	})
	t.column(Column{Name: "verdict", Key: "verdict"}, func(c changed) Cell {
		cell := Text(string(c.Verdict))
		switch c.Verdict {
		case compare.Faster, compare.Fixed:
			cell.Grade = Near
		case compare.Slower, compare.Broken:
			cell.Grade = Worst
		}
		return cell
	})
	t.column(Column{Name: "why", Key: "why"}, func(c changed) Cell { return Text(c.Why) })
}

// sides returns the records of all changes, of both sides.
func sides(list []compare.Comparison) (all []*record.Record) {
	for i := range list {
		for _, ch := range list[i].Changes {
			for _, r := range []*record.Record{ch.Base, ch.New} {
				if r != nil {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// inOrder sorts changes as Records sorts records.
func inOrder(c *compare.Comparison, axes []quantity.Axis) []*compare.Change {
	list := make([]*compare.Change, len(c.Changes))
	for i := range list {
		list[i] = &c.Changes[i]
	}
	slices.SortStableFunc(list, func(x, y *compare.Change) int {
		a, b := x.Record(), y.Record()
		for _, axis := range axes {
			if d := axis.Compare(a, b); d != 0 {
				return d
			}
		}
		if d := quantity.Rank(a.Impl.Name, quantity.Label(a)) - quantity.Rank(b.Impl.Name, quantity.Label(b)); d != 0 {
			return d
		}
		return strings.Compare(a.Key(), b.Key())
	})
	return list
}

// summary returns a few notes on how a run compares with the base.
func summary(c *compare.Comparison, o compare.Options) []string {
	notes := []string{fmt.Sprintf("%s against %s: %s.", c.New, c.Base, verdictCounts(c))}
	notes = append(notes, moved(c)...)
	if g, n := c.Geomean(o.Level, nil); n > 0 && !c.Single && (c.Shifted || math.IsNaN(c.Shift.Value)) {
		words := []string{mean("all", g, n)}
		var labels []string
		for i := range c.Changes {
			if l := quantity.Label(c.Changes[i].Record()); !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
		if len(labels) > 1 {
			for _, l := range labels {
				if g, n := c.Geomean(o.Level, func(ch *compare.Change) bool { return quantity.Label(ch.Record()) == l }); n > 0 {
					words = append(words, mean(l, g, n))
				}
			}
		}
		notes = append(notes, "Geometric mean of the time: "+strings.Join(words, "; ")+".")
	}
	if worst := c.Worst(5); len(worst) > 0 {
		words := make([]string, len(worst))
		for i, ch := range worst {
			words[i] = fmt.Sprintf("%v %s %s", ch.New.Point, quantity.Label(ch.New), change(ch.Ratio.Value))
		}
		notes = append(notes, "Largest slowdowns: "+strings.Join(words, "; ")+".")
	}
	if c.Count(compare.Ambiguous) > 0 {
		notes = append(notes, remedy(c, o))
	}
	return notes
}

func mean(what string, g compare.Interval, n int) string {
	s := fmt.Sprintf("%s %s", what, change(g.Value))
	if g.Known() {
		s += " (" + span(g) + ")"
	}
	return fmt.Sprintf("%s over %d", s, n)
}

// change formats a ratio of times as a change in percent, or as a factor from 3 on.
func change(ratio float64) string {
	if math.IsNaN(ratio) {
		return "n/a"
	}
	if ratio >= 3 {
		return quantity.Factor(ratio)
	}
	return fmt.Sprintf("%+.1f %%", 100*(ratio-1))
}

func span(v compare.Interval) string {
	if !v.Known() {
		return ""
	}
	return change(v.Lo) + " … " + change(v.Hi)
}

func probability(p float64) string {
	switch {
	case math.IsNaN(p):
		return ""
	case p < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", p)
}
