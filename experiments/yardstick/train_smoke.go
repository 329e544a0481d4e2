package yardstick

import (
	"fmt"
	"slices"

	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/train/smoke"
	"rnnbench/tuner/grid"
)

// smokePrecisions returns the precisions that a target can train in.
func smokePrecisions(on study.Target) []string {
	if on.GPU {
		return []string{"fp32", "tf32", "bf16", "fp16"}
	}
	return []string{"fp32", "bf16", "fp16"}
}

// TrainSmoke is the experiment train-smoke.
var TrainSmoke = study.Experiment{
	ID: "train-smoke", Title: "Every technique learns as double precision does: loss curves of the same small network",
	Source: "rnnbench's own check of training",
	Trainings: func(s study.Size, on study.Target) []study.Training {
		var all []study.Training
		for _, name := range []string{"naive", "cudnnstyle", "persistent", "scan", "scc"} {
			for _, c := range smokeCells(name) {
				all = append(all, study.Training{Part: study.Part{Points: smokePoints(c, s, on), Specs: []grid.Spec{study.Spec(name, name, nil)}}, Plan: record.TrainingPlan{
					Data: smoke.Data, Optimizer: smoke.OptimizerOf(c), Iterations: smoke.Iterations, Every: smoke.Iterations, Reference: true,
				}})
			}
		}
		return all
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		var all []record.Record
		for _, r := range recs {
			if r.Status != record.Skipped && r.Training != nil {
				all = append(all, r)
			}
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("experiments: no records of trainings that are held to double precision")
		}
		rep := &study.Report{}
		smokeTable(rep, all)
		smokeFigure(rep, all, on)
		smokeFindings(rep, all)
		return rep, nil
	},
}

// smokeCells returns the cells that are built in and that a technique takes.
func smokeCells(technique string) []*cell.Cell {
	return slices.DeleteFunc(cell.BuiltIn(), func(c *cell.Cell) bool {
		switch technique {
		case "persistent":
			return c.Recurrent == 0
		case "scan":
			return c != cell.LSLSTM && (c.Recurrent > 0 || c == cell.LSTMC)
		case "scc":
			return c.Window != 1 || c == cell.RGLRU || c == cell.SLSTM
		}
		return false
	})
}

// smokePoints returns the networks of a cell: one of each precision.
func smokePoints(c *cell.Cell, s study.Size, on study.Target) []record.Point {
	hidden := 11
	if s == study.Quick {
		hidden = 7
	}
	var points []record.Point
	for _, precision := range smokePrecisions(on) {
		points = append(points, record.Point{
			Cell: c.Name, Pass: "train", Input: 3, Hidden: hidden, Layers: 2, Batch: 8, Steps: 7, Output: 3, Precision: precision,
		})
	}
	return points
}

// farthest returns a training's largest distance from double precision, in units of what is allowed.
// ok says that it was trained and compared.
func farthest(r *record.Record) (far float64, ok bool) {
	apart := r.Training.Apart()
	if r.Status != record.OK || len(apart) == 0 {
		return 0, false
	}
	return slices.Max(apart), true
}

// labelsOf returns the techniques of records, in their order.
func labelsOf(recs []record.Record) []string {
	var list []string
	for _, r := range recs {
		if !slices.Contains(list, r.Impl.Label) {
			list = append(list, r.Impl.Label)
		}
	}
	return list
}

// smokeTable has a row for each cell and precision, and a column for each technique.
func smokeTable(r *study.Report, recs []record.Record) {
	t := &table.Table{
		Title:   "Largest distance of the loss from double precision over all iterations, as a share of what is allowed",
		Columns: []table.Column{{Name: "Cell", Key: "cell"}, {Name: "Precision", Key: "precision"}},
		Notes: []string{fmt.Sprintf("Allowed: four times the spread of eight double-precision trainings whose first weights differ by one unit in the last place; %d iterations. "+
			"Above 1 the training is wrong. A dash: the technique declines the network.", smoke.Iterations)},
	}
	labels := labelsOf(recs)
	for _, l := range labels {
		t.Columns = append(t.Columns, table.Column{Name: l, Key: l, Right: true})
	}
	for _, p := range pick.Points(recs) {
		row := []table.Cell{table.Text(p.Cell), table.Text(p.Precision)}
		for _, l := range labels {
			row = append(row, smokeCell(pick.Find(recs, l, func(q record.Point) bool { return q == p })))
		}
		t.Rows = append(t.Rows, row)
	}
	r.Tables = append(r.Tables, t)
}

func smokeCell(r *record.Record) table.Cell {
	if r == nil {
		return table.Cell{Text: "-"}
	}
	far, ok := farthest(r)
	if !ok {
		return table.Cell{Text: "failed"}
	}
	return table.Cell{Text: fmt.Sprintf("%.2f", far), Value: far}
}

// smokeFigure has a panel for each precision: the largest distance of any cell up to each iteration.
func smokeFigure(r *study.Report, recs []record.Record, on study.Target) {
	fig := &plots.Chart{
		Title: "Training by each technique, against double precision", Subtitle: on.Name + " · the furthest of all cells so far",
		X:     plots.Axis{Title: "Iteration", Scale: plots.Linear},
		Y:     plots.Axis{Title: "Distance, as a share of what is allowed", Scale: plots.Log, Format: func(v float64) string { return fmt.Sprintf("%g", v) }},
		Notes: []string{"Allowed: four times the spread of eight double-precision trainings whose first weights differ by one unit in the last place."},
	}
	for _, precision := range smokePrecisions(on) {
		some := pick.Where(recs, func(p record.Point) bool { return p.Precision == precision })
		panel := plots.Panel{Title: precision, Guides: []plots.Guide{{Label: "allowed", X0: 1, X1: 1, Y0: 1, Y1: 1}}}
		for _, l := range labelsOf(some) {
			var far []float64
			for i := range some {
				if some[i].Impl.Label != l || some[i].Status != record.OK {
					continue
				}
				for k, v := range some[i].Training.Apart() {
					if k == len(far) {
						far = append(far, 0)
					}
					far[k] = max(far[k], v)
				}
			}
			line := plots.Series{Label: l}
			most := 1e-3 // a logarithmic axis has no 0
			for k, v := range far {
				most = max(most, v)
				line.Points = append(line.Points, plots.Point{X: float64(k + 1), Y: most})
			}
			if len(far) > 0 {
				panel.Series = append(panel.Series, line)
			}
		}
		if len(panel.Series) > 0 {
			fig.Panels = append(fig.Panels, panel)
		}
	}
	if len(fig.Panels) == 0 {
		r.Add("train-smoke", nil, fmt.Errorf("no training was compared"))
		return
	}
	r.Add("train-smoke", fig, nil)
}

// smokeFindings adds how many trainings are right, and which are not.
func smokeFindings(r *study.Report, recs []record.Record) {
	right, most := 0, -1.0
	var worst *record.Record
	var wrong []string
	for i := range recs {
		one := &recs[i]
		name := fmt.Sprintf("%s, %s in %s", one.Impl.Label, one.Point.Cell, one.Point.Precision)
		far, ok := farthest(one)
		switch {
		case !ok:
			wrong = append(wrong, name+" (failed)")
			continue
		case far <= 1:
			right++
		default: // NaN is not right either
			wrong = append(wrong, fmt.Sprintf("%s (%.3g times what is allowed)", name, far))
		}
		if !(far <= most) {
			most, worst = far, one
		}
	}
	here := fmt.Sprintf("%d of %d trainings learn as double precision does, within what rounding explains", right, len(recs))
	r.Findings = append(r.Findings, here+".")
	if worst != nil {
		r.Findings = append(r.Findings, fmt.Sprintf("The furthest is %s with %s in %s: %.2f of what is allowed.", worst.Impl.Label, worst.Point.Cell, worst.Point.Precision, most))
	}
	for _, w := range wrong {
		r.Findings = append(r.Findings, "Wrong: "+w+".")
	}
	r.Yardstick(here)
}
