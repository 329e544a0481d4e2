package yardstick

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// ragged compares layers whose sequences have lengths of their own with the same layers at full
// length: each technique's time over that of full batches.
func ragged(rep *study.Report, recs []record.Record, on study.Target) {
	full := func(p record.Point) record.Point {
		p.Lengths = ""
		return p
	}
	var of []record.Record // of layers with lengths, full ones included
	layers := pick.Points(slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Point.Lengths == "" }))
	for _, r := range recs {
		if slices.ContainsFunc(layers, func(p record.Point) bool { return full(p) == full(r.Point) }) {
			of = append(of, r)
		}
	}
	names := pick.Labels(of)
	t := &table.Table{Title: "Sequences with lengths of their own: time over that of full batches",
		Columns: []table.Column{{Name: "Layer", Key: "layer"}, {Name: "Mean length", Key: "mean_length_percent", Right: true}}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Name: n, Key: strings.NewReplacer(" ", "_", ",", "").Replace(n) + "_over_full", Right: true})
	}
	half := map[string][]float64{} // ratios at a mean of half of the steps, by technique
	for _, p := range layers {
		mean, ok := p.Lengths.Mean(p.Steps)
		if !ok {
			continue
		}
		row, found := []table.Cell{table.Text(p.String()), table.Number(mean, fmt.Sprintf("%.0f %%", mean))}, false
		for _, n := range names {
			over := pick.Find(recs, strings.TrimSuffix(n, form.PaddedMark), func(q record.Point) bool { return q == full(p) })
			r := pick.Find(recs, n, func(q record.Point) bool { return q == p })
			if r == nil || over == nil {
				row = append(row, show.Missing())
				continue
			}
			ratio := r.Seconds() / over.Seconds()
			if found = true; mean == 50 {
				half[n] = append(half[n], ratio)
			}
			row = append(row, show.Ratio(ratio))
		}
		if found {
			t.Rows = append(t.Rows, row)
		}
	}
	if len(t.Rows) == 0 {
		return
	}
	rep.Tables = append(rep.Tables, t)
	var parts []string
	for _, n := range names {
		if len(half[n]) > 0 {
			parts = append(parts, fmt.Sprintf("%s %.2f", n, estimate.Geomean(half[n])))
		}
	}
	if parts != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("Sequences of half the steps on average take these parts of the time of full batches: %s.", strings.Join(parts, ", ")))
	}
	fig, err := plots.Lines(of, plots.Spec{X: "lengths", Y: "time", Panel: "hidden", Machine: on.Name, Title: "Layers whose sequences have lengths of their own"})
	rep.Add("production-lengths", fig, err)
}
