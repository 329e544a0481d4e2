package experiments

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
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
		g, err := grid.New(grid.Request{Presets: []string{preset}, Impl: []string{"naive"}}, grid.Vocabulary{Impls: []string{"naive"}, Cells: cellNames()})
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
				parts = append(parts, Part{Points: []results.Point{p}, Specs: specs})
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
func runs(technique string, p results.Point, on Target) bool {
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
func reportProduction(recs []results.Record, on Target) (*Report, error) {
	rep := &Report{}
	names := labels(recs)
	t := &table.Table{Title: "Time of a run; of layers with calls, the median call", Columns: []table.Column{{Name: "Layer", Key: "layer"}, {Name: "Precision", Key: "precision"}}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Name: n, Key: strings.NewReplacer(" ", "_", ",", "").Replace(n) + "_s", Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Name: "fastest", Key: "fastest"}, table.Column{Name: "p99", Key: "p99_s", Right: true})
	won, alone := map[string]int{}, 0
	for _, p := range points(recs) {
		here := func(q results.Point) bool { return q == p }
		best := fastest(recs, names, here)
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
			won[best.Impl.Label]++
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
	var parts []string
	for _, n := range names {
		if won[n] > 0 {
			parts = append(parts, fmt.Sprintf("%s at %d", n, won[n]))
		}
	}
	if parts != nil {
		finding := fmt.Sprintf("the fastest technique is %s, of %d layers", strings.Join(parts, ", "), len(t.Rows)-alone)
		rep.Findings = append(rep.Findings, "Inference: "+finding+".")
		rep.yardstick(finding)
	}
	if alone > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("At %s one technique alone was measured, so none is called the fastest there.", quantity.Plural(alone, "layer")))
	}
	if on.GPU {
		without := "heads and projections"
		if slices.ContainsFunc(recs, func(r results.Record) bool { return r.Point.Resets > 0 }) {
			without = "heads, projections and resets"
		}
		rep.Findings = append(rep.Findings, "cuDNN runs here only its own cells, in layers without "+without+".")
		rep.Findings = append(rep.Findings, algorithmsAlike(recs)...)
	}
	if on.GPU {
		besideVendor(rep, recs)
	}
	drawn := fastestForms(recs) // a figure has room for few series
	rep.add("production", overSlowest(drawn, labels(drawn), on), nil)
	ragged(rep, recs, on)
	return rep, nil
}

// besideVendor adds the speed-up of our fastest form over cuDNN's fastest, in fp32 and in 16 bits.
func besideVendor(rep *Report, recs []results.Record) {
	theirs := vendorsOf(recs)
	own := slices.DeleteFunc(labels(recs), quantity.Vendor)
	for _, wide := range []bool{true, false} {
		var ratios []float64
		slower := 0
		for _, p := range points(recs) {
			here := func(q results.Point) bool { return q == p }
			a, b := fastest(recs, own, here), fastest(recs, theirs, here)
			if a == nil || b == nil || wide != (p.Precision == "fp32") {
				continue
			}
			ratios = append(ratios, b.Seconds()/a.Seconds())
			if a.Seconds() > b.Seconds() {
				slower++
			}
		}
		if ratios == nil {
			continue
		}
		precision := map[bool]string{true: "fp32", false: "16 bits"}[wide]
		rep.Findings = append(rep.Findings, fmt.Sprintf("In %s, rnnbench's fastest technique is %.2f× as fast as cuDNN's fastest form (geometric mean of %d layers; range %.2f× to %.2f×; slower at %d).",
			precision, geomean(ratios), len(ratios), slices.Min(ratios), slices.Max(ratios), slower))
	}
}

// seconds is the time of a record as a cell.
func seconds(r *results.Record) table.Cell {
	if r == nil {
		return missing()
	}
	return table.Number(r.Seconds(), quantity.SI(r.Seconds(), "s"))
}

// overSlowest draws each technique's speed-up over the slowest technique of the layer.
func overSlowest(recs []results.Record, names []string, on Target) plots.Figure {
	ch := &plots.Chart{Title: "Layers that people run: speed-up over the slowest technique", Subtitle: on.Name,
		Notes: []string{"Ratios of medians, one mark per layer. Layers also differ in depth, direction, minibatch, time steps and precision."},
		X:     plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Speed-up over the slowest technique", Scale: plots.Log, Format: times}}
	layerMarks(ch, recs, names, func(p results.Point) (slowest float64) {
		for _, n := range names {
			if r := find(recs, n, func(q results.Point) bool { return q == p }); r != nil {
				slowest = max(slowest, r.Seconds())
			}
		}
		return slowest
	})
	return ch
}
