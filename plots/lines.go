package plots

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// mostSeries is the most lines of a figure, more than a reader can follow.
const mostSeries = 24

// mostPanels is how many panels fit on a page.
const mostPanels = 16

// Lines draws a measure against a numeric axis, with a line for each technique. If records at one
// place differ in other axes, these axes divide the lines further. Where a record failed or was
// skipped, the line has a gap with a cross below.
func Lines(recs []record.Record, s Spec) (*Chart, error) {
	v, err := s.resolve(recs, "flops")
	if err != nil {
		return nil, err
	}
	if !v.x.Numeric {
		return nil, fmt.Errorf("plots: lines need a numeric x axis, and %s is not numeric: choose another axis, or a heatmap", v.X)
	}
	panels, notes, err := v.panels(false)
	if err != nil {
		return nil, err
	}
	ch := &Chart{
		Title:    v.title(capital(v.what()) + " against " + v.x.Title),
		Subtitle: v.subtitle(v.X),
		X:        v.xAxis(),
		Y:        Axis{Title: capital(v.withUnit()), Scale: v.scale(), Format: v.measure.Tick, FormatValue: v.measure.Format, Zero: true},
		Panels:   panels,
		Notes:    notes,
	}
	for i := range ch.Panels {
		ch.Panels[i].Guides = v.guides()
	}
	if peak := v.peak(); peak > 0 && len(v.guides()) > 0 && v.measure.Name != "speedup" && ch.above(func(Point) float64 { return peak }) {
		ch.Notes = append(ch.Notes, peakNote)
	}
	return ch, nil
}

// Notes that explain marks above the lines of limits.
const (
	peakNote = "The peak is for single-precision multiply-adds; tensor cores exceed it."
	copyNote = "The copy rate is for main memory; data in caches exceeds it."
)

// above reports whether a mark of ch lies clearly above a limit.
func (ch *Chart) above(limit func(Point) float64) bool {
	const clearly = 1.05
	return slices.ContainsFunc(ch.series(), func(s Series) bool {
		return slices.ContainsFunc(s.Points, func(p Point) bool { return p.drawable() && p.Y > clearly*limit(p) })
	})
}

func (v *view) scale() Scale {
	switch v.Scale {
	case "linear":
		return Linear
	case "log":
		return Log
	}
	return Auto
}

// xAxis returns the horizontal axis: logarithmic for sizes, as sweeps space them, with ticks at the
// measured values.
func (v *view) xAxis() Axis {
	if v.x.Progress {
		return Axis{Title: capital(v.x.Title), Scale: Linear, Format: progressTick}
	}
	a := Axis{Title: capital(v.x.Title), Format: quantity.Size, FormatValue: quantity.Size}
	for _, r := range v.recs {
		if n, ok := v.x.Number(r); ok {
			a.Places = append(a.Places, n)
		}
	}
	slices.Sort(a.Places)
	a.Places = slices.Compact(a.Places)
	if n := len(a.Places); n > 0 && (a.Places[0] <= 0 || a.Places[n-1] < 3*a.Places[0] && n > 1) {
		a.Scale = Linear
	} else {
		a.Scale = Log
	}
	return a
}

// progressTick formats a place in training. A title such as "Seconds" has the unit: 0.2, not 200m.
func progressTick(v float64) string {
	if math.Abs(v) < 1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return quantity.Tick(v)
}

// guides returns the lines that help to judge the values: the peak, or a speed-up of 1.
func (v *view) guides() []Guide {
	switch v.measure.Name {
	case "speedup":
		return []Guide{{Y0: 1, Y1: 1}}
	case "flops", "executed":
		if p := v.peak(); p > 0 {
			return []Guide{{Label: "peak " + quantity.SI(p, "FLOP/s"), Y0: p, Y1: p}}
		}
	}
	return nil
}

func (v *view) peak() float64 {
	if v.Peak == 0 {
		return quantity.Peak(v.recs)
	}
	return v.Peak
}

// panels divides the records into panels and series, and returns them with the figure's notes.
func (v *view) panels(scatter bool) ([]Panel, []string, error) {
	axes := []quantity.Axis{v.series, v.x}
	if v.panel.Name != "" {
		axes = append([]quantity.Axis{v.panel}, axes...)
	}
	extra := slices.DeleteFunc(quantity.Left(v.recs, axes...), func(a quantity.Axis) bool {
		return a.Name == v.X || a.Name == v.Panel || a.Name == v.Series
	})
	extra = quantity.Fewest(v.recs, extra, axes...)
	key := append(slices.Clone(axes[:len(axes)-1]), extra...)
	chosen, tuned := quantity.Choose(v.recs, append(slices.Clone(key), v.x)...)

	name := func(r *record.Record) string {
		words := []string{v.series.Text(r)}
		if v.Series != "impl" {
			words[0] = v.series.Tag(r)
		}
		for _, a := range extra {
			words = append(words, a.Tag(r))
		}
		return strings.Join(words, ", ")
	}
	var panels []Panel
	labels := map[string]bool{}
	drawn := 0
	var without []string
	var lost []*record.Record
	intervals := false
	for _, group := range quantity.Split(chosen, v.panel) {
		p := Panel{Title: v.panelTitle(group[0])}
		for _, r := range group {
			label := name(r)
			x, ok := v.x.Number(r)
			if !ok {
				without = append(without, label)
				continue
			}
			if n := len(p.Series); n == 0 || p.Series[n-1].Label != label {
				s := Series{Label: label, Scatter: scatter}
				if len(extra) > 0 {
					s.Like = v.series.Text(r)
				}
				p.Series = append(p.Series, s)
				labels[label] = true
			}
			pt := v.point(r, x)
			if intervals = intervals || pt.Lo < pt.Hi; pt.Missing {
				lost = append(lost, r)
			} else {
				drawn++
			}
			s := &p.Series[len(p.Series)-1]
			s.Points = append(s.Points, pt)
		}
		panels = append(panels, p)
	}
	var gone []string
	if drawn > 0 {
		gone = dropEmpty(panels, labels)
	}
	switch {
	case len(panels) > mostPanels:
		return nil, nil, fmt.Errorf("plots: %d panels are too many for a figure (at most %d): choose an axis other than %s, or select fewer records with --where", len(panels), mostPanels, v.Panel)
	case len(labels) > mostSeries:
		return nil, nil, fmt.Errorf("plots: %d lines are too many for a figure (at most %d), because the records also differ in %s: draw panels with --panel, or select fewer records with --where", len(labels), mostSeries, or(titles(extra), v.Series))
	case drawn == 0 && len(lost) == 0:
		return nil, nil, fmt.Errorf("plots: no record has a value of %s", v.X)
	}
	notes := v.notes(tuned, intervals, lost, without, append(axes, extra...))
	if len(gone) > 0 {
		notes = append(notes, "Not drawn, because they have no result: "+strings.Join(gone, "; ")+".")
	}
	return panels, notes, nil
}

// point returns the value of r at x, with its interval.
func (v *view) point(r *record.Record, x float64) Point {
	y, ok := v.value(r)
	if !ok {
		return Point{X: x, Missing: true, From: r}
	}
	pt := Point{X: x, Y: y.Value, Few: fewSamples(r), From: r}
	if y.Known() {
		if pt.Lo, pt.Hi = y.Lo, y.Hi; v.measure.Ticks != nil {
			pt.Ticks = v.measure.Ticks(r)
		}
	}
	return pt
}

// panelTitle returns the title of the panel to which r belongs.
func (v *view) panelTitle(r *record.Record) string {
	switch {
	case v.panel.Name == "":
		return ""
	case v.panel.Numeric:
		return capital(v.panel.Title) + " " + v.panel.Text(r)
	}
	return v.panel.Text(r)
}

// dropEmpty removes the series without a value in any panel, and returns their labels.
func dropEmpty(panels []Panel, all map[string]bool) (gone []string) {
	some := map[string]bool{}
	for _, p := range panels {
		for _, s := range p.Series {
			some[s.Label] = some[s.Label] || slices.ContainsFunc(s.Points, Point.drawable)
		}
	}
	for i := range panels {
		panels[i].Series = slices.DeleteFunc(panels[i].Series, func(s Series) bool { return !some[s.Label] })
	}
	for label := range all {
		if !some[label] {
			gone = append(gone, label)
			delete(all, label)
		}
	}
	slices.Sort(gone)
	return gone
}

func titles(axes []quantity.Axis) string {
	words := make([]string, len(axes))
	for i, a := range axes {
		words[i] = a.Title
	}
	return strings.Join(words, " and ")
}

// notes returns what a reader must know to judge the figure.
func (v *view) notes(tuned, intervals bool, lost []*record.Record, without []string, used []quantity.Axis) []string {
	var notes []string
	if intervals {
		notes = append(notes, or(v.measure.Bars, "Marks are medians; bars are their confidence intervals."))
	}
	notes = append(notes, v.follow(used...)...)
	if tuned {
		notes = append(notes, tunedNote)
	}
	// Records that ran but have no value lack a baseline or a peak.
	ran := slices.DeleteFunc(slices.Clone(lost), func(r *record.Record) bool { return r.Seconds() <= 0 })
	broke := slices.DeleteFunc(slices.Clone(lost), func(r *record.Record) bool { return r.Seconds() > 0 })
	if len(broke) > 0 {
		notes = append(notes, "No result: "+quantity.Reasons(broke)+".")
	}
	if len(ran) > 0 {
		why := "no data to compute it from"
		if v.measure.Ratio {
			why = fmt.Sprintf("no result of %s to compare with", quantity.OneLine(v.base.Label))
		}
		notes = append(notes, fmt.Sprintf("No %s at %s: %s.", v.measure.Title, quantity.Plural(len(ran), "place"), why))
	}
	notes = append(notes, fewNotes(v.recs)...)
	notes = append(notes, quantity.Doubts(v.recs)...)
	slices.Sort(without)
	if without = slices.Compact(without); len(without) > 0 {
		notes = append(notes, fmt.Sprintf("Not drawn, because they have no %s: %s.", v.x.Title, strings.Join(without, "; ")))
	}
	return notes
}
