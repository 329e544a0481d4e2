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
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

// Production is the experiment production.
var Production = study.Experiment{
	ID: "production", Title: "Layers that people run, with every technique that runs them",
	Source: "rnnbench's preset production: the configurations of basecallers, speech, audio, agents and language models",
	Parts: func(s study.Size, on study.Target) []study.Part {
		preset := "production"
		if s == study.Quick {
			preset = "production-quick"
		}
		all := presetPoints(preset)
		var parts []study.Part
		for _, p := range all {
			forms := append(usual(on), study.Spec("scan", "scan", nil))
			if p.Lengths != "" && on.GPU {
				forms = append(forms, form.Padded()...)
			}
			specs := slices.DeleteFunc(forms, func(s grid.Spec) bool { return !runs(s.Name, p, on) })
			same := func(q study.Part) bool {
				return slices.EqualFunc(q.Specs, specs, func(a, b grid.Spec) bool { return a.Label == b.Label })
			}
			if i := slices.IndexFunc(parts, same); i >= 0 {
				parts[i].Points = append(parts[i].Points, p)
			} else {
				parts = append(parts, study.Part{Points: []record.Point{p}, Specs: specs})
			}
		}
		var fitting []study.Part
		for _, part := range parts {
			fitting = append(fitting, form.OnChip(part.Points, part.Specs)...)
		}
		return fitting
	},
	Report: reportProduction,
}

// presetPoints returns the points of a preset of this package's experiments, which tests hold valid.
func presetPoints(name string) []record.Point {
	g, err := grid.New(grid.Request{Presets: []string{name}, Impl: []string{"naive"}}, grid.Vocabulary{Impls: []string{"naive"}, Words: map[string][]string{"cell": cellNames()}})
	if err != nil {
		return nil
	}
	all, err := g.Points()
	if err != nil {
		return nil
	}
	return all
}

// runs reports whether a technique runs a layer: linear recurrences have no weights to keep on chip, and the
// vendor's library has neither their cells, nor heads, nor resets, nor here projections.
func runs(technique string, p record.Point, on study.Target) bool {
	linear := cell.Lookup(p.Cell).Recurrent == 0
	switch technique {
	case "naive":
		return on.GPU || p.Precision == "fp32"
	case "persistent":
		return !linear
	case "scan":
		return linear
	case "cudnn":
		return (p.Cell == "lstm" || p.Cell == "gru") && p.Heads == 0 && p.Projection == 0 && p.Resets == 0
	}
	return true
}

// cellNames lists the cells that are built in.
func cellNames() (names []string) {
	for _, c := range cell.BuiltIn() {
		names = append(names, c.Name)
	}
	return names
}

// reportProduction has a row for each layer: the time of a run or, where calls were timed, of a call.
func reportProduction(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	names := pick.Labels(recs)
	t := &table.Table{Title: "Time of a run; of layers with calls, the median call", Columns: []table.Column{{Name: "Layer", Key: "layer"}, {Name: "Precision", Key: "precision"}}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Name: n, Key: strings.NewReplacer(" ", "_", ",", "").Replace(n) + "_s", Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Name: "fastest", Key: "fastest"}, table.Column{Name: "p99", Key: "p99_s", Right: true})
	var won estimate.Score
	alone := 0
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		best, clear := estimate.Leader(recs, names, here)
		if best == nil {
			continue
		}
		row, measured := []table.Cell{table.Text(strings.TrimSuffix(p.String(), " "+p.Precision)), table.Text(p.Precision)}, 0
		for _, n := range names {
			r := pick.Find(recs, n, here)
			if row = append(row, seconds(r)); r != nil {
				measured++
			}
		}
		winner := table.Text(best.Impl.Label)
		if measured == 1 { // nothing to be faster than
			winner = show.Missing()
			alone++
		} else {
			won.Add(best, clear)
		}
		p99 := show.Missing()
		if best.Latency != nil {
			p99 = table.Number(best.Latency.P99, quantity.SI(best.Latency.P99, "s"))
		}
		t.Rows = append(t.Rows, append(row, winner, p99))
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("experiments: no records of production's layers")
	}
	rep.Tables = append(rep.Tables, t)
	if won.Total > 0 {
		finding := fmt.Sprintf("clearly the fastest technique is %s, of %d layers", won.Text(names), won.Total)
		rep.Findings = append(rep.Findings, "Inference: "+finding+".")
		rep.Yardstick(finding)
	}
	if alone > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("At %s one technique alone was measured, so none is called the fastest there.", quantity.Plural(alone, "layer")))
	}
	if on.GPU {
		without := "heads and projections"
		if slices.ContainsFunc(recs, func(r record.Record) bool { return r.Point.Resets > 0 }) {
			without = "heads, projections and resets"
		}
		rep.Findings = append(rep.Findings, "cuDNN runs here only its own cells, in layers without "+without+".")
		rep.Findings = append(rep.Findings, form.AlgorithmsAlike(recs)...)
	}
	if on.GPU {
		addSpeedups(rep, recs)
	}
	productionFigures(rep, recs, on)
	ragged(rep, recs, on)
	return rep, nil
}

// addSpeedups adds the speed-up of our fastest form over cuDNN's fastest, in fp32 and in 16 bits.
func addSpeedups(rep *study.Report, recs []record.Record) {
	theirs := form.VendorsOf(recs)
	own := slices.DeleteFunc(pick.Labels(recs), quantity.Vendor)
	for _, wide := range []bool{true, false} {
		var d estimate.Duel
		for _, p := range pick.Points(recs) {
			if here := func(q record.Point) bool { return q == p }; wide == (p.Precision == "fp32") {
				d.Add(pick.Fastest(recs, theirs, here), pick.Fastest(recs, own, here))
			}
		}
		if len(d) == 0 {
			continue
		}
		precision := map[bool]string{true: "fp32", false: "16 bits"}[wide]
		rep.Findings = append(rep.Findings, fmt.Sprintf("In %s, rnnbench's fastest technique is %s.", precision, d.Full("cuDNN's fastest form", "layer")))
	}
}

// seconds is the time of a record as a cell.
func seconds(r *record.Record) table.Cell {
	if r == nil {
		return show.Missing()
	}
	return table.Time(r)
}
