package yardstick

import (
	"slices"

	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// overNaive draws each technique's speed-up over naive, a mark for each layer and a panel for each
// cell. Layers that differ in all of their sizes make no lines.
func overNaive(recs []record.Record, on study.Target, title string) plots.Figure {
	ch := &plots.Chart{Title: title, Subtitle: on.Name, Notes: []string{"Ratios of medians, one mark per layer. Layers also differ in minibatch, time steps and pass."},
		X: plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Speed-up over naive", Scale: plots.Log, Format: show.Times}}
	names := slices.DeleteFunc(pick.Labels(recs), func(n string) bool { return n == "naive" })
	layerMarks(ch, recs, names, func(p record.Point, r *record.Record) float64 {
		naive := pick.Find(recs, "naive", func(q record.Point) bool { return q == p })
		if naive == nil {
			return 0
		}
		return naive.Seconds() / r.Seconds()
	})
	return ch
}

// overVendor draws our fastest form's speed-up over the vendor's fastest, a mark for each layer. It
// is nil if no layer was measured with both.
func overVendor(recs []record.Record, on study.Target, title string) plots.Figure {
	own := slices.DeleteFunc(pick.Labels(recs), quantity.Vendor)
	theirs := form.VendorsOf(recs)
	var best []record.Record
	for _, p := range pick.Points(recs) {
		if r := pick.Fastest(recs, own, func(q record.Point) bool { return q == p }); r != nil {
			one := *r
			one.Impl.Label = p.Pass
			best = append(best, one)
		}
	}
	ch := &plots.Chart{Title: title, Subtitle: on.Name, Notes: []string{"Ratios of medians, the fastest of each; above 1, rnnbench is faster. One mark per layer; layers also differ in minibatch and time steps."},
		X: plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Speed-up over cuDNN", Scale: plots.Log, Format: show.Times}}
	layerMarks(ch, best, pick.Labels(best), func(p record.Point, own *record.Record) float64 {
		r := pick.Fastest(recs, theirs, func(q record.Point) bool { return q == p })
		if r == nil {
			return 0
		}
		return r.Seconds() / own.Seconds()
	})
	if len(ch.Panels) == 0 {
		return nil
	}
	return ch
}

// layerMarks draws a ratio of each technique at each layer, in a panel for each cell. A ratio of 0 is left out.
func layerMarks(ch *plots.Chart, recs []record.Record, names []string, ratio func(record.Point, *record.Record) float64) {
	for _, p := range pick.Points(recs) {
		x := float64(p.Hidden)
		for k, name := range names {
			r := pick.Find(recs, name, func(q record.Point) bool { return q == p })
			if r == nil {
				continue
			}
			y := ratio(p, r)
			if y == 0 {
				continue
			}
			panel := markPanel(ch, p.Cell, names)
			panel.Series[k].Points = append(panel.Series[k].Points, plots.Point{X: x, Y: y})
			if !slices.Contains(ch.X.Places, x) {
				ch.X.Places = append(ch.X.Places, x)
			}
		}
	}
	slices.Sort(ch.X.Places)
}

// markPanel returns the panel of a cell, with a series for each name. It adds one where there is none.
func markPanel(ch *plots.Chart, cell string, names []string) *plots.Panel {
	i := slices.IndexFunc(ch.Panels, func(q plots.Panel) bool { return q.Title == cell })
	if i < 0 {
		i = len(ch.Panels)
		panel := plots.Panel{Title: cell, Guides: []plots.Guide{{Y0: 1, Y1: 1}}}
		for _, n := range names {
			panel.Series = append(panel.Series, plots.Series{Label: n, Scatter: true})
		}
		ch.Panels = append(ch.Panels, panel)
	}
	return &ch.Panels[i]
}
