package diamos

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/cell"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
)

// persistentSpecs returns the technique that the model predicts; nil if it is not built in.
func persistentSpecs() []grid.Spec {
	if impl.Lookup("persistent") == nil {
		return nil
	}
	return []grid.Spec{study.Spec("persistent", "persistent", nil)}
}

// fig6Batch is the minibatch at which the figure is drawn: the paper prints
// none, and 4 is what its kernels are for.
const fig6Batch = 4

// Fig6 is the experiment diamos-fig6.
var Fig6 = study.Experiment{
	ID: "diamos-fig6", Title: "The design space of persistent layers: predicted throughput over layer size",
	Source: "Diamos et al. 2016, Figure 6 and section 5.1.4",
	Unlike: "another model; the paper's parameters and minibatch are not printed",
	Parts: func(s study.Size, on study.Target) []study.Part {
		if persistentSpecs() == nil {
			return nil
		}
		// A narrow input leaves the recurrent product alone in a step.
		p := record.Point{Pass: "forward", Input: 16, Layers: 1, Steps: 1000, Precision: "fp32"}
		hidden := []int{128, 256, 512, 768, 1024, 1536, 2048}
		if s == study.Quick {
			p.Steps, hidden = 200, []int{128, 256, 512, 1024}
		}
		var parts []study.Part
		for _, c := range []string{"rnn-tanh", "gru", "lstm"} {
			p.Cell = c
			points := study.Product(p, hidden, []int{1, fig6Batch})
			for i := range points {
				points[i].Input = p.Input
			}
			parts = append(parts, study.Part{Points: points, Specs: persistentSpecs()})
		}
		if s == study.Full {
			parts = append(parts, study.Part{Points: unfitted(p), Specs: persistentSpecs()})
		}
		return parts
	},
	Report: func([]record.Record, study.Target) (*study.Report, error) {
		m, err := model.Load("titanx")
		if err != nil {
			return nil, err
		}
		rep := &study.Report{}
		err = reportDesigns(rep, m)
		rep.Exact.Tables, rep.Exact.Figures = len(rep.Tables), len(rep.Figures)
		return rep, err
	},
	Model: reportPredicted,
}

// unfitted returns layers like p to which no constant of a machine's model was fitted, so that they
// test the model. They lie between those that it misses on an H100.
func unfitted(p record.Point) (all []record.Point) {
	p.Cell, p.Batch = "gru", fig6Batch
	for _, h := range []int{1280, 1792} {
		p.Hidden = h
		all = append(all, p)
	}
	return all
}

// sameMark is the factor between throughputs of tilings below which they are drawn as one mark. Closer
// marks would hide each other.
const sameMark = 1.25

// A design is one variant of a machine over layer sizes.
type design struct {
	model.Variant
	machine *model.Machine
	sizes   []int
	tilings [][]float64  // by size: throughput of the tilings whose weights stay on chip
	best    []model.Step // by size; no tiling where there is none
}

func designOf(m *model.Machine, v model.Variant, sizes []int) (design, error) {
	d := design{Variant: v, machine: v.Of(m), sizes: sizes}
	for _, h := range sizes {
		w, err := model.Recurrent(cell.RNNReLU, h, fig6Batch, v.Bytes(4))
		if err != nil {
			return d, err
		}
		var best model.Step
		seen := map[float64]float64{} // throughputs, by what is drawn as one mark
		for t := range d.machine.Tilings(w) {
			s, err := d.machine.Predict(w, t)
			if err != nil {
				return d, err
			}
			if !s.Resident {
				continue
			}
			seen[math.Round(math.Log(s.FLOPS())/math.Log(sameMark))] = s.FLOPS()
			if best.Tiling == nil || s.Time < best.Time {
				best = s
				best.Tiling = slices.Clone(t)
			}
		}
		d.tilings = append(d.tilings, slices.Sorted(maps.Values(seen)))
		d.best = append(d.best, best)
	}
	return d, nil
}

// rate returns the best throughput at the i-th size, 0 if no tiling keeps the weights on chip.
func (d design) rate(i int) float64 {
	if d.best[i].Tiling == nil {
		return 0
	}
	return d.best[i].FLOPS()
}

// mean returns the throughput averaged over all sizes.
func (d design) mean() (m float64) {
	for i := range d.sizes {
		m += d.rate(i) / float64(len(d.sizes))
	}
	return m
}

// largest is the largest layer that stays on chip.
func (d design) largest() (h int) {
	for i, size := range d.sizes {
		if d.rate(i) > 0 {
			h = size
		}
	}
	return h
}

// line is d's best throughput as a series.
func (d design) line(label string) plots.Series {
	s := plots.Series{Label: label}
	for i, h := range d.sizes {
		if r := d.rate(i); r > 0 {
			s.Points = append(s.Points, plots.Point{X: float64(h), Y: r})
		}
	}
	return s
}

// reportDesigns draws Figure 6 and compares it with the paper's findings.
func reportDesigns(rep *study.Report, m *model.Machine) error {
	var sizes []int
	for h := 128; h <= 1792; h += 64 {
		sizes = append(sizes, h)
	}
	axis := plots.Axis{Title: "Layer size", Scale: plots.Linear, Format: quantity.Size}
	for h := 256; h <= 1792; h += 256 {
		axis.Places = append(axis.Places, float64(h))
	}
	rates := plots.Axis{Title: "Throughput (FLOP/s)", Scale: plots.Log}
	points := &plots.Chart{Title: "Diamos Figure 6: persistent layers on variants of the TitanX, predicted", X: axis, Y: rates,
		Subtitle: fmt.Sprintf("%s · one-gate layers · B=%d", m.Name, fig6Batch),
		Notes:    []string{"Each mark is one way to divide the recurrent matrix over multiprocessors and threads, with weights in registers. Of marks within 25 % of each other, one is drawn. The paper measured 2.8 TFLOP/s."}}
	lines := &plots.Chart{Title: "Diamos Figure 6: the best tiling of each variant, predicted", X: axis, Y: rates, Subtitle: points.Subtitle,
		Notes:  []string{"A line ends where the weights no longer fit into registers. Lines for twice the main-memory bandwidth lie on the base line. So do lines for more registers where the base has enough."},
		Panels: []plots.Panel{{}}}
	t := &table.Table{
		Title: fmt.Sprintf("Variants of the %s, minibatch %d", m.Name, fig6Batch),
		Columns: []table.Column{
			{Name: "Variant", Key: "variant"}, {Name: "change", Key: "what"},
			{Name: "mean", Key: "mean_flops_per_s", Right: true}, {Name: "×", Key: "gain", Right: true},
			{Name: "best", Key: "best_flops_per_s", Right: true}, {Name: "largest layer", Key: "largest", Right: true},
			{Name: "256 units ×", Key: "gain_256", Right: true}, {Name: "1152 units ×", Key: "gain_1152", Right: true},
		},
		Notes: []string{fmt.Sprintf("mean: best throughput averaged over %d layer sizes from %d to %d; a size that does not fit on chip counts as zero", len(sizes), sizes[0], sizes[len(sizes)-1])},
	}
	var all []design
	for _, v := range model.Variants() {
		d, err := designOf(m, v, sizes)
		if err != nil {
			return err
		}
		all = append(all, d)
		base := all[0]
		best := 0.0
		for i := range sizes {
			best = max(best, d.rate(i))
		}
		at := func(h int) table.Cell {
			i := slices.Index(sizes, h)
			return show.Ratio(d.rate(i) / base.rate(i))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(v.Name), table.Text(v.Doc),
			table.Number(d.mean(), quantity.SI(d.mean(), "FLOP/s")), show.Ratio(d.mean() / base.mean()),
			table.Number(best, quantity.SI(best, "FLOP/s")), table.Int(d.largest()), at(256), at(1152)})

		tilings := plots.Series{Label: "a tiling", Scatter: true}
		for i, h := range sizes {
			for _, r := range d.tilings[i] {
				tilings.Points = append(tilings.Points, plots.Point{X: float64(h), Y: r})
			}
		}
		peak := d.machine.FLOPS
		if v.Half {
			peak *= d.machine.Half
		}
		panel := plots.Panel{Title: v.Name, Series: []plots.Series{tilings, d.line("best tiling")},
			Guides: []plots.Guide{{Label: "peak " + quantity.SI(peak, "FLOP/s"), Y0: peak, Y1: peak}}}
		if v.Name == "base" {
			panel.Guides = append(panel.Guides, plots.Guide{Label: "paper: 2.8 TFLOP/s at 1152 units", Y0: paperPersistent, Y1: paperPersistent})
		}
		points.Panels = append(points.Panels, panel)
		lines.Panels[0].Series = append(lines.Panels[0].Series, d.line(v.Name))
	}
	rep.Tables = append(rep.Tables, t)
	rep.Add("diamos-fig6", points, nil)
	rep.Add("diamos-fig6-best", lines, nil)
	near, err := withoutDistance(m, sizes)
	if err != nil {
		return err
	}
	designFindings(rep, all, near/all[0].mean())
	return nil
}

// withoutDistance returns the mean throughput with twice the multiprocessors at the latencies of m.
func withoutDistance(m *model.Machine, sizes []int) (float64, error) {
	for _, v := range model.Variants() {
		if v.Name != "cores" {
			continue
		}
		twice := v.Of(m)
		for i := range twice.Levels {
			twice.Levels[i].C, twice.Levels[i].L = m.Levels[i].C, m.Levels[i].L
		}
		d, err := designOf(twice, model.Variants()[0], sizes)
		return d.mean(), err
	}
	return math.NaN(), fmt.Errorf("experiments: the model has no variant with more multiprocessors")
}

// designFindings compares the ranking of variants with the paper's. near is the gain by twice the
// multiprocessors if they are no further apart.
func designFindings(rep *study.Report, all []design, near float64) {
	base := all[0]
	by := map[string]design{}
	for _, d := range all {
		by[d.Name] = d
	}
	gain := func(name string) float64 { return by[name].mean() / base.mean() }
	order := []string{"half", "registers", "cores", "latency", "dram"}
	ranked := slices.Clone(order)
	slices.SortStableFunc(ranked, func(a, b string) int {
		switch {
		case gain(a) > gain(b):
			return -1
		case gain(a) < gain(b):
			return 1
		}
		return 0
	})
	var words []string
	for _, name := range ranked {
		words = append(words, fmt.Sprintf("%s %.2f×", name, gain(name)))
	}
	rank, same := "The paper gives the same ranking: 16-bit arithmetic, memory per multiprocessor, multiprocessors.", true
	if i := func(s string) int { return slices.Index(ranked, s) }; i("half") > i("registers") || i("registers") > i("cores") {
		rank, same = "The paper gives a different ranking: 16-bit arithmetic, memory per multiprocessor, multiprocessors.", false
	}
	i := slices.Index(base.sizes, 1152)
	small := slices.Index(base.sizes, 256)
	latency := by["latency"]
	if ranking := "16-bit arithmetic helps most, then memory per multiprocessor, then multiprocessors (section 5.1.4)"; same && near > gain("registers") {
		rep.Claims = append(rep.Claims, study.Claim{Paper: ranking, Here: strings.Join(words, ", "), Outcome: study.ComputedOpen,
			Why: fmt.Sprintf("the third place rests on the model's assumption of distances; without it, multiprocessors gain %.2f×", near)})
	} else {
		study.Computed(rep, ranking, strings.Join(words, ", "), same, "")
	}
	study.Computed(rep, "twice the main-memory bandwidth changes almost nothing (section 5.1.4)", fmt.Sprintf("%.2f×", gain("dram")), !estimate.Differ(gain("dram"), 1), "")
	rep.Findings = append(rep.Findings,
		"All rates of the variants are predicted, and the ranking too: no TitanX was measured here. The model's rates and sizes are those that the paper prints or those of the architecture. Its latencies follow from ratios that the paper prints. Nothing was fitted to Figure 6. How distance grows with the chip is assumed.",
		"Mean throughput over layer sizes: "+strings.Join(words, ", ")+". "+rank+" Multiprocessors rank third because of distance: twice as many need twice the chip area, where synchronization and latency take √2 times as long. This is an assumption of the model, not a number from the paper. "+fmt.Sprintf("Without it, multiprocessors gain %.2f×, and memory per multiprocessor %.2f×.", near, gain("registers")),
		fmt.Sprintf("Twice the main-memory bandwidth gives %.2f× the throughput: weights and states do not pass through main memory. The paper calls it unlikely to impact persistent kernels.", gain("dram")),
		fmt.Sprintf("Half the memory latency gains %.2f× at %d units and %.2f× at 1152. It makes smaller layers efficient, as the paper says.",
			latency.rate(small)/base.rate(small), base.sizes[small], latency.rate(i)/base.rate(i)),
		fmt.Sprintf("At 1152 units, the model predicts %s on the TitanX with tiling %s. The paper measured 2.80 TFLOP/s with 24×1 multiprocessors, %.2f× the prediction. This compares a model with a measurement, and the model's latencies follow from ratios that the paper prints. In the model, layers of up to %d units fit on chip. The paper says approximately 1200 in registers, and runs 1152.",
			quantity.SI(base.rate(i), "FLOP/s"), base.best[i].Tiling, 2.8e12/base.rate(i), base.largest()))
}

// reportPredicted sets the steps of the persistent technique on this machine
// beside what the model predicts of them.
func reportPredicted(rep *study.Report, recs []record.Record, here *model.Machine) {
	t := &table.Table{
		Title: "Step time on " + here.Name + ", predicted and measured",
		Columns: []table.Column{
			{Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
			{Name: "weights in", Key: "home"}, {Name: "predicted", Key: "predicted_s", Right: true},
			{Name: "measured", Key: "measured_s", Right: true}, {Name: "±", Key: "ci_percent", Right: true},
			{Name: "measured / predicted", Key: "ratio", Right: true}, {Name: "limit", Key: "limit"}, {Name: "cause, if more than 25 % off", Key: "why"},
		},
		Notes: []string{"machine: " + here.Source,
			"step: one time step, including the product of its small input",
			"measured: mean of the faster half of the samples; ±: half-width of the interval of their median"},
	}
	if here.GPU != nil {
		t.Notes = append(t.Notes, "predicted: the layer is divided as by the kernel that ran, if records name it")
	}
	var fitted, others nearness
	test := unfitted(record.Point{})
	var reasons []string // of the points further off
	counts := map[string]int{}
	panels := map[int]*plots.Panel{}
	for _, p := range pick.Points(recs) {
		rec := pick.Find(recs, "persistent", func(q record.Point) bool { return q == p })
		s, err := predictedStep(here, p, rec)
		if err != nil {
			rep.Findings = append(rep.Findings, fmt.Sprintf("%v: %v", p, err))
			continue
		}
		if panels[p.Batch] == nil {
			panels[p.Batch] = &plots.Panel{Title: fmt.Sprintf("Minibatch %d", p.Batch)}
		}
		add := func(label string, predicted bool, pt plots.Point) {
			panel := panels[p.Batch]
			i := slices.IndexFunc(panel.Series, func(s plots.Series) bool { return s.Label == label })
			if i < 0 {
				i = len(panel.Series)
				panel.Series = append(panel.Series, plots.Series{Label: label, Like: p.Cell, Reference: predicted, Scatter: !predicted})
			}
			panel.Series[i].Points = append(panel.Series[i].Points, pt)
		}
		x := float64(p.Hidden)
		add(p.Cell+", predicted", true, plots.Point{X: x, Y: s.Time})
		if rec == nil || rec.Samples == nil {
			add(p.Cell+", measured", false, plots.Point{X: x, Missing: true})
			continue
		}
		steps := float64(p.Steps)
		sec := search.Score(rec.Samples.Wall) / steps // the faster half, since the machine was probed undisturbed
		pt := plots.Point{X: x, Y: sec}
		if _, ok := rec.Stats.HalfWidth(); ok {
			pt.Lo, pt.Hi = *rec.Stats.Lo/steps, *rec.Stats.Hi/steps
		}
		add(p.Cell+", measured", false, pt)
		ratio := sec / s.Time
		why, near := "", math.Abs(ratio-1) <= 0.25
		if fittedTo(here) && !slices.ContainsFunc(test, func(q record.Point) bool { return q.Cell == p.Cell && q.Hidden == p.Hidden && q.Batch == p.Batch }) {
			fitted.add(near)
		} else {
			others.add(near)
		}
		if !near {
			why = deviationCause(rec, s, ratio)
			if counts[why]++; counts[why] == 1 {
				reasons = append(reasons, why)
			}
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Text(s.Home),
			table.Number(s.Time, quantity.SI(s.Time, "s")), table.Number(sec, quantity.SI(sec, "s")), show.HalfCell(rec),
			show.Ratio(ratio), table.Text(s.Limit), table.Text(why)})
	}
	if len(t.Rows) == 0 {
		return
	}
	rep.Tables = append(rep.Tables, t)
	predictedFigure(rep, recs, here, panels)
	score := nearnessText(fitted, others)
	rep.Yardstick("the model is within 25 % of the measured step time on this machine " + score)
	rep.Findings = append(rep.Findings, withinFinding(score, reasons, counts))
}

// A nearness counts points, and those where the model is near to what was measured.
type nearness struct{ near, all int }

func (n *nearness) add(near bool) {
	if n.all++; near {
		n.near++
	}
}

// fittedTo reports whether constants of the model were fitted to layers of this experiment.
func fittedTo(here *model.Machine) bool { return here.GPU != nil && here.GPU.Error != 0 }

// nearnessText says at how many points the model is near, apart for those to which its constants were
// fitted and for others, which it predicts.
func nearnessText(fitted, others nearness) string {
	switch {
	case fitted.all == 0:
		return fmt.Sprintf("at %d of %d points", others.near, others.all)
	case others.all == 0:
		return fmt.Sprintf("at %d of %d points; its constants were fitted to such layers, so these points are no test of it", fitted.near, fitted.all)
	}
	return fmt.Sprintf("at %d of %d points to which its constants were not fitted, and at %d of %d like those to which they were, which are no test of it", others.near, others.all, fitted.near, fitted.all)
}

// predictedFigure draws the panels of a report on predictions, a panel a minibatch.
func predictedFigure(rep *study.Report, recs []record.Record, here *model.Machine, panels map[int]*plots.Panel) {
	fig := &plots.Chart{Title: "Step time of persistent layers, predicted and measured", Subtitle: here.Name,
		X: plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Time of one step (s)", Scale: plots.Log,
			Format: quantity.Measure{Unit: "s"}.Tick},
		Notes: []string{"Dotted lines: the model of this machine, " + here.Source + "."}}
	for _, b := range slices.Sorted(maps.Keys(panels)) {
		for _, s := range panels[b].Series { // records are in the order of measuring
			slices.SortFunc(s.Points, func(a, b plots.Point) int { return cmp.Compare(a.X, b.X) })
		}
		fig.Panels = append(fig.Panels, *panels[b])
	}
	for _, p := range pick.Points(recs) {
		if x := float64(p.Hidden); !slices.Contains(fig.X.Places, x) {
			fig.X.Places = append(fig.X.Places, x)
		}
	}
	rep.Add("diamos-fig6-measured", fig, nil)
}

// withinFinding says how often the model was near, and what is known of the rest.
func withinFinding(score string, reasons []string, counts map[string]int) string {
	finding := fmt.Sprintf("The model is within 25 %% of the measured step time of persistent layers %s.", score)
	slices.SortStableFunc(reasons, func(a, b string) int { return counts[b] - counts[a] })
	for i, why := range reasons {
		reasons[i] = fmt.Sprintf("%s (%d)", why, counts[why])
	}
	if reasons != nil {
		finding += " The others: " + strings.Join(reasons, "; ") + "."
	}
	return finding
}
