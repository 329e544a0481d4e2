package diamos

import (
	"fmt"

	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A drawing is a chart of throughputs under way, with the records that gave none.
type drawing struct {
	*plots.Chart
	failed []*record.Record
}

// newDrawing begins a chart over x.
func newDrawing(title string, x plots.Axis, on study.Target) *drawing {
	d := &drawing{Chart: &plots.Chart{Title: title, Subtitle: on.Name, X: x, Y: plots.Axis{Title: "Throughput (FLOP/s)", Zero: true},
		Notes: []string{"Marks are medians; bars are their confidence intervals."}}}
	if on.Reduced {
		d.Notes[0] += fmt.Sprintf(" Quick runs have 1/%d of the units.", quickShare)
	}
	return d
}

// panel adds a panel of the points of recs, in their order, at x. It reports whether there were any.
func (d *drawing) panel(title string, recs []record.Record, x func(record.Point) int) bool {
	panel := plots.Panel{Title: title}
	for _, label := range pick.Labels(recs) {
		line := plots.Series{Label: label}
		for _, p := range pick.Points(recs) {
			at, here := float64(x(p)), func(q record.Point) bool { return q == p }
			if r := pick.Find(recs, label, here); r != nil {
				line.Points = append(line.Points, show.RatePoint(at, r))
			} else if bad := pick.Broken(recs, label, here); bad != nil {
				d.failed = append(d.failed, bad)
				line.Points = append(line.Points, plots.Point{X: at, Missing: true})
			} else {
				continue
			}
			d.X.Places = append(d.X.Places, at)
		}
		if line.Points != nil {
			panel.Series = append(panel.Series, line)
		}
	}
	if panel.Series == nil {
		return false
	}
	d.Panels = append(d.Panels, panel)
	return true
}

// add adds the chart to rep, if it has a panel.
func (d *drawing) add(rep *study.Report, name string) {
	if d.failed != nil {
		d.Notes = append(d.Notes, "No result: "+quantity.Reasons(d.failed)+".")
	}
	if d.Panels != nil {
		rep.Add(name, d.Chart, nil)
	}
}

// drawDepths draws training over the depths of Tables 2 and 3.
func drawDepths(rep *study.Report, k kind, recs []record.Record, on study.Target) {
	d := newDrawing("Diamos Tables 2 and 3: training throughput of deep "+k.thing+"s", plots.Axis{Title: "Recurrent layers", Scale: plots.Linear, Format: quantity.Size}, on)
	for _, n := range []int{2, 3} {
		of := pick.Where(recs, func(p record.Point) bool {
			row, ok := rowOf(p)
			return ok && row.table == n && p.Pass == "train"
		})
		if len(of) > 0 {
			p := of[0].Point
			d.Subtitle = fmt.Sprintf("%s · %s · B=%d · T=%d", on.Name, p.Pass, p.Batch, p.Steps)
		}
		title := map[int]string{2: "Table 2: constant parameters, narrower layers", 3: "Table 3: constant units, more parameters"}[n]
		if !d.panel(title, of, func(p record.Point) int { return p.Layers }) {
			d.Notes = append(d.Notes, fmt.Sprintf("No %s of Table %d was measured.", k.thing, n))
		}
	}
	if len(pick.Points(recs)) > 1 {
		d.add(rep, "diamos-speech")
	}
}

// drawBatches draws both passes of a network over the minibatch.
func drawBatches(rep *study.Report, recs []record.Record, on study.Target) {
	recs = pick.Where(recs, func(p record.Point) bool {
		n, ok := rowOf(p)
		return ok && n.swept()
	})
	d := newDrawing("Diamos Table 3: throughput of the shallowest network over the minibatch", plots.Axis{Title: "Minibatch", Scale: plots.Log, Format: quantity.Size}, on)
	for _, pass := range []struct{ name, title string }{{"train", "training"}, {"forward", "forward"}} {
		of := pick.Where(recs, func(p record.Point) bool { return p.Pass == pass.name })
		if len(of) > 0 {
			d.Subtitle = fmt.Sprintf("%s · %s of %d units · T=%d", on.Name, layersWord(of[0].Point.Layers), of[0].Point.Hidden, of[0].Point.Steps)
		}
		d.panel(pass.title, of, func(p record.Point) int { return p.Batch })
	}
	if len(pick.Points(recs)) > 1 {
		d.add(rep, "diamos-speech-minibatch")
	}
}
