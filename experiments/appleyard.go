package experiments

import (
	"fmt"
	"math"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// The ladder of Appleyard et al. (2016), Table 1: LSTM of 512 units, batch 64,
// four layers on an M40.
type rung struct {
	label string
	knobs knob.Params // nil: the naive technique
	paper float64     // µs per cell
	up    float64     // speed-up that the paper prints
	cpu   reason      // what a CPU makes of the step, where that differs from the paper
	gpu   reason      // what a GPU of today makes of it
}

// A reason explains why a step gains more than the paper's or, if not more, less.
type reason struct {
	text string
	more bool
}

func more(text string) reason { return reason{text, true} }
func less(text string) reason { return reason{text, false} }

func ladder(layers int) []rung {
	at := func(streams, fused, transposed, batch, overlap int) knob.Params {
		return knob.Params{"grouped": 1, "streams": streams, "fused": fused, "transposed": transposed, "inputbatch": batch, "overlap": overlap}
	}
	return []rung{
		{"0 naive", nil, 777, 1.0, reason{}, reason{}},
		{"1 grouped", at(1, 0, 0, 1, 0), 400, 1.9, less("a product of one gate already fills the cores, so grouping saves the repeated reading of the input and little else"), less("four products of a step become one, but most operations are point-wise, and those stay")},
		{"2 streamed", at(2, 0, 0, 1, 0), 280, 2.8, less("there are no idle cores for a second stream to use: a product is split over all of them, and streams only take turns"), less("one thread of the host starts everything, so that a second stream has little to overlap")},
		{"3 fused", at(2, 1, 0, 1, 0), 146, 5.3, less("an operation costs a fraction of a microsecond to start instead of several, so what fusing saves is the traffic of intermediates through the caches"), more("one launch of eight is left, and starting them was most of the time")},
		{"4 transposed", at(2, 1, 1, 1, 0), 125, 6.2, more("the transposition also arranges the weights in the panels that the kernels read, which each product does anew without it: the largest step on a CPU at small batches"), more("packed weights are stored as a kernel of this program's reads them, which forms a product of few rows on tensor cores with the cell in the same launch; the library's products of either order are about as fast as each other")},
		{"5 inputs ×2", at(2, 1, 1, 2, 0), 119, 6.5, more("two steps' inputs share one reading of the input weights"), less("this saves one launch in four, of which none limits a step alone any more")},
		{"6 overlapped", at(2*layers, 1, 1, 2, 1), 70, 11.1, less("the cores are busy already: what the wave could still win is the time at barriers, and it pays with caches shared by several layers' weights"), less("the wave has up to four layers' operations to overlap, but one thread hands them all over: replayed as a graph they start without it")},
	}
}

func ladderSpecs(layers int) []grid.Spec {
	var specs []grid.Spec
	for _, r := range ladder(layers) {
		if r.knobs == nil {
			specs = append(specs, spec(r.label, "naive", nil))
		} else {
			specs = append(specs, spec(r.label, "cudnnstyle", r.knobs))
		}
	}
	return specs
}

// asGraph is the label of the last stage replayed as a graph.
const asGraph = "6 as a graph"

// beyond are what the paper could not yet set beside its ladder: the last stage
// replayed as a graph, and what became of the library that the paper is of.
func beyond(layers int) []grid.Spec {
	specs := ladderSpecs(layers)
	return append([]grid.Spec{graphed(asGraph, specs[len(specs)-1])}, vendors()[0])
}

func lstm4() results.Point {
	return results.Point{Cell: "lstm", Pass: "forward", Hidden: 512, Input: 512, Batch: 64, Steps: 100, Layers: 4, Precision: "fp32"}
}

var appleyardTable1 = Experiment{
	ID: "appleyard-table1", Title: "The ladder: LSTM forward, stage on top of stage",
	Source: "Appleyard et al. 2016, Table 1",
	Parts: func(s Size, on Target) []Part {
		p := lstm4()
		if s == Quick {
			p.Steps = 20
			return []Part{{[]results.Point{p}, on.beside(ladderSpecs(p.Layers), beyond(p.Layers)...)}}
		}
		long := p
		long.Steps = 1000 // the text of section 2.5 says 1000 steps, the caption 100
		return []Part{{[]results.Point{p, long}, on.beside(ladderSpecs(p.Layers), beyond(p.Layers)...)}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		for _, p := range points(recs) {
			reportLadder(rep, recs, p, on)
		}
		if len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of the ladder")
		}
		return rep, nil
	},
}

func reportLadder(rep *Report, recs []results.Record, p results.Point, on Target) {
	here := func(q results.Point) bool { return q == p }
	rungs := ladder(p.Layers)
	base := find(recs, rungs[0].label, here)
	t := &table.Table{
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
	cells := float64(p.Layers * p.Steps)
	if on.GPU {
		for _, s := range beyond(p.Layers) {
			rungs = append(rungs, rung{label: s.Label})
		}
	}
	var stages []plots.Stage
	var noisy []string
	var before *results.Record
	for i, r := range rungs {
		rec := find(recs, r.label, here)
		stages = append(stages, plots.Stage{Label: r.label, Paper: r.up})
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
		half := math.NaN()
		if w, ok := rec.Stats.HalfWidth(); ok {
			half = 100 * w
		}
		row = append(row, number(rec.Seconds()/cells*1e6, "%.0f"), number(half, "%.1f %%"),
			table.Number(rec.FLOPS(), quantity.SI(rec.FLOPS(), "FLOP/s")),
			number(up, "%.1f"), number(here, "%.2f"), number(step, "%.2f"), number(own, "%.2f"))
		t.Rows = append(t.Rows, row)
		if i > 0 && !math.IsNaN(own) && !math.IsNaN(step) && differ(own, step) {
			if lo, hi := span(before, rec); lo <= step && step <= hi || lo < 1/1.15 && hi > 1.15 {
				noisy = append(noisy, r.label)
			} else {
				rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d, stage %s: ×%.2f here, ×%.2f in the paper.%s", p.Steps, r.label, own, step, r.explain(own > step, on)))
			}
		}
		before = rec
	}
	if noisy != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: intervals are too wide, or rounds too few, to tell what %s changed; run again with more rounds when nothing else runs.", p.Steps, strings.Join(noisy, ", ")))
	}
	rep.Tables = append(rep.Tables, t)
	top := ladder(p.Layers)[len(ladder(p.Layers))-1]
	last := find(recs, top.label, here)
	if base != nil && last != nil {
		rep.Findings = append(rep.Findings, fmt.Sprintf("T=%d: the whole ladder is ×%.2f here, ×%.1f in the paper.", p.Steps, base.Seconds()/last.Seconds(), top.up))
	}
	if graph := find(recs, asGraph, here); graph != nil && last != nil {
		s := fmt.Sprintf("T=%d: replaying the last stage as a graph, which the paper's GPU could not, makes it ×%.2f as fast", p.Steps, last.Seconds()/graph.Seconds())
		if v := find(recs, "cudnn", here); v != nil {
			s += fmt.Sprintf(", ×%.2f of cuDNN's standard algorithm as a graph", v.Seconds()/graph.Seconds())
		}
		rep.Findings = append(rep.Findings, s+".")
	}
	fig, err := plots.Ladder(at(recs, p), stages, plots.Spec{Machine: on.Name,
		Title: fmt.Sprintf("Appleyard's ladder, %d steps: speed-up over the naive form", p.Steps)})
	rep.add(fmt.Sprintf("appleyard-table1-T%d", p.Steps), fig, err)
}

// explain is the sentence that explains a step that gains more than the paper's,
// or less; none where what r has explains the opposite.
func (r rung) explain(above bool, on Target) string {
	why, place := r.cpu, "On a CPU"
	if on.GPU {
		why, place = r.gpu, "On this GPU"
	}
	if why.text == "" || why.more != above {
		return ""
	}
	return fmt.Sprintf(" %s %s.", place, why.text)
}

// missing is a cell without a value: a dash in tables, null in data.
func missing() table.Cell { return table.Cell{Text: "–"} }

// number is a cell of a value that may be unknown.
func number(v float64, format string) table.Cell {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return missing()
	}
	return table.Number(v, fmt.Sprintf(format, v))
}

// span is the range of the speed-up from a to b that their intervals allow.
func span(a, b *results.Record) (lo, hi float64) {
	if a.Stats.Lo == nil || b.Stats.Lo == nil {
		return 0, math.Inf(1)
	}
	return *a.Stats.Lo / *b.Stats.Hi, *a.Stats.Hi / *b.Stats.Lo
}

// differ reports whether a measured factor tells another story than the
// paper's: it lies more than 15 % away.
func differ(here, paper float64) bool { return math.Abs(math.Log(here/paper)) > math.Log(1.15) }

// clearly reports whether a factor is a gain that wants a reason.
func clearly(gain float64) bool { return gain > 1 && differ(gain, 1) }

// at keeps the records of one point.
func at(recs []results.Record, p results.Point) []results.Record {
	var out []results.Record
	for _, r := range recs {
		if r.Point == p {
			out = append(out, r)
		}
	}
	return out
}

// grids of Figures 1 and 2.
func appleyardGrid(s Size) (hidden, batch []int, steps int) {
	if s == Quick {
		return []int{64, 128, 256, 512}, []int{8, 32}, 10
	}
	return []int{256, 512, 1024, 2048, 4096}, []int{32, 64, 128, 256}, 100
}

var appleyardFig1 = Experiment{
	ID: "appleyard-fig1", Title: "The ladder over hidden size and minibatch, four layers, forward",
	Source: "Appleyard et al. 2016, Figure 1",
	Parts: func(s Size, on Target) []Part {
		hidden, batch, steps := appleyardGrid(s)
		p := lstm4()
		p.Steps = steps
		one := p // 1 → 4 layers doubles throughput in some cases
		one.Layers = 1
		return []Part{
			{product(p, hidden, batch), on.beside(ladderSpecs(4), beyond(4)...)},
			{product(one, hidden, batch), ladderSpecs(1)[len(ladderSpecs(1))-1:]},
		}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		four, one := layers(recs, 4), layers(recs, 1)
		if len(four) == 0 {
			return nil, fmt.Errorf("experiments: no records of four layers")
		}
		rep := &Report{}
		fig, err := plots.Lines(four, plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: forward, LSTM, four layers"})
		rep.add("appleyard-fig1", fig, err)
		rungs := ladder(4)
		first, last := rungs[0].label, rungs[len(rungs)-1].label
		t := &table.Table{
			Title: "Stage 6 over naive, and four layers over one (stage 6)",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "naive", Key: "naive_flops_per_s", Right: true}, {Name: "stage 6", Key: "stage6_flops_per_s", Right: true},
				{Name: "×", Key: "speedup", Right: true}, {Name: "best stage", Key: "best_stage"},
				{Name: "batching inputs ×", Key: "inputbatch", Right: true}, {Name: "overlap ×", Key: "overlap", Right: true},
				{Name: "4 layers / 1", Key: "layers", Right: true},
			},
		}
		gain := map[int][]float64{}
		hurts, pairs, doubles, deep := 0, 0, 0, 0
		for _, p := range points(four) {
			here := func(q results.Point) bool { return q == p }
			a, b := find(four, first, here), find(four, last, here)
			if a == nil || b == nil {
				continue
			}
			up := a.Seconds() / b.Seconds()
			gain[p.Batch] = append(gain[p.Batch], up)
			best := b
			for _, r := range rungs {
				if c := find(four, r.label, here); c != nil && c.Seconds() < best.Seconds() {
					best = c
				}
			}
			batching, overlap, layersUp := math.NaN(), math.NaN(), math.NaN()
			four4, five := find(four, rungs[4].label, here), find(four, rungs[5].label, here)
			if four4 != nil && five != nil {
				batching = four4.Seconds() / five.Seconds()
				pairs++
				if batching < 0.98 {
					hurts++
				}
			}
			if five != nil {
				overlap = five.Seconds() / b.Seconds()
			}
			single := find(one, last, func(q results.Point) bool { return q.Hidden == p.Hidden && q.Batch == p.Batch })
			if single != nil {
				layersUp = b.FLOPS() / single.FLOPS()
				deep++
				if layersUp > 1.5 {
					doubles++
				}
			}
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
				table.Number(a.FLOPS(), quantity.SI(a.FLOPS(), "FLOP/s")), table.Number(b.FLOPS(), quantity.SI(b.FLOPS(), "FLOP/s")),
				number(up, "%.2f"), table.Text(best.Impl.Label), number(batching, "%.2f"), number(overlap, "%.2f"), number(layersUp, "%.2f")})
		}
		rep.Tables = append(rep.Tables, t)
		var parts []string
		for _, p := range points(four) {
			if g := gain[p.Batch]; g != nil {
				parts = append(parts, fmt.Sprintf("×%.2f at batch %d", geomean(g), p.Batch))
				delete(gain, p.Batch)
			}
		}
		if parts != nil {
			rep.Findings = append(rep.Findings, "Gain of stage 6 over naive, geometric mean over hidden sizes: "+strings.Join(parts, ", ")+". The paper: largest at minibatch 64, falling with minibatch and hidden size.")
		}
		if pairs > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Batching inputs in pairs costs more than 2 %% at %d of %d points. The paper: detrimental in many cases for minibatches other than 32.", hurts, pairs))
		}
		if deep > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Four layers reach more than 1.5 times the throughput of one at %d of %d points. The paper: up to twice, where there is little parallelism%s", doubles, deep, on.say("; on a CPU one layer fills the cores, and what more layers change is how many weights compete for the caches.", ".")))
		}
		if on.GPU {
			rep.Findings = append(rep.Findings, vendorFinding(four, asGraph))
		}
		return rep, nil
	},
}

// layers keeps the records of networks of so many layers.
func layers(recs []results.Record, n int) []results.Record {
	var out []results.Record
	for _, r := range recs {
		if r.Point.Layers == n {
			out = append(out, r)
		}
	}
	return out
}

func geomean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(len(v)))
}

var appleyardFig2 = Experiment{
	ID: "appleyard-fig2", Title: "Forward and backward of single-gate RNN, GRU and LSTM, four layers",
	Source: "Appleyard et al. 2016, Figure 2",
	Parts: func(s Size, on Target) []Part {
		hidden, batch, steps := appleyardGrid(s)
		rungs := ladder(4)
		best := []grid.Spec{spec("cudnnstyle", "cudnnstyle", rungs[len(rungs)-1].knobs)}
		if on.GPU {
			best = append([]grid.Spec{graphed(best[0].Label, best[0])}, vendors()[0])
		}
		var parts []Part
		for _, cell := range []string{"rnn-tanh", "gru", "lstm"} {
			for _, pass := range []string{"forward", "train"} {
				p := lstm4()
				p.Cell, p.Pass, p.Steps = cell, pass, steps
				parts = append(parts, Part{product(p, hidden, batch), best})
			}
		}
		return parts
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{
			Title: "Forward, and backward with weight gradients (training less forward), FLOP/s",
			Columns: []table.Column{
				{Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "forward", Key: "forward_flops_per_s", Right: true}, {Name: "backward", Key: "backward_flops_per_s", Right: true},
				{Name: "backward / forward", Key: "ratio", Right: true},
			},
		}
		var ratios []float64
		for _, p := range points(recs) {
			if p.Pass != "forward" {
				continue
			}
			q := p
			q.Pass = "train"
			f := find(recs, "cudnnstyle", func(x results.Point) bool { return x == p })
			b := find(recs, "cudnnstyle", func(x results.Point) bool { return x == q })
			if f == nil || b == nil {
				continue
			}
			back := float64(b.Work.Flops-f.Work.Flops) / (b.Seconds() - f.Seconds())
			t.Rows = append(t.Rows, []table.Cell{table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch),
				table.Number(f.FLOPS(), quantity.SI(f.FLOPS(), "FLOP/s")), table.Number(back, quantity.SI(back, "FLOP/s")),
				number(back/f.FLOPS(), "%.2f")})
			if back > 0 {
				ratios = append(ratios, back/f.FLOPS())
			}
		}
		rep.Tables = append(rep.Tables, t)
		for _, pass := range []string{"forward", "train"} {
			var some []results.Record
			for _, r := range recs {
				if r.Point.Pass == pass && r.Impl.Label == "cudnnstyle" {
					some = append(some, r)
				}
			}
			fig, err := plots.Lines(some, plots.Spec{X: "hidden", Panel: "batch", Series: "cell", Machine: on.Name,
				Title: map[string]string{"forward": "Appleyard Figure 2: forward, four layers, stage 6", "train": "Appleyard Figure 2: forward, backward and weight gradients, four layers, stage 6"}[pass]})
			rep.add("appleyard-fig2-"+pass, fig, err)
		}
		if len(ratios) > 0 {
			mean, why := geomean(ratios), ""
			if clearly(mean) {
				why = ": its weight gradients are the most efficient products of all"
			}
			rep.Findings = append(rep.Findings, fmt.Sprintf("The backward pass, weight gradients included, runs at ×%.2f the forward pass's FLOP/s (geometric mean)%s. The paper draws forward and backward near each other.", mean, why))
		}
		rep.Findings = append(rep.Findings, "The paper measures cuDNN 5 here, whose structure stage 6 is. "+
			on.say("The vendor's own library can be set beside it only on its GPUs.", vendorFinding(recs, "cudnnstyle")))
		return rep, nil
	},
}

var appleyardWeightGrad = Experiment{
	ID: "appleyard-weightgrad", Title: "Weight gradients in one product after the propagation, or one per step",
	Source: "Appleyard et al. 2016, section 2.6",
	Parts: func(s Size, on Target) []Part {
		hidden, batch, steps := appleyardGrid(s)
		if s == Full {
			hidden = []int{256, 512, 1024, 2048}
		}
		p := lstm4()
		p.Pass, p.Steps, p.Layers = "train", steps, 1
		at := func(perStep int) knob.Params { return knob.Params{"weightgrad": perStep} }
		return []Part{{product(p, hidden, batch), []grid.Spec{
			spec("per step", "cudnnstyle", at(1)), spec("after", "cudnnstyle", at(0)),
		}}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{
			Title: "Training, LSTM: one product per weight matrix after the propagation against one per step",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "per step", Key: "per_step_s", Right: true}, {Name: "after", Key: "after_s", Right: true}, {Name: "×", Key: "speedup", Right: true},
			},
		}
		var gains []float64
		for _, p := range points(recs) {
			here := func(q results.Point) bool { return q == p }
			a, b := find(recs, "per step", here), find(recs, "after", here)
			if a == nil || b == nil {
				continue
			}
			up := a.Seconds() / b.Seconds()
			gains = append(gains, up)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
				table.Number(a.Seconds(), quantity.SI(a.Seconds(), "s")), table.Number(b.Seconds(), quantity.SI(b.Seconds(), "s")), number(up, "%.2f")})
		}
		if len(gains) == 0 {
			return nil, fmt.Errorf("experiments: no records of both ways")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Weight gradients after the propagation or per step: training, LSTM, one layer"})
		rep.add("appleyard-weightgrad", fig, err)
		rep.Findings = append(rep.Findings, fmt.Sprintf("One product after the propagation makes training ×%.2f as fast (geometric mean). The paper gives no number, only that one large product usually achieves close to peak.", geomean(gains)))
		return rep, nil
	},
}
