package yardstick

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// RivalsCPU is the experiment rivals-cpu.
var RivalsCPU = study.Experiment{
	ID: "rivals-cpu", Title: "One layer on a processor against rivals over cell, size and minibatch", Source: "rnnbench",
	Rivals: study.OnCPU,
	Parts: func(s study.Size, on study.Target) []study.Part {
		specs := usual(on)[1:]
		if on.GPU { // where it is declined
			specs = specs[:2]
		}
		return append(againstRivals(s, on, specs, []int{64, 256, 512, 1024}, "bf16"), calledAgainstRivals(s, on, specs))
	},
	Report: reportRivals,
}

// RivalsGPU is the experiment rivals-gpu.
var RivalsGPU = study.Experiment{
	ID: "rivals-gpu", Title: "One layer on a GPU against rivals over cell, size and minibatch", Source: "rnnbench",
	Rivals: study.OnGPU,
	Parts: func(s study.Size, on study.Target) []study.Part {
		own, others := []grid.Spec{ours()[0], ours()[3]}, on
		others.Rivals = slices.DeleteFunc(slices.Clone(on.Rivals), func(r study.Rival) bool { return slices.Contains(ownLayers, r.Name) })
		parts := []study.Part{{Points: rivalLayers(s), Specs: withRivals(own, on)}}
		if len(others.Rivals) > 0 || len(on.Rivals) == 0 {
			parts = append(againstRivals(s, others, own, []int{256, 512, 1024, 1536}, "bf16"), parts...)
		}
		return parts
	},
	Report: reportRivals,
}

// againstRivals returns layers in fp32 and, forward or on a GPU, in the 16-bit precision half, by
// rnnbench's own techniques and by every rival.
func againstRivals(s study.Size, on study.Target, own []grid.Spec, hidden []int, half string) []study.Part {
	cells, batches, steps := []string{"rnn-tanh", "gru", "lstm"}, []int{1, 4, 16, 64}, 100
	if s == study.Quick {
		cells, batches, steps, hidden = cells[2:], []int{1, 16}, 20, hidden[:2]
	}
	part := study.Part{Specs: withRivals(own, on)}
	for _, pass := range []string{"forward", "train"} {
		for _, precision := range []string{"fp32", half} {
			if pass == "train" && precision != "fp32" && !on.GPU {
				continue
			}
			for _, cell := range cells {
				p := record.Point{Cell: cell, Pass: pass, Steps: steps, Layers: 1, Precision: precision}
				part.Points = append(part.Points, study.Product(p, hidden, batches)...)
			}
		}
	}
	return []study.Part{part}
}

// calledAgainstRivals returns small layers that are called step by step, as a streaming model calls them.
func calledAgainstRivals(s study.Size, on study.Target, own []grid.Spec) study.Part {
	cells, hidden := []string{"rnn-tanh", "gru", "lstm"}, []int{32, 64, 128, 256}
	if s == study.Quick {
		cells, hidden = cells[2:], hidden[1:2]
	}
	part := study.Part{Specs: withRivals(own, on)}
	for _, cell := range cells {
		p := record.Point{Cell: cell, Pass: "forward", Steps: 1, Layers: 1, Precision: "fp32", Calls: 1000}
		part.Points = append(part.Points, study.Product(p, hidden, []int{1})...)
	}
	return part
}

// withRivals returns own and the specs of every rival.
func withRivals(own []grid.Spec, on study.Target) []grid.Spec {
	specs := slices.Clone(own)
	for _, r := range on.Rivals {
		specs = append(specs, r.Specs()...)
	}
	return specs
}

// reportRivals compares the fastest of rnnbench's techniques with the fastest form of each rival,
// point by point.
func reportRivals(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	var theirs []string
	for _, r := range on.Rivals {
		theirs = append(theirs, r.Labels()...)
	}
	names := slices.DeleteFunc(pick.Labels(recs), func(l string) bool { return slices.Contains(theirs, l) })
	all := pick.Points(recs)
	called := func(p record.Point) bool { return p.Calls > 0 }
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Calls, b.Calls), cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Precision, b.Precision), cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Batch, b.Batch))
	})
	for _, r := range on.Rivals {
		rest, calls := split(duels(recs, all, names, r), called)
		layers, whole := []duel(nil), rest
		if on.GPU {
			whole, layers = split(rest, isRivalLayer)
		}
		if len(whole) > 0 {
			t, ratios := rivalTable(whole, r)
			rep.Tables = append(rep.Tables, t)
			againstRival(rep, recs, on, names, r, ratios)
		}
		if len(layers) > 0 {
			layersAgainst(rep, recs, on, names, r, layers)
		}
		if len(calls) > 0 {
			rep.Tables = append(rep.Tables, callTable(calls, r))
			calledAgainst(rep, calls, versioned(recs, r))
		}
	}
	if len(rep.Tables) == 0 {
		return nil, fmt.Errorf("experiments: no point has records of both rnnbench's techniques and a rival")
	}
	return rep, nil
}

// knobNotes says what the values of rivals' knobs in the column form mean: records have the numbers alone.
var knobNotes = map[string][]string{
	"accelerated-scan": {"form: backend 0, where none is named, is CUDA C++; 1 is Triton"},
	"flashrnn":         {"form: backend 0, where none is named, is cuda_fused; 1 is cuda and 2 triton_fused; graph=1 is replayed as a graph"},
	"torch-scan":       {"form: time=1 has time innermost in memory, else units are"},
}

// A rivalry holds rnnbench's speed-ups at the points of a pass and precision.
type rivalry struct {
	pass, precision string
	ratios          estimate.Duel
	duels           []duel
}

// A duel is a point with the records of the fastest of rnnbench's techniques and of a rival's forms.
type duel struct {
	record.Point
	own, theirs *record.Record
	times       estimate.Estimate // how many times as fast as the rival rnnbench is
}

// duels returns the points that both have measured.
func duels(recs []record.Record, all []record.Point, names []string, r study.Rival) (list []duel) {
	for _, p := range all {
		here := func(q record.Point) bool { return q == p }
		if own, yard := pick.Fastest(recs, names, here), pick.Fastest(recs, r.Labels(), here); own != nil && yard != nil {
			list = append(list, duel{p, own, yard, estimate.TimesAsFast(yard, own)})
		}
	}
	return list
}

// split divides duels into those at points where is does not hold, and the others.
func split(all []duel, is func(record.Point) bool) (no, yes []duel) {
	for _, d := range all {
		if is(d.Point) {
			yes = append(yes, d)
		} else {
			no = append(no, d)
		}
	}
	return no, yes
}

// callTable returns the table of one rival's calls.
func callTable(calls []duel, r study.Rival) *table.Table {
	t := &table.Table{Title: fmt.Sprintf("Time of one call: the fastest of rnnbench's techniques and of %s, the median and the 99th percentile", r.Name), Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
		{Name: "rnnbench p50", Key: "rnnbench_p50_s", Right: true}, {Name: "p99", Key: "rnnbench_p99_s", Right: true}, {Name: "technique", Key: "by"},
		{Name: r.Name + " p50", Key: "rival_p50_s", Right: true}, {Name: "p99", Key: "rival_p99_s", Right: true}, {Name: "form", Key: "rival_by"}, {Name: "×", Key: "ratio", Right: true},
	}}
	of := func(x *record.Record, quantile func(*record.Latency) float64) table.Cell {
		if x.Latency == nil {
			return show.Missing()
		}
		return table.Number(quantile(x.Latency), quantity.SI(quantile(x.Latency), "s"))
	}
	p50, p99 := func(l *record.Latency) float64 { return l.P50 }, func(l *record.Latency) float64 { return l.P99 }
	for _, d := range calls {
		t.Rows = append(t.Rows, []table.Cell{table.Text(d.Cell), table.Int(d.Hidden), table.Int(d.Batch), table.Int(d.Steps),
			of(d.own, p50), of(d.own, p99), table.Text(d.own.Impl.Label), of(d.theirs, p50), of(d.theirs, p99), table.Text(d.theirs.Impl.Label), show.Ratio(d.times.At)})
	}
	return t
}

// calledAgainst adds a finding about the calls of one rival.
func calledAgainst(rep *study.Report, calls []duel, called string) {
	var all estimate.Duel
	for _, d := range calls {
		all = append(all, d.times)
	}
	rep.Findings = append(rep.Findings, fmt.Sprintf("Called step by step: rnnbench's fastest technique is %s.", all.Full(called, "point")))
	rep.Yardstick("called step by step: " + all.Brief(called))
}

// rivalTable returns the table of one rival, and its rivalries.
func rivalTable(all []duel, r study.Rival) (*table.Table, []*rivalry) {
	t := &table.Table{Title: fmt.Sprintf("Time of one run: the fastest of rnnbench's techniques and of %s", r.Name), Notes: knobNotes[r.Name], Columns: []table.Column{
		{Name: "Pass", Key: "pass"}, {Name: "Precision", Key: "precision"}, {Name: "Cell", Key: "cell"},
		{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
		{Name: "rnnbench", Key: "rnnbench_s", Right: true}, {Name: "technique", Key: "by"},
		{Name: r.Name, Key: "rival_s", Right: true}, {Name: "form", Key: "rival_by"}, {Name: "×", Key: "ratio", Right: true},
	}}
	var list []*rivalry
	for _, d := range all {
		p, own, yard, up := d.Point, d.own, d.theirs, d.times
		i := slices.IndexFunc(list, func(g *rivalry) bool { return g.pass == p.Pass && g.precision == p.Precision })
		if i < 0 {
			i, list = len(list), append(list, &rivalry{pass: p.Pass, precision: p.Precision})
		}
		list[i].ratios, list[i].duels = append(list[i].ratios, up), append(list[i].duels, d)
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Pass), table.Text(p.Precision), table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps),
			table.Time(own), table.Text(own.Impl.Label),
			table.Time(yard), table.Text(yard.Impl.Label), show.Ratio(up.At)})
	}
	return t, list
}

// againstRival adds findings and figures about one rival.
func againstRival(rep *study.Report, recs []record.Record, on study.Target, names []string, r study.Rival, list []*rivalry) {
	called := versioned(recs, r)
	for _, g := range list {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: rnnbench's fastest technique is %s.", g.pass, g.precision, g.ratios.Full(called, "point")))
		rep.Yardstick(fmt.Sprintf("%s, %s: %s", g.pass, g.precision, g.ratios.Brief(called)))
		if s := launchedFinding(g.duels, called); s != "" {
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: %s", g.pass, g.precision, s))
		}
		some := pick.Where(recs, func(p record.Point) bool {
			return p.Pass == g.pass && p.Precision == g.precision && p.Calls == 0 && !(on.GPU && isRivalLayer(p))
		})
		v := versus{long: called, short: r.Name, labels: r.Labels()}
		rep.Add(fmt.Sprintf("%s-%s-%s", r.Name, g.pass, g.precision), ratioFigure(some, names, v, on, g.pass, g.precision), nil)
	}
}

// launchedFinding says at how many points of a pass the host launched each operation of a rival's fastest form, while
// rnnbench's technique was replayed as a graph; "": at none. Only a rival with the knob graph tells.
func launchedFinding(all []duel, rival string) string {
	n := 0
	for _, d := range all {
		theirs, known := d.theirs.Impl.Knobs["graph"]
		if known && theirs == 0 && d.own.Impl.Knobs["graph"] == 1 {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("at %d of %s, the host launched %s's fastest form operation by operation, while rnnbench's technique was replayed as a graph: the ratio counts these launches.", n, quantity.Plural(len(all), "layer"), rival)
}

// versioned is the name of a rival with its version.
func versioned(recs []record.Record, r study.Rival) string {
	if i := slices.IndexFunc(recs, func(x record.Record) bool { return x.Impl.Name == r.Name && x.Rival != nil }); i >= 0 {
		return strings.TrimSpace(r.Name + " " + recs[i].Rival.Version)
	}
	return r.Name
}
