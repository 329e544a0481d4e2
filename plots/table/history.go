package table

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/compare"
)

// A stepRow is a line of a history with one of its steps; nil: it has none.
type stepRow struct {
	of   *compare.History
	line *compare.Line
	step *compare.Step
}

// Verdicts of histories, beside FASTER and SLOWER of a step.
const (
	steady = "STEADY"
	unsure = "CANNOT TELL"
)

// sharp is the step that a history must be able to show, as a share, for a line without one to be steady.
const sharp = 0.10

// History returns a table of the histories of devices, with a row for each step. With all, lines without a
// step have rows too. Its notes say what could be seen.
func History(list []compare.History, all bool) *Table {
	var records []*record.Record
	for _, h := range list {
		for i := range h.Lines {
			records = append(records, h.Lines[i].Record)
		}
	}
	axes := slices.DeleteFunc(quantity.Axes(), func(a quantity.Axis) bool { return a.Name == "impl" })
	t := &historyColumns{builder[stepRow]{Table: &Table{Title: title(records)}}}
	t.lines(records, axes)
	t.steps()
	for i := range list {
		h := &list[i]
		for _, l := range historyLines(h, axes) {
			for j := range l.Steps {
				t.row(stepRow{h, l, &l.Steps[j]})
			}
			if all && len(l.Steps) == 0 {
				t.row(stepRow{h, l, nil})
			}
		}
		t.Notes = append(t.Notes, historyNotes(h)...)
	}
	if len(t.Rows) == 0 {
		t.Notes = append([]string{"No step was found. --all lists the lines."}, t.Notes...)
	}
	t.Notes = append(t.Notes, "Visible: the smallest step in the middle of a history that four of five times would be found.")
	t.spare("p", "interval")
	return t.Table
}

// historyLines lists the common line and then the others by axes.
func historyLines(h *compare.History, axes []quantity.Axis) (list []*compare.Line) {
	for i := range h.Lines {
		list = append(list, &h.Lines[i])
	}
	slices.SortStableFunc(list, func(x, y *compare.Line) int {
		for _, axis := range axes {
			if d := axis.Compare(x.Record, y.Record); d != 0 {
				return d
			}
		}
		return cmp.Compare(quantity.Rank(x.Record.Impl.Name, quantity.Label(x.Record)), quantity.Rank(y.Record.Impl.Name, quantity.Label(y.Record)))
	})
	if h.Common != nil {
		list = append([]*compare.Line{h.Common}, list...)
	}
	return list
}

// historyColumns builds a table of a history.
type historyColumns struct{ builder[stepRow] }

// lines adds columns of the axes and the technique. Text formats show only axes on which records differ.
func (t *historyColumns) lines(all []*record.Record, axes []quantity.Axis) {
	varying := map[string]bool{}
	for _, a := range quantity.Varying(all) {
		varying[a.Name] = true
	}
	of := func(f func(r *record.Record) Cell) func(stepRow) Cell {
		return func(r stepRow) Cell {
			if r.line.Record == nil {
				return Cell{}
			}
			return f(r.line.Record)
		}
	}
	device := func(r stepRow) Cell { return Text(r.of.Device) } // all points have one, too
	for _, a := range axes {
		c := Column{Key: a.Name, Right: a.Numeric}
		if varying[a.Name] {
			c.Name = a.Name
		}
		if a.Name == "device" {
			t.column(c, device)
			continue
		}
		t.column(c, of(func(r *record.Record) Cell { return axisCell(a, r) }))
	}
	t.column(Column{Name: "impl", Key: "impl"}, func(r stepRow) Cell { return Text(lineName(r.line)).Of(r.line.Record) })
	knobs := varyingKnobs(all)
	settings := Column{Key: "knobs"}
	if len(knobs) > 0 {
		settings.Name = "knobs"
	}
	t.column(settings, of(func(r *record.Record) Cell { return knobCell(r, knobs) }))
}

// lineName names the technique of a line.
func lineName(l *compare.Line) string {
	switch {
	case l.Record == nil:
		return "all points"
	case l.Record.Impl.Choice != nil:
		return l.Record.Impl.Choice.By
	}
	return quantity.Label(l.Record)
}

// steps adds columns of the step and the verdict.
func (t *historyColumns) steps() {
	at := func(f func(h *compare.History, s *compare.Step) Cell) func(stepRow) Cell {
		return func(r stepRow) Cell {
			if r.step == nil {
				return Cell{}
			}
			return f(r.of, r.step)
		}
	}
	t.column(Column{Name: "since", Key: "since"}, at(func(h *compare.History, s *compare.Step) Cell { return Text(h.Runs[s.At].Program()) }))
	t.column(Column{Key: "since_date"}, at(func(h *compare.History, s *compare.Step) Cell {
		return Text(h.Runs[s.At].Manifest.Started.UTC().Format(time.RFC3339))
	}))
	t.column(Column{Name: "before it", Key: "last_before", Spare: 3}, at(func(h *compare.History, s *compare.Step) Cell { return Text(h.Runs[s.At-1].Program()) }))
	t.column(Column{Name: "change", Key: "ratio", Right: true}, at(func(_ *compare.History, s *compare.Step) Cell {
		return Number(s.Ratio.Value, change(s.Ratio.Value))
	}))
	t.column(Column{Name: "interval", Right: true}, at(func(_ *compare.History, s *compare.Step) Cell { return Cell{Text: span(s.Ratio)} }))
	t.column(Column{Key: "ratio_lo"}, at(func(_ *compare.History, s *compare.Step) Cell { return Number(s.Ratio.Lo, "") }))
	t.column(Column{Key: "ratio_hi"}, at(func(_ *compare.History, s *compare.Step) Cell { return Number(s.Ratio.Hi, "") }))
	t.column(Column{Name: "p", Key: "p", Right: true}, at(func(_ *compare.History, s *compare.Step) Cell { return Number(s.P, probability(s.P)) }))
	t.column(Column{Name: "verdict", Key: "verdict"}, verdictCell)
	t.column(Column{Name: "visible", Key: "visible", Right: true}, func(r stepRow) Cell {
		if math.IsInf(r.line.Visible, 0) {
			return Cell{}
		}
		return Number(r.line.Visible, change(1+r.line.Visible))
	})
	t.column(Column{Name: "why", Key: "why"}, func(r stepRow) Cell { return Text(stepWhy(r)) })
}

func verdictCell(r stepRow) Cell {
	switch {
	case r.step == nil && r.line.Visible <= sharp && !r.line.Late.Known():
		return Text(steady)
	case r.step == nil:
		return Text(unsure)
	case r.step.Ratio.Value > 1:
		return Cell{Text: string(compare.Slower), Value: string(compare.Slower), Grade: Worst}
	}
	return Cell{Text: string(compare.Faster), Value: string(compare.Faster), Grade: Near}
}

// stepWhy says what else changed at a step, or why a line is not steady.
func stepWhy(r stepRow) string {
	l := r.line
	if r.step != nil {
		before, after := r.of.Runs[r.step.At-1].Manifest.Environment.Tool, r.of.Runs[r.step.At].Manifest.Environment.Tool
		if before.Revision != "" && before.Revision == after.Revision && before.Commit() == after.Commit() {
			return "the same program before and after, so the machine changed"
		}
		if l.Choices != nil {
			if was, is := lastChoice(l.Choices[:r.step.At]), firstChoice(l.Choices[r.step.At:]); was != is {
				return fmt.Sprintf("chose %s, then %s", was, is)
			}
		}
		return ""
	}
	switch {
	case math.IsInf(l.Visible, 0):
		return fmt.Sprintf("%d runs are too few", countTimes(l))
	case l.Late.Known():
		return fmt.Sprintf("the last runs differ by %s, which more runs would settle", change(l.Late.Value))
	case l.Visible > sharp && l.Drifts:
		return "its time drifts from run to run"
	case l.Visible > sharp:
		return fmt.Sprintf("runs differ by %s", percent(100*l.Spread))
	}
	return ""
}

func lastChoice(list []string) string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "" })
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func firstChoice(list []string) string {
	i := slices.IndexFunc(list, func(s string) bool { return s != "" })
	if i < 0 {
		return ""
	}
	return list[i]
}

func countTimes(l *compare.Line) (n int) {
	for _, v := range l.Times {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// historyNotes sums up a history.
func historyNotes(h *compare.History) []string {
	first, last := h.Runs[0], h.Runs[len(h.Runs)-1]
	notes := []string{fmt.Sprintf("%d runs of %s, from %s to %s.", len(h.Runs), h.Device, first.Program(), last.Program())}
	if h.Common == nil {
		notes = append(notes, "With fewer than 8 points, what slows all points of a run alike cannot be told from a change.")
	} else {
		notes = append(notes, "Changes leave out what moved all points of a run alike; that is the line of all points.")
	}
	counts, steps := map[string]int{}, 0
	var visible []float64
	for i := range h.Lines {
		l := &h.Lines[i]
		if len(l.Steps) > 0 {
			steps++
			continue
		}
		counts[verdictCell(stepRow{h, l, nil}).Text]++
		if !math.IsInf(l.Visible, 0) {
			visible = append(visible, l.Visible)
		}
	}
	notes = append(notes, fmt.Sprintf("%d lines: %d with a step, %d %s, %d %s.", len(h.Lines), steps, counts[steady], steady, counts[unsure], unsure))
	if len(visible) > 0 {
		slices.Sort(visible)
		notes = append(notes, fmt.Sprintf("A step of %s would be visible in the middle one of the lines without a step.", percent(100*visible[len(visible)/2])))
	}
	for i, s := range h.Runs[1:] {
		if !h.StepsAt(i + 1) {
			continue
		}
		if d := machineChanges(h.Runs[i], s); len(d) > 0 {
			notes = append(notes, fmt.Sprintf("What else changed with %s: %s.", s.Program(), strings.Join(d, "; ")))
		}
	}
	return notes
}

// machineChanges lists what differs between the environments of two runs, but for their programs' commits.
func machineChanges(a, b record.Set) []string {
	x, y := a.Manifest.Environment, b.Manifest.Environment
	y.Tool.Version, y.Tool.Revision, y.Tool.Time, y.Tool.Dirty = x.Tool.Version, x.Tool.Revision, x.Tool.Time, x.Tool.Dirty
	return record.Diff(x, y)
}
