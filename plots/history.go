package plots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/compare"
)

// mostFollowed is how many lines a figure of a history has at most.
const mostFollowed = 8

// fewTimes is how many times have a median worth the name. Fewer are relative to the first.
const fewTimes = 4

// History draws the lines of a device's history that have a step, run by run: each time relative to the
// runs before the first step. Without a step it draws the line of all points, or the first lines.
func History(h *compare.History) *Chart {
	lines := h.Stepped()
	title := "Steps in the times of " + h.Device
	if len(lines) == 0 {
		title = "No step in the times of " + h.Device
		if h.Common != nil {
			lines = append(lines, h.Common)
		}
		for i := range h.Lines {
			lines = append(lines, &h.Lines[i])
		}
	}
	var records []*record.Record
	var runs []float64
	for i := range h.Lines {
		records = append(records, h.Lines[i].Record)
	}
	for run := range h.Runs {
		runs = append(runs, float64(run+1))
	}
	ch := &Chart{
		Title:    title,
		Subtitle: strings.TrimPrefix(fmt.Sprintf("%s · %d runs, from %s to %s", quantity.Common(records, "impl", "device"), len(h.Runs), h.Runs[0].Program(), h.Runs[len(h.Runs)-1].Program()), " · "),
		X:        Axis{Title: "Run", Scale: Linear, Places: runs, Format: whole, FormatValue: whole},
		Y:        Axis{Title: "Time relative to the first runs", Scale: Linear, Format: quantity.Factor, FormatValue: quantity.Factor},
		Panels:   make([]Panel, 1),
	}
	axes := slices.DeleteFunc(quantity.Varying(records), func(a quantity.Axis) bool { return a.Name == "impl" })
	for _, l := range lines[:min(len(lines), mostFollowed)] {
		ch.Panels[0].Series = append(ch.Panels[0].Series, followed(l, axes))
	}
	if more := len(lines) - mostFollowed; more > 0 {
		ch.Notes = append(ch.Notes, fmt.Sprintf("%d more lines are not drawn.", more))
	}
	for run := range h.Runs {
		if h.StepsAt(run) {
			ch.Notes = append(ch.Notes, fmt.Sprintf("A step begins with run %d, %s.", run+1, h.Runs[run].Program()))
		}
	}
	return ch
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

// followed is a line of a history as a series.
func followed(l *compare.Line, axes []quantity.Axis) Series {
	s := Series{Label: "all points"}
	if l.Record != nil {
		s.Label = quantity.Label(l.Record)
		if place := quantity.Place(l.Record, axes); place != "" {
			s.Label += " " + place
		}
	}
	first := len(l.Times)
	if len(l.Steps) > 0 {
		first = l.Steps[0].At
	}
	var before []float64
	for _, v := range l.Times[:first] {
		if !math.IsNaN(v) {
			before = append(before, v)
		}
	}
	if len(before) < fewTimes {
		before = before[:1]
	}
	slices.Sort(before)
	for run, v := range l.Times {
		s.Points = append(s.Points, Point{X: float64(run + 1), Y: v / before[len(before)/2], Missing: math.IsNaN(v)})
	}
	return s
}
