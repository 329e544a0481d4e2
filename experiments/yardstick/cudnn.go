// Package yardstick has the experiments of no paper: rnnbench beside the vendor's library, rivals and
// other yardsticks.
package yardstick

import (
	"cmp"
	"fmt"
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
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// usual returns the techniques as a user would first try them: on a GPU as graphs, with a vendor's
// library beside them.
func usual(on study.Target) []grid.Spec {
	naive, products := study.Spec("naive", "naive", nil), study.Spec("cudnnstyle", "cudnnstyle", knob.Params{"transposed": 2})
	if !on.GPU {
		return []grid.Spec{naive, products, study.Spec("persistent", "persistent", knob.Params{"transposed": 2})}
	}
	return append([]grid.Spec{naive, study.Graphed("cudnnstyle", products), study.Graphed("persistent", study.Spec("persistent", "persistent", nil))}, form.Vendors()...)
}

// DeepBench is the experiment deepbench.
var DeepBench = study.Experiment{
	ID: "deepbench", Title: "DeepBench's recurrent layers with every technique that runs them",
	Source: "DeepBench, code/kernels/rnn_problems.h: training, inference on a server and on a phone",
	Parts: func(s study.Size, on study.Target) []study.Part {
		return form.OnChip(deepbenchLayers(s), usual(on))
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		for _, pass := range []string{"forward", "train"} {
			sideBySide(rep, pick.Where(recs, func(p record.Point) bool { return p.Pass == pass }), "DeepBench, "+pass)
		}
		if len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of DeepBench's layers")
		}
		winners(rep, recs)
		rep.Findings = append(rep.Findings, form.AlgorithmsAlike(recs)...)
		if on.GPU {
			addSpeedups(rep, recs)
		}
		rep.Add("deepbench", overNaive(form.FastestForms(recs), on, "DeepBench's layers: speed-up over naive"), nil)
		if fig := overVendor(recs, on, "DeepBench's layers: the fastest technique over cuDNN's fastest form"); fig != nil {
			rep.Add("deepbench-cudnn", fig, nil)
		}
		return rep, nil
	},
}

// deepbenchLayers returns DeepBench's layers in fp32; at the quick size only those for a phone.
func deepbenchLayers(s study.Size) []record.Point {
	presets := []string{"deepbench-infer", "deepbench-device", "deepbench-train"}
	if s == study.Quick {
		presets = presets[1:2]
	}
	g, err := grid.New(grid.Request{Presets: presets, Impl: []string{"naive"}}, grid.Vocabulary{Impls: []string{"naive"}})
	if err != nil {
		return nil // presets are the package's own, and tested there
	}
	points, err := g.Points()
	if err != nil {
		return nil
	}
	return points
}

// sideBySide adds the table of times, a technique a column.
func sideBySide(rep *study.Report, recs []record.Record, title string) {
	names := pick.Labels(recs)
	t := &table.Table{Title: title, Columns: []table.Column{
		{Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
		{Name: "L", Key: "layers", Right: true}, {Name: "Precision", Key: "precision"},
	}}
	for _, n := range names {
		t.Columns = append(t.Columns, table.Column{Name: n, Key: strings.NewReplacer(" ", "_", ",", "").Replace(n) + "_s", Right: true})
	}
	t.Columns = append(t.Columns, table.Column{Name: "fastest", Key: "fastest"}, table.Column{Name: "FLOP/s", Key: "flops_per_s", Right: true})
	for _, p := range pick.Points(recs) {
		row := []table.Cell{table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps), table.Int(p.Layers), table.Text(p.Precision)}
		here := func(q record.Point) bool { return q == p }
		for _, n := range names {
			if r := pick.Find(recs, n, here); r != nil {
				row = append(row, table.Time(r))
			} else {
				row = append(row, show.Missing())
			}
		}
		best := pick.Fastest(recs, names, here)
		if best == nil {
			continue
		}
		t.Rows = append(t.Rows, append(row, table.Text(best.Impl.Label), table.Throughput(best)))
	}
	if len(t.Rows) > 0 {
		rep.Tables = append(rep.Tables, t)
	}
}

// winners counts who is fastest where.
func winners(rep *study.Report, recs []record.Record) {
	names := pick.Labels(recs)
	for _, pass := range []string{"forward", "train"} {
		var count estimate.Score
		for _, p := range pick.Points(recs) {
			if p.Pass != pass {
				continue
			}
			if best, alone := estimate.Leader(recs, names, func(q record.Point) bool { return q == p }); best != nil {
				count.Add(best, alone)
			}
		}
		if count.Total > 0 {
			said := count.Text(names)
			rep.Findings = append(rep.Findings, fmt.Sprintf("Clearly the fastest technique over %d layers, %s: %s.", count.Total, pass, said))
			rep.Yardstick(fmt.Sprintf("%s: clearly the fastest technique is %s, of %d layers", pass, said, count.Total))
		}
	}
}

// ours returns the forms of rnnbench that are compared with the vendor's library.
func ours() []grid.Spec {
	waves := func(label string, k knob.Params) grid.Spec {
		return study.Graphed(label, study.Spec(label, "cudnnstyle", k))
	}
	return []grid.Spec{
		waves("cudnnstyle", knob.Params{"transposed": 2, "inputbatch": 0, "overlap": 0, "streams": 1}),
		waves("cudnnstyle wave", knob.Params{"transposed": 2, "inputbatch": 2, "overlap": 1, "streams": 8}),
		waves("cudnnstyle wave of 4", knob.Params{"transposed": 2, "inputbatch": 4, "overlap": 1, "streams": 8}),
		study.Graphed("persistent", study.Spec("persistent", "persistent", nil)),
	}
}

// wave returns persistent layers that run as a wave.
func wave(layers int) grid.Spec {
	return study.Graphed("persistent wave", study.Spec("persistent wave", "persistent", knob.Params{"streams": 2 * layers}))
}

// CuDNNStacks is the experiment cudnn-stacks.
var CuDNNStacks = study.Experiment{
	ID: "cudnn-stacks", Title: "Stacks against cuDNN",
	Source: "rnnbench; the first shape is from Appleyard et al. 2016, Table 1, the last from Diamos et al. 2016",
	Vendor: true,
	Parts: func(s study.Size, _ study.Target) []study.Part {
		first := form.LSTM4()
		if s == study.Quick {
			first.Steps = 20
		}
		var stacks, single []record.Point
		for _, pass := range []string{"forward", "train"} {
			for _, precision := range []string{"fp32", "tf32", "bf16"} {
				p := first
				p.Pass, p.Precision = pass, precision
				large := p
				large.Hidden, large.Input, large.Layers = 1024, 1024, 1
				simple := p
				simple.Cell, simple.Hidden, simple.Input, simple.Layers = "rnn-tanh", 1152, 1152, 1
				stacks, single = append(stacks, p), append(single, large, simple)
			}
		}
		return slices.Concat(
			withPlain(stacks, append(ours(), wave(first.Layers)), form.Yardsticks(s)),
			withPlain(single, ours(), form.Yardsticks(s)))
	},
	Report: reportVendor,
}

// Layers against the vendor's library, by precision, and training.
var (
	CuDNNFP32  = cudnnLayers("fp32")
	CuDNNBF16  = cudnnLayers("bf16")
	CuDNNFP16  = cudnnLayers("fp16")
	CuDNNTrain = study.Experiment{
		ID: "cudnn-train", Title: "Training one layer against cuDNN over cell, size, minibatch and precision", Source: layersSource,
		Vendor: true,
		Parts: func(s study.Size, _ study.Target) []study.Part {
			var all []record.Point
			for _, precision := range []string{"fp32", "bf16"} {
				for _, cell := range []string{"lstm", "gru"} {
					p := record.Point{Cell: cell, Pass: "train", Steps: 256, Layers: 1, Precision: precision}
					all = append(all, study.Product(p, []int{512, 1024}, []int{1, 4, 16, 64})...)
				}
			}
			return againstVendor(all, s)
		},
		Report: reportVendor,
	}
)

const layersSource = "rnnbench; the idea is from Diamos et al. 2016"

// cudnnLayers is the experiment of single layers, forward.
func cudnnLayers(precision string) study.Experiment {
	return study.Experiment{
		ID: "cudnn-" + precision, Title: "One layer against cuDNN over cell, size and minibatch, " + precision, Source: layersSource,
		Vendor: true,
		Parts: func(s study.Size, _ study.Target) []study.Part {
			batches := []int{1, 2, 4, 8, 16, 32, 64}
			if s == study.Quick {
				batches = []int{1, 4, 64}
			}
			var all []record.Point
			for _, c := range []struct {
				cell   string
				hidden []int
			}{{"rnn-tanh", []int{256, 512, 1152, 1760}}, {"gru", []int{256, 512, 1024, 1536}}, {"lstm", []int{128, 256, 512, 1024, 1536}}} {
				p := record.Point{Cell: c.cell, Pass: "forward", Steps: 256, Layers: 1, Precision: precision}
				all = append(all, study.Product(p, c.hidden, batches)...)
			}
			return againstVendor(all, s)
		},
		Report: reportVendor,
	}
}

// againstVendor returns parts with the persistent form and the vendor's forms. Large layers also
// have the form of products.
func againstVendor(all []record.Point, s study.Size) []study.Part {
	var small, large []record.Point
	for _, p := range all {
		if p.Hidden < 1024 {
			small = append(small, p)
		} else {
			large = append(large, p)
		}
	}
	return slices.Concat(withPlain(small, ours()[3:], form.Yardsticks(s)), withPlain(large, []grid.Spec{ours()[0], ours()[3]}, form.Yardsticks(s)))
}

// reportVendor compares the fastest of our own forms with the fastest of the vendor's, point by
// point.
func reportVendor(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	names := slices.DeleteFunc(pick.Labels(recs), quantity.Vendor)
	t := &table.Table{Title: "Time of one step: the fastest of rnnbench's techniques and of cuDNN's algorithms", Columns: []table.Column{
		{Name: "Pass", Key: "pass"}, {Name: "Cell", Key: "cell"}, {Name: "Precision", Key: "precision"}, {Name: "H", Key: "hidden", Right: true},
		{Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true}, {Name: "L", Key: "layers", Right: true},
		{Name: "rnnbench", Key: "rnnbench_s", Right: true}, {Name: "technique", Key: "by"},
		{Name: "cuDNN", Key: "cudnn_s", Right: true}, {Name: "algorithm", Key: "cudnn_by"}, {Name: "×", Key: "ratio", Right: true},
	}}
	type group struct{ pass, precision string }
	ratios := map[group]estimate.Duel{}
	var order []group
	all := pick.Points(recs)
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Batch, b.Batch))
	})
	for _, p := range all {
		here := func(q record.Point) bool { return q == p }
		own, yard := pick.Fastest(recs, names, here), pick.Fastest(recs, form.VendorLabels(), here)
		if own == nil || yard == nil {
			continue
		}
		up, steps := estimate.TimesAsFast(yard, own), float64(p.Steps)
		g := group{p.Pass, p.Precision}
		if ratios[g] == nil {
			order = append(order, g)
		}
		ratios[g] = append(ratios[g], up)
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Pass), table.Text(p.Cell), table.Text(p.Precision), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps), table.Int(p.Layers),
			table.Number(own.Seconds()/steps, quantity.SI(own.Seconds()/steps, "s")).Of(own), table.Text(own.Impl.Label),
			table.Number(yard.Seconds()/steps, quantity.SI(yard.Seconds()/steps, "s")).Of(yard), table.Text(yard.Impl.Label), show.Ratio(up.At)})
	}
	if len(t.Rows) == 0 {
		return nil, fmt.Errorf("experiments: no point has records of both rnnbench's techniques and cuDNN")
	}
	rep.Tables = append(rep.Tables, t)
	plainTable(rep, recs, all)
	for _, g := range order {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: rnnbench's fastest technique is %s.", g.pass, g.precision, ratios[g].Full(cudnnsFastest, "point")))
		rep.Yardstick(fmt.Sprintf("%s, %s: %s", g.pass, g.precision, ratios[g].Brief(cudnnsFastest)))
	}
	rep.Findings = append(rep.Findings, form.AlgorithmsAlike(recs)...)
	rep.Findings = append(rep.Findings, notMeasured(pick.Labels(recs))...)
	if !slices.ContainsFunc(all, func(p record.Point) bool { return p.Batch != all[0].Batch }) {
		rep.Add("cudnn", ratioBars(t, on, form.AlgorithmsAlike(recs)), nil)
		return rep, nil
	}
	for _, g := range order {
		some := pick.Where(recs, func(p record.Point) bool { return p.Pass == g.pass && p.Precision == g.precision })
		rep.Add(fmt.Sprintf("cudnn-%s-%s", g.pass, g.precision), ratioFigure(some, names, versusCuDNN(some), on, g.pass, g.precision), nil)
	}
	return rep, nil
}

// ratioBars draws the last column of the table of reportVendor, a bar a precision.
func ratioBars(t *table.Table, on study.Target, notes []string) plots.Figure {
	b := &plots.Bars{Title: "Speed-up over cuDNN's fastest algorithm", Subtitle: on.Name, Notes: append([]string{"Ratios of medians, the fastest of each; above 1, rnnbench is faster."}, notes...),
		X: plots.Axis{Title: "Speed-up over cuDNN", Format: show.Times}, Guides: []plots.Guide{{X0: 1, X1: 1}}, Value: quantity.Factor}
	for _, row := range t.Rows {
		label := fmt.Sprintf("%s %s %s×%s", row[0].Text, row[1].Text, row[3].Text, row[6].Text)
		i := slices.IndexFunc(b.Groups, func(g plots.Group) bool { return g.Label == label })
		if i < 0 {
			i = len(b.Groups)
			b.Groups = append(b.Groups, plots.Group{Label: label})
		}
		ratio, _ := row[len(row)-1].Value.(float64)
		b.Groups[i].Bars = append(b.Groups[i].Bars, plots.Bar{Series: row[2].Text, Value: ratio})
	}
	return b
}

// A versus is what rnnbench's own techniques are compared with.
type versus struct {
	long, short string   // in titles
	labels      []string // of its forms
	notes       []string
}

// versusCuDNN returns the comparison with cuDNN.
func versusCuDNN(recs []record.Record) versus {
	return versus{"cuDNN's fastest algorithm", "cuDNN", form.VendorLabels(), form.AlgorithmsAlike(recs)}
}

// ratioFigure draws our fastest form's speed-up over the fastest form of v, a panel for each cell.
func ratioFigure(recs []record.Record, names []string, v versus, on study.Target, pass, precision string) plots.Figure {
	ch := &plots.Chart{Title: fmt.Sprintf("Speed-up over %s: %s, %s", v.long, pass, precision), Subtitle: on.Name,
		Notes: append([]string{"Ratios of medians, the fastest of each; above 1, rnnbench is faster."}, v.notes...),
		X:     plots.Axis{Title: "Minibatch", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Speed-up over " + v.short, Scale: plots.Log, Format: show.Times}}
	panels := map[string]int{}
	all := pick.Points(recs)
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Hidden, b.Hidden))
	})
	both := func(p record.Point) (own, yard *record.Record) {
		here := func(q record.Point) bool { return q == p }
		return pick.Fastest(recs, names, here), pick.Fastest(recs, v.labels, here)
	}
	all = slices.DeleteFunc(all, func(p record.Point) bool {
		own, yard := both(p)
		return own == nil || yard == nil
	})
	label := func(p record.Point) string {
		if p.Layers > 1 {
			return fmt.Sprintf("%d units, %d layers", p.Hidden, p.Layers)
		}
		return fmt.Sprintf("%d units", p.Hidden)
	}
	var lines []plots.Series // of every panel, so that the legend has them by size
	bySize := slices.SortedStableFunc(slices.Values(all), func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Layers, b.Layers))
	})
	for _, p := range bySize {
		if !slices.ContainsFunc(lines, func(s plots.Series) bool { return s.Label == label(p) }) {
			lines = append(lines, plots.Series{Label: label(p)})
		}
	}
	for _, p := range all {
		own, yard := both(p)
		i, ok := panels[p.Cell]
		if !ok {
			i = len(ch.Panels)
			panels[p.Cell] = i
			ch.Panels = append(ch.Panels, plots.Panel{Title: p.Cell, Series: slices.Clone(lines), Guides: []plots.Guide{{Label: "as fast as " + v.short, Y0: 1, Y1: 1}}})
		}
		panel := &ch.Panels[i]
		k := slices.IndexFunc(panel.Series, func(s plots.Series) bool { return s.Label == label(p) })
		x := float64(p.Batch)
		line := &panel.Series[k].Points
		*line = append(*line, plots.Point{X: x, Y: yard.Seconds() / own.Seconds()})
		slices.SortFunc(*line, func(a, b plots.Point) int { return cmp.Compare(a.X, b.X) })
		if !slices.Contains(ch.X.Places, x) {
			ch.X.Places = append(ch.X.Places, x)
		}
	}
	slices.Sort(ch.X.Places)
	return ch
}
