package appleyard

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// appleyardGrid returns the grid of Figures 1 and 2.
func appleyardGrid(s study.Size) (hidden, batch []int, steps int) {
	if s == study.Quick {
		return []int{64, 128, 256, 512}, []int{8, 32}, 10
	}
	return []int{256, 512, 1024, 2048, 4096}, []int{32, 64, 128, 256}, 100
}

// Fig1 is the experiment appleyard-fig1.
var Fig1 = study.Experiment{
	ID: "appleyard-fig1", Title: "The optimization ladder over hidden size and minibatch: four layers, forward pass",
	Source: "Appleyard et al. 2016, Figure 1",
	Unlike: medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		hidden, batch, steps := appleyardGrid(s)
		p := form.LSTM4()
		p.Steps = steps
		one := p // 1 → 4 layers doubles throughput in some cases
		one.Layers = 1
		last := form.LadderSpecs(1)[len(form.LadderSpecs(1))-1]
		return append(form.OnChip(study.Product(p, hidden, batch), on.WithGPU(form.LadderSpecs(4), slices.Concat(form.GraphAndForms(4, form.GridForms(s)), withoutLaunches(4))...)),
			study.Part{Points: study.Product(one, hidden, batch), Specs: on.WithGPU([]grid.Spec{last}, study.Graphed(form.AsGraph, last))})
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		four, one := layers(recs, 4), layers(recs, 1)
		if len(four) == 0 {
			return nil, fmt.Errorf("experiments: no records of four layers")
		}
		rep := &study.Report{}
		ladderFigures(rep, four, on)
		rep.Tables = append(rep.Tables, gridTable(four, one))
		gains(rep, four, on)
		batchedInputs(rep, four)
		depthClaim(rep, four, one, on)
		gridClaims(rep, four, on)
		if on.GPU {
			rep.Findings = append(rep.Findings, form.VendorFinding(four, form.AsGraph))
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
	rungs := form.Ladder(4)
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		stage := func(i int) *record.Record { return pick.Find(four, rungs[i].Label, here) }
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
		single := pick.Find(one, last.Impl.Label, func(q record.Point) bool { return q.Hidden == p.Hidden && q.Batch == p.Batch })
		t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
			table.Throughput(naive), table.Throughput(last),
			show.Ratio(estimate.TimesAsFast(naive, last).At), table.Text(best.Impl.Label), show.Ratio(estimate.TimesAsFast(stage(4), stage(5)).At),
			show.Ratio(estimate.TimesAsFast(stage(5), last).At), show.Ratio(estimate.Throughput(single, last).At), throttled(pick.At(four, p))})
	}
	return t
}

// throttled is how many of recs were measured while the device's clock was held down.
func throttled(recs []record.Record) table.Cell {
	n := study.QualityOf(recs).Throttled
	return table.Number(float64(n), fmt.Sprintf("%d of %d", n, study.QualityOf(recs).Records))
}

// batchedInputs adds what batching inputs does. The paper finds it detrimental in many cases, which
// is no number, so this is a yardstick.
func batchedInputs(rep *study.Report, four []record.Record) {
	rungs := form.Ladder(4)
	var faster, slower estimate.Votes
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := estimate.TimesAsFast(pick.Find(four, rungs[4].Label, here), pick.Find(four, rungs[5].Label, here)); e.Known() {
			faster.Add(estimate.AtLeast(1).Holds(e))
			slower.Add(estimate.AtMost(1).Holds(e))
		}
	}
	if slower.All() == 0 {
		return
	}
	s := fmt.Sprintf("batching inputs in pairs is clearly slower at %d and clearly faster at %d of %d points", slower.Yes, faster.Yes, slower.All())
	rep.Yardstick(s)
	finding := strings.ToUpper(s[:1]) + s[1:] + ". The paper finds it detrimental in many cases for minibatches other than 32, and gives no number."
	if other := otherKernel(four); other != "" {
		finding += " " + other
	}
	rep.Findings = append(rep.Findings, finding)
}

// depthClaim compares the throughput of four layers with that of one.
func depthClaim(rep *study.Report, four, one []record.Record, on study.Target) {
	const claim = "in some cases, four layers have twice the throughput of one (section 2.5)"
	v, most := depth(four, one, form.Ladder(4)[6].Label, form.Ladder(1)[6].Label)
	if !most.Known() {
		study.NotMeasured(rep, claim, "one layer")
		return
	}
	why := depthLaunches(four, one, on)
	here := fmt.Sprintf("up to %s; over %.2f times at %v", most.Times(), asMuch, v)
	study.ClaimAt(rep, on, claim, here, v, v.Some(), why)
	rep.Findings = append(rep.Findings, "Throughput of four layers over one: "+here+". The paper reports twice in some cases, where one layer has little parallelism."+on.Agree(v.Some(), why, v.Openness()))
}

// ladderFigures draws the stages over the grid and, on a GPU, the last one beside graphs and cuDNN,
// which the paper did not have.
func ladderFigures(rep *study.Report, four []record.Record, on study.Target) {
	rungs := form.Ladder(4)
	stage := func(r record.Record) bool {
		return slices.ContainsFunc(rungs, func(s form.Rung) bool { return s.Label == r.Impl.Label })
	}
	fig, err := plots.Lines(slices.DeleteFunc(slices.Clone(four), func(r record.Record) bool { return !stage(r) }),
		plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: forward, LSTM, four layers"})
	rep.Add("appleyard-fig1", fig, err)
	if on.GPU {
		fig, err := plots.Lines(form.FastestForms(slices.DeleteFunc(slices.Clone(four), func(r record.Record) bool { return stage(r) && r.Impl.Label != rungs[len(rungs)-1].Label })),
			plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: the last stage, without and with a graph, and cuDNN"})
		rep.Add("appleyard-fig1-cudnn", fig, err)
	}
}

// gains adds the claim and the finding about the minibatch at which the ladder gains most.
func gains(rep *study.Report, four []record.Record, on study.Target) {
	const claim, paper = "the ladder gains most at minibatch 64 (section 2.5)", 64
	rungs := form.Ladder(4)
	byBatch := map[int][]estimate.Estimate{}
	var batches []int
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := estimate.TimesAsFast(pick.Find(four, rungs[0].Label, here), pick.Find(four, rungs[len(rungs)-1].Label, here)); e.Known() {
			if byBatch[p.Batch] == nil {
				batches = append(batches, p.Batch)
			}
			byBatch[p.Batch] = append(byBatch[p.Batch], e)
		}
	}
	if batches == nil {
		study.NotMeasured(rep, claim, "naive or the last stage")
		return
	}
	var parts []string
	top, mean := batches[0], map[int]estimate.Estimate{}
	for _, b := range batches {
		mean[b] = estimate.Mean(byBatch[b])
		parts = append(parts, fmt.Sprintf("%s at minibatch %d", mean[b].Times(), b))
		if mean[b].At > mean[top].At {
			top = b
		}
	}
	answers := []estimate.Answer{estimate.AnswerOf(byBatch[paper] != nil)}
	for _, b := range batches {
		switch e := mean[paper]; {
		case b == paper || byBatch[paper] == nil:
		case mean[b].Lo > e.Hi:
			answers = append(answers, estimate.No)
		case mean[b].Hi > e.Lo:
			answers = append(answers, estimate.Open)
		}
	}
	study.Settle(rep, on, claim, fmt.Sprintf("most at minibatch %d, %s", top, mean[top].Times()), estimate.Both(answers...), naiveLaunches(four, on), "the intervals of two minibatches overlap")
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

// WeightGrad is the experiment appleyard-weightgrad.
var WeightGrad = study.Experiment{
	ID: "appleyard-weightgrad", Title: "Weight gradients: one product after the propagation versus one per step",
	Source: "Appleyard et al. 2016, section 2.6",
	Unlike: medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		hidden, batch, steps := appleyardGrid(s)
		if s == study.Full {
			hidden = []int{256, 512, 1024, 2048}
		}
		p := form.LSTM4()
		p.Pass, p.Steps, p.Layers = "train", steps, 1
		at := func(perStep int) knob.Params { return knob.Params{"weightgrad": perStep} }
		return []study.Part{{Points: study.Product(p, hidden, batch), Specs: []grid.Spec{
			study.Spec("per step", "cudnnstyle", at(1)), study.Spec("after", "cudnnstyle", at(0)),
		}}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		t := &table.Table{
			Title: "Training, LSTM: one product per weight matrix after the propagation versus one per step",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "per step", Key: "per_step_s", Right: true}, {Name: "after", Key: "after_s", Right: true}, {Name: "×", Key: "speedup", Right: true},
			},
		}
		var gains []estimate.Estimate
		for _, p := range pick.Points(recs) {
			here := func(q record.Point) bool { return q == p }
			a, b := pick.Find(recs, "per step", here), pick.Find(recs, "after", here)
			if a == nil || b == nil {
				continue
			}
			up := estimate.TimesAsFast(a, b)
			gains = append(gains, up)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Hidden), table.Int(p.Batch),
				table.Time(a), table.Time(b), show.Ratio(up.At)})
		}
		if len(gains) == 0 {
			return nil, fmt.Errorf("experiments: no point has records both per step and after the propagation")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Weight gradients after the propagation versus per step: training, LSTM, one layer"})
		rep.Add("appleyard-weightgrad", fig, err)
		mean := estimate.Mean(gains)
		study.ClaimOf(rep, on, "one large product after the propagation is faster, without a number (section 2.6)", mean.Times()+" (geometric mean)", mean, estimate.AtLeast(1), "")
		rep.Findings = append(rep.Findings, fmt.Sprintf("One product after the propagation makes training %s as fast (geometric mean). The paper gives no number; it says that one large product usually comes close to peak.", mean.Times()))
		return rep, nil
	},
}
