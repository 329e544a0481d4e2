package experiments

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// appleyardGrid returns the grid of Figures 1 and 2.
func appleyardGrid(s Size) (hidden, batch []int, steps int) {
	if s == Quick {
		return []int{64, 128, 256, 512}, []int{8, 32}, 10
	}
	return []int{256, 512, 1024, 2048, 4096}, []int{32, 64, 128, 256}, 100
}

var appleyardFig1 = Experiment{
	ID: "appleyard-fig1", Title: "The optimization ladder over hidden size and minibatch: four layers, forward pass",
	Source: "Appleyard et al. 2016, Figure 1",
	Unlike: medianOfRuns,
	Parts: func(s Size, on Target) []Part {
		hidden, batch, steps := appleyardGrid(s)
		p := lstm4()
		p.Steps = steps
		one := p // 1 → 4 layers doubles throughput in some cases
		one.Layers = 1
		last := ladderSpecs(1)[len(ladderSpecs(1))-1]
		return append(onChip(product(p, hidden, batch), on.withGPU(ladderSpecs(4), slices.Concat(graphAndForms(4, gridForms(s)), withoutLaunches(4))...)),
			Part{product(one, hidden, batch), on.withGPU([]grid.Spec{last}, graphed(asGraph, last))})
	},
	Report: func(recs []record.Record, on Target) (*Report, error) {
		four, one := layers(recs, 4), layers(recs, 1)
		if len(four) == 0 {
			return nil, fmt.Errorf("experiments: no records of four layers")
		}
		rep := &Report{}
		rep.ladderFigures(four, on)
		rep.Tables = append(rep.Tables, gridTable(four, one))
		gains(rep, four, on)
		batchedInputs(rep, four)
		depthClaim(rep, four, one, on)
		gridClaims(rep, four, on)
		if on.GPU {
			rep.Findings = append(rep.Findings, vendorFinding(four, asGraph))
		}
		return rep, nil
	},
}

// gridTable has a row for each point of Figure 1.
func gridTable(four, one []record.Record) *table.Table {
	t := &table.Table{
		Title: "Stage 6: speed-up over naive, and throughput of four layers over one",
		Columns: []table.Column{
			{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
			{Name: "naive", Key: "naive_flops_per_s", Right: true}, {Name: "stage 6", Key: "stage6_flops_per_s", Right: true},
			{Name: "×", Key: "speedup", Right: true}, {Name: "best stage", Key: "best_stage"},
			{Name: "input batching ×", Key: "inputbatch", Right: true}, {Name: "overlap ×", Key: "overlap", Right: true},
			{Name: "4 layers / 1", Key: "layers", Right: true}, {Name: "throttled", Key: "throttled_records", Right: true},
		},
	}
	rungs := ladder(4)
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		stage := func(i int) *record.Record { return find(four, rungs[i].label, here) }
		naive, last := stage(0), stage(len(rungs)-1)
		if naive == nil || last == nil {
			continue
		}
		best := last
		for i := range rungs {
			if c := stage(i); c != nil && c.Seconds() < best.Seconds() {
				best = c
			}
		}
		single := find(one, last.Impl.Label, func(q record.Point) bool { return q.Hidden == p.Hidden && q.Batch == p.Batch })
		t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
			table.Number(naive.FLOPS(), quantity.SI(naive.FLOPS(), "FLOP/s")), table.Number(last.FLOPS(), quantity.SI(last.FLOPS(), "FLOP/s")),
			number(timesAsFast(naive, last).at, "%.2f"), table.Text(best.Impl.Label), number(timesAsFast(stage(4), stage(5)).at, "%.2f"),
			number(timesAsFast(stage(5), last).at, "%.2f"), number(throughput(single, last).at, "%.2f"), throttled(at(four, p))})
	}
	return t
}

// throttled is how many of recs were measured while the device's clock was held down.
func throttled(recs []record.Record) table.Cell {
	n := QualityOf(recs).Throttled
	return table.Number(float64(n), fmt.Sprintf("%d of %d", n, QualityOf(recs).Records))
}

// batchedInputs adds what batching inputs does. The paper finds it detrimental in many cases, which
// is no number, so this is a yardstick.
func batchedInputs(rep *Report, four []record.Record) {
	rungs := ladder(4)
	var faster, slower votes
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := timesAsFast(find(four, rungs[4].label, here), find(four, rungs[5].label, here)); e.known() {
			faster.add(atLeast(1).holds(e))
			slower.add(atMost(1).holds(e))
		}
	}
	if slower.all() == 0 {
		return
	}
	s := fmt.Sprintf("batching inputs in pairs is clearly slower at %d and clearly faster at %d of %d points", slower.yes, faster.yes, slower.all())
	rep.yardstick(s)
	finding := strings.ToUpper(s[:1]) + s[1:] + ". The paper finds it detrimental in many cases for minibatches other than 32, and gives no number."
	if other := otherKernel(four); other != "" {
		finding += " " + other
	}
	rep.Findings = append(rep.Findings, finding)
}

// depthClaim compares the throughput of four layers with that of one.
func depthClaim(rep *Report, four, one []record.Record, on Target) {
	const claim = "in some cases, four layers have twice the throughput of one"
	v, most := depth(four, one, ladder(4)[6].label, ladder(1)[6].label)
	if !most.known() {
		unmeasured(rep, claim, "one layer")
		return
	}
	why := depthLaunches(four, one, on)
	here := fmt.Sprintf("up to %s; over %.2f times at %v", most.times(), asMuch, v)
	claimAt(rep, on, claim, here, v, v.some(), why)
	rep.Findings = append(rep.Findings, "Throughput of four layers over one: "+here+". The paper reports twice in some cases, where one layer has little parallelism."+on.agree(v.some(), why, v.openness()))
}

// ladderFigures draws the stages over the grid and, on a GPU, the last one beside graphs and cuDNN,
// which the paper did not have.
func (rep *Report) ladderFigures(four []record.Record, on Target) {
	rungs := ladder(4)
	stage := func(r record.Record) bool {
		return slices.ContainsFunc(rungs, func(s rung) bool { return s.label == r.Impl.Label })
	}
	fig, err := plots.Lines(slices.DeleteFunc(slices.Clone(four), func(r record.Record) bool { return !stage(r) }),
		plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: forward, LSTM, four layers"})
	rep.add("appleyard-fig1", fig, err)
	if on.GPU {
		fig, err := plots.Lines(fastestForms(slices.DeleteFunc(slices.Clone(four), func(r record.Record) bool { return stage(r) && r.Impl.Label != rungs[len(rungs)-1].label })),
			plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: the last stage, without and with a graph, and cuDNN"})
		rep.add("appleyard-fig1-cudnn", fig, err)
	}
}

// gains adds the claim and the finding about the minibatch at which the ladder gains most.
func gains(rep *Report, four []record.Record, on Target) {
	const claim, paper = "the ladder gains most at minibatch 64", 64
	rungs := ladder(4)
	byBatch := map[int][]estimate{}
	var batches []int
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := timesAsFast(find(four, rungs[0].label, here), find(four, rungs[len(rungs)-1].label, here)); e.known() {
			if byBatch[p.Batch] == nil {
				batches = append(batches, p.Batch)
			}
			byBatch[p.Batch] = append(byBatch[p.Batch], e)
		}
	}
	if batches == nil {
		unmeasured(rep, claim, "naive or the last stage")
		return
	}
	var parts []string
	top, mean := batches[0], map[int]estimate{}
	for _, b := range batches {
		mean[b] = meanOf(byBatch[b])
		parts = append(parts, fmt.Sprintf("%s at minibatch %d", mean[b].times(), b))
		if mean[b].at > mean[top].at {
			top = b
		}
	}
	answers := []answer{answerOf(byBatch[paper] != nil)}
	for _, b := range batches {
		switch e := mean[paper]; {
		case b == paper || byBatch[paper] == nil:
		case mean[b].lo > e.hi:
			answers = append(answers, no)
		case mean[b].hi > e.lo:
			answers = append(answers, open)
		}
	}
	settle(rep, on, claim, fmt.Sprintf("most at minibatch %d, %s", top, mean[top].times()), both(answers...), naiveLaunches(four, on), "the intervals of two minibatches overlap")
	finding := "Speed-up of stage 6 over naive, geometric mean over hidden sizes: " + strings.Join(parts, ", ") + ". In the paper it is largest at minibatch 64 and falls with minibatch and hidden size."
	if why := naiveLaunches(four, on); why != "" {
		finding += " Here " + why + "."
	}
	rep.Findings = append(rep.Findings, finding)
}

// layers keeps the records of networks of n layers.
func layers(recs []record.Record, n int) []record.Record {
	var out []record.Record
	for _, r := range recs {
		if r.Point.Layers == n {
			out = append(out, r)
		}
	}
	return out
}

var appleyardWeightGrad = Experiment{
	ID: "appleyard-weightgrad", Title: "Weight gradients: one product after the propagation versus one per step",
	Source: "Appleyard et al. 2016, section 2.6",
	Unlike: medianOfRuns,
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
	Report: func(recs []record.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{
			Title: "Training, LSTM: one product per weight matrix after the propagation versus one per step",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "per step", Key: "per_step_s", Right: true}, {Name: "after", Key: "after_s", Right: true}, {Name: "×", Key: "speedup", Right: true},
			},
		}
		var gains []estimate
		for _, p := range points(recs) {
			here := func(q record.Point) bool { return q == p }
			a, b := find(recs, "per step", here), find(recs, "after", here)
			if a == nil || b == nil {
				continue
			}
			up := timesAsFast(a, b)
			gains = append(gains, up)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
				table.Number(a.Seconds(), quantity.SI(a.Seconds(), "s")), table.Number(b.Seconds(), quantity.SI(b.Seconds(), "s")), number(up.at, "%.2f")})
		}
		if len(gains) == 0 {
			return nil, fmt.Errorf("experiments: no point has records both per step and after the propagation")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Weight gradients after the propagation versus per step: training, LSTM, one layer"})
		rep.add("appleyard-weightgrad", fig, err)
		mean := meanOf(gains)
		claimOf(rep, on, "one large product after the propagation is faster (the paper gives no number)", mean.times()+" (geometric mean)", mean, atLeast(1), "")
		rep.Findings = append(rep.Findings, fmt.Sprintf("One product after the propagation makes training %s as fast (geometric mean). The paper gives no number; it says that one large product usually comes close to peak.", mean.times()))
		return rep, nil
	},
}
