package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

var appleyardTable1 = Experiment{
	ID: "appleyard-table1", Title: "The optimization ladder: LSTM forward pass, cumulative stages",
	Source: "Appleyard et al. 2016, Table 1",
	Unlike: medianOfRuns,
	Parts: func(s Size, on Target) []Part {
		p := lstm4()
		specs := on.withGPU(ladderSpecs(p.Layers), append(graphAndForms(p.Layers, yardsticks(s)), libraryLadder(p.Layers)...)...)
		if s == Quick {
			p.Steps = 20
			return []Part{{[]record.Point{p}, specs}}
		}
		long := p
		long.Steps = 1000 // the text of section 2.5 says 1000 steps, the caption 100
		return []Part{{[]record.Point{p, long}, specs}}
	},
	Report: func(recs []record.Record, on Target) (*Report, error) {
		rep := &Report{}
		for _, p := range points(recs) {
			reportLadder(rep, recs, p, on)
		}
		if len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of the ladder")
		}
		ladderClaims(rep, recs, points(recs)[0], on)
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

func reportLadder(rep *Report, recs []record.Record, p record.Point, on Target) {
	here := func(q record.Point) bool { return q == p }
	rungs := ladder(p.Layers)
	base := find(recs, rungs[0].label, here)
	t := ladderTable(p)
	cells := float64(p.Layers * p.Steps)
	if on.GPU {
		for _, s := range graphAndForms(p.Layers, yardsticks(Full)) {
			if slices.Contains(labels(at(recs, p)), s.Label) {
				rungs = append(rungs, rung{label: s.Label})
			}
		}
	}
	var stages []plots.Stage
	var noisy []string
	var before *record.Record
	for i, r := range rungs {
		rec := find(recs, r.label, here)
		if !quantity.Vendor(r.label) || r.label == bestForm(recs, p) {
			stages = append(stages, plots.Stage{Label: r.label, Paper: r.up})
		}
		step, printed, up := math.NaN(), math.NaN(), math.NaN()
		if r.paper > 0 {
			step, printed, up = 1, r.paper, r.up
		}
		if i > 0 && r.paper > 0 {
			step = rungs[i-1].paper / r.paper
		}
		row := []table.Cell{table.Text(r.label), number(printed, "%.0f")}
		if rec == nil {
			row = append(row, missing(), missing(), missing(), number(up, "%.1f"), missing(), number(step, "%.2f"), missing())
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
		row = append(row, number(rec.Seconds()/cells*1e6, "%.0f"), halfCell(rec),
			table.Number(rec.FLOPS(), quantity.SI(rec.FLOPS(), "FLOP/s")),
			number(up, "%.1f"), number(here, "%.2f"), number(step, "%.2f"), number(own, "%.2f"))
		t.Rows = append(t.Rows, row)
		if i > 0 && !math.IsNaN(own) && !math.IsNaN(step) {
			gain := timesAsFast(before, rec)
			switch near(step).holds(gain) {
			case open:
				noisy = append(noisy, r.label)
			case no:
				rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d, stage %s: speed-up %s here, %.2f× in the paper.%s", p.Steps, r.label, gain.times(), step, r.explain(own > step, on)))
			}
		}
		before = rec
	}
	if noisy != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: whether these stages gain as much as in the paper cannot be told, since their intervals reach a factor of 1.15 from its gains: %s. More rounds on an idle machine would tell.", p.Steps, strings.Join(noisy, ", ")))
	}
	addLibrary(t, recs, p, rungs)
	rep.Tables = append(rep.Tables, t)
	rep.ladderFindings(recs, p, on)
	fig, err := plots.Ladder(at(recs, p), stages, plots.Spec{Machine: on.Name,
		Title: fmt.Sprintf("Appleyard's ladder, %d steps: speed-up over naive", p.Steps)})
	rep.add(fmt.Sprintf("appleyard-table1-T%d", p.Steps), fig, err)
	libraryFigure(rep, recs, p, on)
}

// bestForm returns the label of the fastest form of NVIDIA's library at a point, or "".
func bestForm(recs []record.Record, p record.Point) string {
	if r := fastest(recs, vendorLabels(), func(q record.Point) bool { return q == p }); r != nil {
		return r.Impl.Label
	}
	return ""
}

// ladderFindings adds findings about the whole ladder at a point, and about what the paper could not
// measure.
func (rep *Report) ladderFindings(recs []record.Record, p record.Point, on Target) {
	here := func(q record.Point) bool { return q == p }
	rungs := ladder(p.Layers)
	top := rungs[len(rungs)-1]
	base, last := find(recs, rungs[0].label, here), find(recs, top.label, here)
	if base != nil && last != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: the whole ladder makes the LSTM %s as fast here, and %.1f× in the paper.", p.Steps, timesAsFast(base, last).times(), top.up))
	}
	if graph := find(recs, asGraph, here); graph != nil && last != nil {
		s := fmt.Sprintf("T=%d: replayed as a graph, the last stage is %s as fast as without a graph", p.Steps, timesAsFast(last, graph).times())
		if v := find(recs, "cudnn", here); v != nil {
			s += fmt.Sprintf(" and %s as fast as cuDNN's standard algorithm as a graph", timesAsFast(v, graph).times())
		}
		if v := fastest(recs, vendorLabels(), here); v != nil && v.Impl.Label != "cudnn" {
			s += fmt.Sprintf(". It is %s as fast as cuDNN's fastest form, %s", timesAsFast(v, graph).times(), v.Impl.Label)
		}
		rep.Findings = append(rep.Findings, s+". The paper's GPU could not replay graphs.")
	}
	if !on.GPU {
		return
	}
	if c, ok := climbOf(recs, p, 0, len(rungs)-1, on); ok && c.likes.known() {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: with every product by cuBLAS, as in the paper, the whole ladder gains %s.", p.Steps, c.likes.times()))
	} else if last != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: stage 4 runs one of rnnbench's kernels; it is not only a transposition. The ladder with every product by cuBLAS was not measured in this run.", p.Steps))
	}
}

// furthest names the stage after the given one whose step differs most from the paper's. It serves
// as the reason why the whole ladder differs. It is empty if no step is known.
func furthest(stage func(label string) *record.Record, rungs []rung, after int, on Target) (why string) {
	most := 0.0
	for i := after + 1; i < len(rungs); i++ {
		a, b := stage(rungs[i-1].label), stage(rungs[i].label)
		if a == nil || b == nil {
			continue
		}
		own, paper := a.Seconds()/b.Seconds(), rungs[i-1].paper/rungs[i].paper
		if d := math.Abs(math.Log(own / paper)); d > most {
			most, why = d, fmt.Sprintf("stage %s gains %.2f× here and %.2f× in the paper", rungs[i].label, own, paper)
			if text := rungs[i].reason(own > paper, on); text != "" {
				first, _, _ := strings.Cut(text, ". ")
				why += ", probably since " + first
			}
		}
	}
	return why
}

// reason is why a step gains more than the paper's (above), or less. It is empty if r only has a
// reason for the opposite.
func (r rung) reason(above bool, on Target) string {
	why := r.cpu
	if on.GPU {
		why = r.gpu
	}
	if why.more != above {
		return ""
	}
	return why.text
}

// explain returns the reason as a sentence.
func (r rung) explain(above bool, on Target) string {
	text := r.reason(above, on)
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" Probable cause on %s: %s.", on.say("a CPU", "this GPU"), text)
}
