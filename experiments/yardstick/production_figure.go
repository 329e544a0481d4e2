package yardstick

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// productionFigures draws a row for each layer: how many times as fast its fastest technique is as
// cuDNN's fastest form. Layers that cuDNN does not run are drawn over the naive technique.
func productionFigures(rep *study.Report, recs []record.Record, on study.Target) {
	own := slices.DeleteFunc(pick.Labels(recs), quantity.Vendor)
	theirs := form.VendorsOf(recs)
	var with, without []record.Point
	for _, p := range pick.Points(recs) {
		if pick.Fastest(recs, theirs, func(q record.Point) bool { return q == p }) != nil {
			with = append(with, p)
		} else {
			without = append(without, p)
		}
	}
	draw := func(name, rival string, some []record.Point, base []string) {
		if fig := layerRows(recs, some, own, base, on, "Layers that people run: the fastest technique over "+rival, rival); fig != nil {
			rep.Add(name, fig, nil)
		}
	}
	draw("production", "cuDNN's fastest form", with, theirs)
	name := "production"
	if on.GPU {
		name = "production-naive"
	}
	draw(name, "naive", without, []string{"naive"})
}

// layerRows draws the fastest of own over the fastest of base, the slowest lead last. It is nil if no
// layer has both.
func layerRows(recs []record.Record, layers []record.Point, own, base []string, on study.Target, title, rival string) plots.Figure {
	fig := &plots.Bars{Title: title, Subtitle: on.Name,
		Notes:  []string{"Ratios of medians, with the interval of rounds in turns; above 1, rnnbench is faster. A bar's colour is its technique."},
		X:      plots.Axis{Title: "Times as fast as " + rival, Format: show.Times},
		Guides: []plots.Guide{{X0: 1, X1: 1}},
		Value:  quantity.Factor}
	for _, p := range layers {
		here := func(q record.Point) bool { return q == p }
		best, over := pick.Fastest(recs, own, here), pick.Fastest(recs, base, here)
		e := estimate.TimesAsFast(over, best)
		if !e.Known() || best == over {
			continue
		}
		bar := plots.Bar{Series: best.Impl.Label, Value: e.At}
		if e.Lo > 0 && !math.IsInf(e.Hi, 1) {
			bar.Lo, bar.Hi = e.Lo, e.Hi
		}
		fig.Groups = append(fig.Groups, plots.Group{Label: strings.NewReplacer(" forward ", " ", " train ", " ").Replace(p.String()), Bars: []plots.Bar{bar}})
	}
	if fig.Groups == nil {
		return nil
	}
	slices.SortStableFunc(fig.Groups, func(a, b plots.Group) int { return cmp.Compare(b.Bars[0].Value, a.Bars[0].Value) })
	return fig
}
