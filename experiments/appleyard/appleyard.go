// Package appleyard reproduces Appleyard, Kociský and Blunsom (2016), "Optimizing Performance of
// Recurrent Neural Networks on GPUs".
package appleyard

import (
	"fmt"
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
	"rnnbench/plots/table"
	"rnnbench/record"
)

// Table1 is the experiment appleyard-table1.
var Table1 = study.Experiment{
	ID: "appleyard-table1", Title: "The optimization ladder: LSTM forward pass, cumulative stages",
	Source: "Appleyard et al. 2016, Table 1",
	Unlike: medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		p := form.LSTM4()
		specs := on.WithGPU(form.LadderSpecs(p.Layers), append(form.GraphAndForms(p.Layers, form.Yardsticks(s)), libraryLadder(p.Layers)...)...)
		if s == study.Quick {
			p.Steps = 20
			return []study.Part{{Points: []record.Point{p}, Specs: specs}}
		}
		long := p
		long.Steps = 1000 // the text of section 2.5 says 1000 steps, the caption 100
		return []study.Part{{Points: []record.Point{p, long}, Specs: specs}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		for _, p := range pick.Points(recs) {
			reportLadder(rep, recs, p, on)
		}
		if len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of the ladder")
		}
		ladderClaims(rep, recs, pick.Points(recs)[0], on)
		return rep, nil
	},
}

// ladderTable is the table of the ladder at p, without rows.
func ladderTable(p record.Point) *table.Table {
	return &table.Table{
		Title: fmt.Sprintf("Appleyard Table 1: %v", p),
		Columns: []table.Column{
			{Name: "Stage", Key: "stage"},
			{Name: "Paper, µs/cell", Key: "paper_us_per_cell", Right: true},
			{Name: "Here, µs/cell", Key: "us_per_cell", Right: true},
			{Name: "±", Key: "ci_percent", Right: true},
			{Name: "FLOP/s", Key: "flops_per_s", Right: true},
			{Name: "Paper, ×", Key: "paper_speedup", Right: true},
			{Name: "Here, ×", Key: "speedup", Right: true},
			{Name: "Step, paper", Key: "paper_step", Right: true},
			{Name: "Step, here", Key: "step", Right: true},
		},
	}
}

func reportLadder(rep *study.Report, recs []record.Record, p record.Point, on study.Target) {
	here := func(q record.Point) bool { return q == p }
	rungs := form.Ladder(p.Layers)
	base := pick.Find(recs, rungs[0].Label, here)
	t := ladderTable(p)
	cells := float64(p.Layers * p.Steps)
	if on.GPU {
		for _, s := range form.GraphAndForms(p.Layers, form.Yardsticks(study.Full)) {
			if slices.Contains(pick.Labels(pick.At(recs, p)), s.Label) {
				rungs = append(rungs, form.Rung{Label: s.Label})
			}
		}
	}
	var stages []plots.Stage
	var noisy []string
	var before *record.Record
	for i, r := range rungs {
		rec := pick.Find(recs, r.Label, here)
		if !quantity.Vendor(r.Label) || r.Label == bestForm(recs, p) {
			stages = append(stages, plots.Stage{Label: r.Label, Paper: r.Up})
		}
		step, printed, up := math.NaN(), math.NaN(), math.NaN()
		if r.Paper > 0 {
			step, printed, up = 1, r.Paper, r.Up
		}
		if i > 0 && r.Paper > 0 {
			step = rungs[i-1].Paper / r.Paper
		}
		row := []table.Cell{table.Text(r.Label), show.Number(printed, "%.0f")}
		if rec == nil {
			row = append(row, show.Missing(), show.Missing(), show.Missing(), show.Number(up, "%.1f"), show.Missing(), show.Ratio(step), show.Missing())
			t.Rows = append(t.Rows, row)
			before = nil // the next stage would count this one's step as its own
			continue
		}
		here, own := math.NaN(), math.NaN() // over the first stage, over the one before
		if base != nil {
			here = base.Seconds() / rec.Seconds()
		}
		switch {
		case i == 0:
			own = 1
		case before != nil:
			own = before.Seconds() / rec.Seconds()
		}
		row = append(row, show.Digits(rec.Seconds()/cells*1e6, 3), show.HalfCell(rec),
			table.Throughput(rec),
			show.Number(up, "%.1f"), show.Ratio(here), show.Ratio(step), show.Ratio(own))
		t.Rows = append(t.Rows, row)
		if i > 0 && !math.IsNaN(own) && !math.IsNaN(step) {
			gain := estimate.TimesAsFast(before, rec)
			switch estimate.Near(step).Holds(gain) {
			case estimate.Open:
				noisy = append(noisy, r.Label)
			case estimate.No:
				rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d, stage %s: speed-up %s here, %.2f× in the paper.", p.Steps, r.Label, gain.Times(), step))
			}
		}
		before = rec
	}
	if noisy != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: whether these stages gain as much as in the paper cannot be told, since their intervals are unknown or cover a gain that is %g times as large or as small as the paper's: %s.", p.Steps, estimate.Closeness, strings.Join(noisy, ", ")))
	}
	addLibrary(t, recs, p, rungs)
	rep.Tables = append(rep.Tables, t)
	ladderFindings(rep, recs, p, on)
	fig, err := plots.Ladder(pick.At(recs, p), stages, plots.Spec{Machine: on.Name,
		Title: fmt.Sprintf("Appleyard's ladder, %d steps: speed-up over naive", p.Steps)})
	rep.Add(fmt.Sprintf("appleyard-table1-T%d", p.Steps), fig, err)
	libraryFigure(rep, recs, p, on)
}

// bestForm returns the label of the fastest form of NVIDIA's library at a point, or "".
func bestForm(recs []record.Record, p record.Point) string {
	if r := pick.Fastest(recs, form.VendorLabels(), func(q record.Point) bool { return q == p }); r != nil {
		return r.Impl.Label
	}
	return ""
}

// ladderFindings adds findings about the whole ladder at a point, and about what the paper could not
// measure.
func ladderFindings(rep *study.Report, recs []record.Record, p record.Point, on study.Target) {
	here := func(q record.Point) bool { return q == p }
	rungs := form.Ladder(p.Layers)
	top := rungs[len(rungs)-1]
	base, last := pick.Find(recs, rungs[0].Label, here), pick.Find(recs, top.Label, here)
	if base != nil && last != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: the whole ladder makes the LSTM %s as fast here, and %.1f× in the paper.", p.Steps, estimate.TimesAsFast(base, last).Times(), top.Up))
	}
	if graph := pick.Find(recs, form.AsGraph, here); graph != nil && last != nil {
		s := fmt.Sprintf("T=%d: replayed as a graph, the last stage is %s as fast as without a graph", p.Steps, estimate.TimesAsFast(last, graph).Times())
		if v := pick.Find(recs, "cudnn", here); v != nil {
			s += fmt.Sprintf(" and %s as fast as cuDNN's standard algorithm as a graph", estimate.TimesAsFast(v, graph).Times())
		}
		if v := pick.Fastest(recs, form.VendorLabels(), here); v != nil && v.Impl.Label != "cudnn" {
			s += fmt.Sprintf(". It is %s as fast as cuDNN's fastest form, %s", estimate.TimesAsFast(v, graph).Times(), v.Impl.Label)
		}
		rep.Findings = append(rep.Findings, s+". The paper's GPU could not replay graphs.")
	}
	if !on.GPU {
		return
	}
	if c, ok := climbOf(recs, p, 0, len(rungs)-1); ok && c.likes.Known() {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: with every product by cuBLAS, as in the paper, the whole ladder gains %s.", p.Steps, c.likes.Times()))
	} else if last != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: stage 4 runs one of rnnbench's kernels; it is not only a transposition. The ladder with every product by cuBLAS was not measured in this run.", p.Steps))
	}
}

// furthest names the stage after the given one whose step differs most from the paper's. It serves
// as the reason why the whole ladder differs. It is empty if no step is known.
func furthest(stage func(label string) *record.Record, rungs []form.Rung, after int) (why string) {
	most := 0.0
	for i := after + 1; i < len(rungs); i++ {
		a, b := stage(rungs[i-1].Label), stage(rungs[i].Label)
		if a == nil || b == nil {
			continue
		}
		own, paper := a.Seconds()/b.Seconds(), rungs[i-1].Paper/rungs[i].Paper
		if d := math.Abs(math.Log(own / paper)); d > most {
			most, why = d, fmt.Sprintf("stage %s gains %.2f× here and %.2f× in the paper", rungs[i].Label, own, paper)
		}
	}
	return why
}

// medianOfRuns says how times here are averaged.
const medianOfRuns = "medians of runs, where the paper does not say how it averages"
