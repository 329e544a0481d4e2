package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
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
	Parts: func(s Size, on Target) []Part {
		hidden, batch, steps := appleyardGrid(s)
		p := lstm4()
		p.Steps = steps
		one := p // 1 → 4 layers doubles throughput in some cases
		one.Layers = 1
		return append(onChip(product(p, hidden, batch), on.beside(ladderSpecs(4), besideLadder(4, gridForms(s))...)),
			Part{product(one, hidden, batch), ladderSpecs(1)[len(ladderSpecs(1))-1:]})
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		four, one := layers(recs, 4), layers(recs, 1)
		if len(four) == 0 {
			return nil, fmt.Errorf("experiments: no records of four layers")
		}
		rep := &Report{}
		rep.ladderFigures(four, on)
		rungs := ladder(4)
		first, last := rungs[0].label, rungs[len(rungs)-1].label
		t := &table.Table{
			Title: "Stage 6: speed-up over naive, and throughput of four layers over one",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
				{Name: "naive", Key: "naive_flops_per_s", Right: true}, {Name: "stage 6", Key: "stage6_flops_per_s", Right: true},
				{Name: "×", Key: "speedup", Right: true}, {Name: "best stage", Key: "best_stage"},
				{Name: "input batching ×", Key: "inputbatch", Right: true}, {Name: "overlap ×", Key: "overlap", Right: true},
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
		gains(rep, four, gain, on)
		if pairs > 0 {
			rep.claim(on, "batching inputs is often detrimental", fmt.Sprintf("slower at %d of %d points", hurts, pairs), 4*hurts >= pairs, "")
			rep.Findings = append(rep.Findings, fmt.Sprintf("Batching inputs in pairs is slower by more than 2 %% at %d of %d points. The paper finds it detrimental in many cases for minibatches other than 32.", hurts, pairs))
		}
		if deep > 0 {
			rep.claim(on, "four layers reach up to twice the throughput of one", fmt.Sprintf("more than 1.5 times at %d of %d points", doubles, deep), doubles > 0, on.say("one layer fills the cores of a CPU", ""))
			rep.Findings = append(rep.Findings, fmt.Sprintf("Four layers reach more than 1.5 times the throughput of one at %d of %d points. The paper reports up to twice, where one layer has little parallelism%s", doubles, deep, on.say(". On a CPU, one layer fills the cores, and more layers make more weights compete for the caches.", ".")))
		}
		gridClaims(rep, four, on)
		if on.GPU {
			rep.Findings = append(rep.Findings, vendorFinding(four, asGraph))
		}
		return rep, nil
	},
}

// ladderFigures draws the stages over the grid and, on a GPU, the last one beside graphs and cuDNN,
// which the paper did not have.
func (rep *Report) ladderFigures(four []results.Record, on Target) {
	rungs := ladder(4)
	stage := func(r results.Record) bool {
		return slices.ContainsFunc(rungs, func(s rung) bool { return s.label == r.Impl.Label })
	}
	fig, err := plots.Lines(slices.DeleteFunc(slices.Clone(four), func(r results.Record) bool { return !stage(r) }),
		plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: forward, LSTM, four layers"})
	rep.add("appleyard-fig1", fig, err)
	if on.GPU {
		fig, err := plots.Lines(fastestForms(slices.DeleteFunc(slices.Clone(four), func(r results.Record) bool { return stage(r) && r.Impl.Label != rungs[len(rungs)-1].label })),
			plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Appleyard Figure 1: the last stage, without and with a graph, and cuDNN"})
		rep.add("appleyard-fig1-cudnn", fig, err)
	}
}

// gains adds the claim and the finding about the minibatch at which the ladder gains most.
func gains(rep *Report, four []results.Record, gain map[int][]float64, on Target) {
	var parts []string
	top, topBatch := 0.0, 0
	for _, p := range points(four) {
		if g := gain[p.Batch]; g != nil {
			up := geomean(g)
			parts = append(parts, fmt.Sprintf("%.2f× at minibatch %d", up, p.Batch))
			delete(gain, p.Batch)
			if up > top {
				top, topBatch = up, p.Batch
			}
		}
	}
	if parts != nil {
		rep.claim(on, "the ladder gains most at minibatch 64", fmt.Sprintf("most at minibatch %d, %.2f×", topBatch, top), topBatch == 64, "")
		rep.Findings = append(rep.Findings, "Speed-up of stage 6 over naive, geometric mean over hidden sizes: "+strings.Join(parts, ", ")+". In the paper it is largest at minibatch 64 and falls with minibatch and hidden size.")
	}
}

// layers keeps the records of networks of n layers.
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

var appleyardWeightGrad = Experiment{
	ID: "appleyard-weightgrad", Title: "Weight gradients: one product after the propagation versus one per step",
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
			Title: "Training, LSTM: one product per weight matrix after the propagation versus one per step",
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
			return nil, fmt.Errorf("experiments: no point has records both per step and after the propagation")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "hidden", Panel: "batch", Machine: on.Name, Title: "Weight gradients after the propagation versus per step: training, LSTM, one layer"})
		rep.add("appleyard-weightgrad", fig, err)
		rep.claim(on, "one large product after the propagation is faster (the paper gives no number)", fmt.Sprintf("%.2f× (geometric mean)", geomean(gains)), geomean(gains) > 1, "")
		rep.Findings = append(rep.Findings, fmt.Sprintf("One product after the propagation makes training %.2f× as fast (geometric mean). The paper gives no number; it says that one large product usually comes close to peak.", geomean(gains)))
		return rep, nil
	},
}
