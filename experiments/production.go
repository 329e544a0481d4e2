package experiments

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
)

var production = Experiment{
	ID: "production", Title: "Layers that people run, with every technique that runs them",
	Source: "rnnbench's preset production: the configurations of basecallers, speech, audio, agents and language models",
	Parts: func(s Size, on Target) []Part {
		preset := "production"
		if s == Quick {
			preset = "production-quick"
		}
		g, err := grid.New(grid.Request{Presets: []string{preset}, Impl: []string{"naive"}}, grid.Vocabulary{Impls: []string{"naive"}, Words: map[string][]string{"cell": cellNames()}})
		if err != nil {
			return nil // the preset is the package's own, and tested there
		}
		all, err := g.Points()
		if err != nil {
			return nil
		}
		var parts []Part
		for _, p := range all {
			forms := append(usual(on), spec("scan", "scan", nil))
			if p.Lengths != "" && on.GPU {
				forms = append(forms, padded()...)
			}
			specs := slices.DeleteFunc(forms, func(s grid.Spec) bool { return !runs(s.Name, p, on) })
			same := func(q Part) bool {
				return slices.EqualFunc(q.Specs, specs, func(a, b grid.Spec) bool { return a.Label == b.Label })
			}
			if i := slices.IndexFunc(parts, same); i >= 0 {
				parts[i].Points = append(parts[i].Points, p)
			} else {
				parts = append(parts, Part{Points: []record.Point{p}, Specs: specs})
			}
		}
		var fitting []Part
		for _, part := range parts {
			fitting = append(fitting, onChip(part.Points, part.Specs)...)
		}
		return fitting
	},
	Report: reportProduction,
}

// runs reports whether a technique runs a layer: linear recurrences have no weights to keep on chip, and the
// vendor's library has neither their cells, nor heads, nor resets, nor here projections.
func runs(technique string, p record.Point, on Target) bool {
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

// cellNames lists all cells.
func cellNames() (names []string) {
	for _, c := range cell.All() {
		names = append(names, c.Name)
	}
	return names
}

// reportProduction has a row for each layer: the time of a run or, where calls were timed, of a call.
func reportProduction(recs []record.Record, on Target) (*Report, error) {
	rep := &Report{}
	names := labels(recs)
	t := &table.Table{Title: "Time of a run; of layers with calls, the median call", Columns: []table.Column{{Name: "Layer", Key: "layer"}, {Name: "Precision", Key: "precision"}}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Name: n, Key: strings.NewReplacer(" ", "_", ",", "").Replace(n) + "_s", Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Name: "fastest", Key: "fastest"}, table.Column{Name: "p99", Key: "p99_s", Right: true})
	var won score
	alone := 0
	for _, p := range points(recs) {
		here := func(q record.Point) bool { return q == p }
		best, clear := leader(recs, names, here)
		if best == nil {
			continue
		}
		row, measured := []table.Cell{table.Text(strings.TrimSuffix(p.String(), " "+p.Precision)), table.Text(p.Precision)}, 0
		for _, n := range names {
			r := find(recs, n, here)
			if row = append(row, seconds(r)); r != nil {
				measured++
			}
		}
		winner := table.Text(best.Impl.Label)
		if measured == 1 { // nothing to be faster than
			winner = missing()
			alone++
		} else {
			won.add(best, clear)
		}
		p99 := missing()
		if best.Latency != nil {
			p99 = table.Number(best.Latency.P99, quantity.SI(best.Latency.P99, "s"))
		}
		t.Rows = append(t.Rows, append(row, winner, p99))
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("experiments: no records of production's layers")
	}
	rep.Tables = append(rep.Tables, t)
	if won.total > 0 {
		finding := fmt.Sprintf("clearly the fastest technique is %s, of %d layers", won.text(names), won.total)
		rep.Findings = append(rep.Findings, "Inference: "+finding+".")
		rep.yardstick(finding)
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
		rep.Findings = append(rep.Findings, algorithmsAlike(recs)...)
	}
	if on.GPU {
		addSpeedups(rep, recs)
	}
	productionFigures(rep, recs, on)
	ragged(rep, recs, on)
	return rep, nil
}

// addSpeedups adds the speed-up of our fastest form over cuDNN's fastest, in fp32 and in 16 bits.
func addSpeedups(rep *Report, recs []record.Record) {
	theirs := vendorsOf(recs)
	own := slices.DeleteFunc(labels(recs), quantity.Vendor)
	for _, wide := range []bool{true, false} {
		var d duel
		for _, p := range points(recs) {
			if here := func(q record.Point) bool { return q == p }; wide == (p.Precision == "fp32") {
				d.add(fastest(recs, theirs, here), fastest(recs, own, here))
			}
		}
		if len(d) == 0 {
			continue
		}
		precision := map[bool]string{true: "fp32", false: "16 bits"}[wide]
		rep.Findings = append(rep.Findings, fmt.Sprintf("In %s, rnnbench's fastest technique is %s.", precision, d.full("cuDNN's fastest form", "layer")))
	}
}

// seconds is the time of a record as a cell.
func seconds(r *record.Record) table.Cell {
	if r == nil {
		return missing()
	}
	return table.Number(r.Seconds(), quantity.SI(r.Seconds(), "s"))
}
