package experiments

import (
	"fmt"
	"maps"
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

// The layer of Diamos et al. (2016): one gate, 1152 units, on a TitanX of 6.144
// TFLOP/s.
func diamosLayer(s Size) results.Point {
	p := results.Point{Cell: "rnn-relu", Pass: "forward", Hidden: 1152, Input: 1152, Batch: 4, Steps: 100, Layers: 1, Precision: "fp32"}
	if s == Quick {
		p.Hidden, p.Input, p.Steps = 512, 512, 50
	}
	return p
}

// large is the layer size at which the paper finds matrix products efficient.
func large(s Size) int {
	if s == Quick {
		return 1152
	}
	return 2560
}

// persistentSpec and gemmSpec are the paper's rivals: weights on chip, and a
// product and a cell dispatched at each step. packed says when the weights are
// arranged for products, 1 in each pass and 2 ahead.
func persistentSpec(label string, packed int) grid.Spec {
	return spec(label, "persistent", knob.Params{"transposed": packed})
}

func gemmSpec(label string, packed int) grid.Spec {
	return spec(label, "cudnnstyle", knob.Params{"transposed": packed, "streams": 1, "overlap": 0, "inputbatch": 0})
}

// byLibrary is s with every product by the vendor's library in single precision.
// The paper's rivals are that library and Nervana's, section 5.1.
func byLibrary(label string, s grid.Spec) grid.Spec {
	k := knob.Params{"narrow": 2, "split": 2}
	maps.Copy(k, s.Knobs)
	return spec(label, s.Name, k)
}

// rate is a record's throughput as a cell, and as a number where there is one.
func rate(r *results.Record) (table.Cell, float64) {
	if r == nil {
		return missing(), math.NaN()
	}
	return table.Number(r.FLOPS(), quantity.SI(r.FLOPS(), "FLOP/s")), r.FLOPS()
}

var diamosFig3 = Experiment{
	ID: "diamos-fig3", Title: "Persistent layer versus matrix products over minibatch, forward pass",
	Source: "Diamos et al. 2016, Figure 3",
	Parts: func(s Size, on Target) []Part {
		p := diamosLayer(s)
		batch := []int{1, 2, 4, 8, 16, 32, 64}
		return []Part{
			{product(p, []int{p.Hidden}, batch), on.beside([]grid.Spec{persistentSpec("persistent", 2), gemmSpec("cudnnstyle", 2)},
				append([]grid.Spec{byLibrary("cudnnstyle, cuBLAS", gemmSpec("", 2)), graphed("cudnnstyle, graph", gemmSpec("", 2))}, vendors()...)...)},
			{product(p, []int{large(s)}, batch), []grid.Spec{gemmSpec("cudnnstyle, large layer", 2)}},
		}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{Columns: []table.Column{
			{Name: "B", Key: "batch", Right: true}, {Name: "persistent", Key: "persistent_flops_per_s", Right: true},
			{Name: "products", Key: "gemm_flops_per_s", Right: true}, {Name: "products, large layer", Key: "large_flops_per_s", Right: true},
			{Name: "×", Key: "speedup", Right: true}, {Name: "Paper, ×", Key: "paper_speedup", Right: true},
		}}
		if on.GPU {
			t.Columns = append(t.Columns, table.Column{Name: "products by cuBLAS", Key: "cublas_flops_per_s", Right: true}, table.Column{Name: "×", Key: "cublas_speedup", Right: true})
		}
		paper := map[int]float64{4: 2.8 / 0.099, 64: 2.8 / 1.5} // TFLOP/s in the text of sections 4, by Nervana's library, and 5.1.1
		var most, rate4, at4, library4, graph4 float64
		hidden, small := 0, 0
		for _, p := range points(recs) {
			here := func(q results.Point) bool { return q == p }
			r := find(recs, "persistent", here)
			if r == nil {
				continue
			}
			hidden = p.Hidden
			sameBatch := func(q results.Point) bool { return q.Batch == p.Batch }
			a, fast := rate(r)
			b, slow := rate(find(recs, "cudnnstyle", here))
			c, _ := rate(find(recs, "cudnnstyle, large layer", sameBatch))
			want := math.NaN()
			if v, ok := paper[p.Batch]; ok {
				want = v
			}
			row := []table.Cell{table.Int(p.Batch), a, b, c, number(fast/slow, "%.2f"), number(want, "%.1f")}
			d, library := rate(find(recs, "cudnnstyle, cuBLAS", here))
			if on.GPU {
				row = append(row, d, number(fast/library, "%.2f"))
			}
			t.Rows = append(t.Rows, row)
			if p.Batch == 4 {
				_, graph := rate(find(recs, "cudnnstyle, graph", here))
				rate4, at4, library4, graph4 = fast, fast/slow, fast/library, fast/graph
			}
			if fast > most {
				most, small = fast, p.Batch
			}
		}
		if hidden == 0 {
			return nil, fmt.Errorf("experiments: no records of the persistent technique")
		}
		t.Title = fmt.Sprintf("Diamos Figure 3: forward, one gate, %d units", hidden)
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "batch", Machine: on.Name, Title: "Diamos Figure 3: forward, persistent versus products"})
		rep.add("diamos-fig3", fig, err)
		if at4 > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("At minibatch 4, the persistent layer is %.2f× as fast as matrix products; the paper reports 28×.%s", at4, losses(at4, graph4, paper[4], on)))
			diamosClaims(rep, on, at4, library4, rate4/most)
		}
		if library4 > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("The paper's 28× is over products of Nervana's library; the paper also compares with NVIDIA's. At minibatch 4, the persistent layer here is %.2f× as fast as cuBLAS products. rnnbench's own skinny products run the cell in the same launch.", library4))
		}
		if on.GPU {
			rep.Findings = append(rep.Findings, vendorFinding(recs, "persistent"))
		}
		rep.Findings = append(rep.Findings, fmt.Sprintf("The persistent layer's throughput peaks at minibatch %d here; the paper reaches 2.8 TFLOP/s at minibatch 4. The paper's rates probably count the recurrent product alone. Ours also count the input product, which is one large product in both.", small))
		return rep, nil
	},
}

// diamosClaims sets Figure 3 beside the record: the factor over products at
// minibatch 4, that over cuBLAS's, 0 if unknown, and the share of the largest rate
// that minibatch 4 has.
func diamosClaims(r *Report, on Target, times, library, share float64) {
	here, why := fmt.Sprintf("%.2f×", times), "launches cost little here: an operation starts in a fraction of a microsecond"
	if on.GPU {
		why = ""
	}
	if library > 0 {
		here += fmt.Sprintf(", %.2f× over cuBLAS", library)
		why = "the paper's products use Nervana's library; the cause of the remaining difference over cuBLAS is not known"
	}
	r.claim(on, "persistent is 28 times as fast as products at minibatch 4", here, !differ(times, 28), why)
	r.claim(on, "throughput reaches 2.8 TFLOP/s at minibatch 4 and stays there", fmt.Sprintf("minibatch 4 reaches %.0f %% of the highest throughput", 100*share), share > 0.9,
		"")
}

// losses says what products lose to a persistent layer that is so many times as
// fast, and why it is less than the paper's: nothing where that is not so. As a
// graph they lose graph, NaN if that is unknown.
func losses(times, graph, paper float64, on Target) (why string) {
	if clearly(times) {
		why = " Products lose time to start-up and to rereading the weights at each step; the shares were not measured."
	}
	switch {
	case times >= paper:
	case !on.GPU:
		why += " On a CPU, an operation starts in a fraction of a microsecond. Each core computes the same share of a product at every step, so its private cache can also hold the weights for products."
	case clearly(times) && graph < times:
		why += fmt.Sprintf(" With products replayed as a graph, which avoids launches by the host, the factor is %.2f×.", graph)
	}
	return why
}

var diamosFig4 = Experiment{
	ID: "diamos-fig4", Title: "Persistent layer over time steps: the cost of start-up",
	Source: "Diamos et al. 2016, Figure 4",
	Parts: func(s Size, on Target) []Part {
		p := diamosLayer(s)
		var pts []results.Point
		for steps := 1; steps <= 256; steps *= 2 {
			q := p
			q.Steps = steps
			pts = append(pts, q)
		}
		// Weights are arranged in each pass: that is what a start costs.
		return []Part{{pts, on.beside([]grid.Spec{persistentSpec("persistent", 1), gemmSpec("cudnnstyle", 1)}, vendors()...)}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{Columns: []table.Column{
			{Name: "T", Key: "steps", Right: true}, {Name: "persistent", Key: "persistent_flops_per_s", Right: true},
			{Name: "of the best", Key: "share", Right: true}, {Name: "products", Key: "gemm_flops_per_s", Right: true}, {Name: "×", Key: "speedup", Right: true},
		}}
		var most float64
		for _, r := range recs {
			if r.Impl.Label == "persistent" && r.Status == results.OK {
				most = max(most, r.FLOPS())
			}
		}
		if most == 0 {
			return nil, fmt.Errorf("experiments: no records of the persistent technique")
		}
		half, nine := 0, 0
		var runs []*results.Record // of the persistent layer, by steps
		at32 := math.NaN()
		for _, p := range points(recs) {
			here := func(q results.Point) bool { return q == p }
			r := find(recs, "persistent", here)
			if r != nil {
				runs = append(runs, r)
			}
			a, fast := rate(r)
			b, slow := rate(find(recs, "cudnnstyle", here))
			if p.Steps == 32 {
				at32 = fast / most
			}
			t.Title = fmt.Sprintf("Diamos Figure 4: forward, one gate, %d units, minibatch %d", p.Hidden, p.Batch)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Steps), a, number(100*fast/most, "%.0f %%"), b, number(fast/slow, "%.2f")})
			if half == 0 && fast > most/2 {
				half = p.Steps
			}
			if nine == 0 && fast > 0.9*most {
				nine = p.Steps
			}
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(recs, plots.Spec{X: "steps", Machine: on.Name, Title: "Diamos Figure 4: forward over time steps, weights packed in each pass"})
		rep.add("diamos-fig4", fig, err)
		rep.Findings = append(rep.Findings, fmt.Sprintf("Throughput reaches half of its maximum at %d steps and 90 %% at %d. The paper reaches most of it after about 30 steps.", half, nine)+startUp(runs))
		if !math.IsNaN(at32) {
			rep.claim(on, "most of the throughput is reached after about 30 steps", fmt.Sprintf("%.0f %% of the maximum at 32 steps, 90 %% at %d", 100*at32, nine), at32 > 0.5, "")
		}
		return rep, nil
	},
}

// startUp is what a run takes besides its steps, by the difference of the two
// longest of runs: a sentence, empty where they do not tell.
func startUp(runs []*results.Record) string {
	slices.SortFunc(runs, func(a, b *results.Record) int { return a.Point.Steps - b.Point.Steps })
	if len(runs) < 2 {
		return ""
	}
	a, b := runs[len(runs)-2], runs[len(runs)-1]
	step := (b.Seconds() - a.Seconds()) / float64(b.Point.Steps-a.Point.Steps)
	start := b.Seconds() - step*float64(b.Point.Steps)
	if !(step > 0) || !(start > 0) {
		return ""
	}
	return fmt.Sprintf(" From the difference of the two longest runs, a step takes %s and start-up takes %s, as much as %.0f steps. The parts of start-up were not measured.",
		quantity.SI(step, "s"), quantity.SI(start, "s"), start/step)
}

// The labels of the barrier experiment. Recorded runs have the first.
const (
	meetings   = "meeting per step"
	operations = "operation per step"
	products   = "product and cell per step"
)

// named is recs with the barrier's label as readers see it. Records keep the label
// under which they were measured.
func named(recs []results.Record) []results.Record {
	recs = slices.Clone(recs)
	for i := range recs {
		if recs[i].Impl.Label == meetings {
			recs[i].Impl.Label = "barrier per step"
		}
	}
	return recs
}

var diamosBarrier = Experiment{
	ID: "diamos-barrier", Title: "Per-step barrier versus per-step dispatch",
	Source: "Diamos et al. 2016, sections 2.2 and 4.3",
	Parts: func(s Size, on Target) []Part {
		p := diamosLayer(Full)
		hidden := []int{32, 64, 128, 256, 512, 1024}
		p.Batch, p.Steps, p.Input = 1, 256, 16 // hardly any input product
		if s == Quick {
			hidden, p.Steps = hidden[:5], 128
		}
		var pts []results.Point
		for _, h := range hidden {
			q := p
			q.Hidden = h
			pts = append(pts, q)
		}
		return []Part{{pts, on.beside([]grid.Spec{
			persistentSpec(meetings, 2),
			spec(operations, "persistent", knob.Params{"transposed": 2, "inputbatch": 1}),
			gemmSpec(products, 2),
		}, graphed("product and cell, as a graph", gemmSpec("", 2)))}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		labels := []string{meetings, operations, products}
		t := &table.Table{Title: "Time of one step, one sequence, one gate: per-step barrier versus per-step dispatch", Columns: []table.Column{
			{Name: "H", Key: "hidden", Right: true}, {Name: "barrier", Key: "meeting_s", Right: true},
			{Name: "operation", Key: "operation_s", Right: true}, {Name: "product and cell", Key: "products_s", Right: true},
			{Name: "operation ×", Key: "operation_ratio", Right: true}, {Name: "product and cell ×", Key: "products_ratio", Right: true},
		}}
		var ratios []string
		var jumps []string       // sizes at which more units take less time
		var dispatched []float64 // what an operation takes, over a barrier
		last, lastHidden, at := math.NaN(), 0, 0
		for _, p := range points(recs) {
			row := []table.Cell{table.Int(p.Hidden)}
			sec := [3]float64{}
			for i, label := range labels {
				sec[i] = math.NaN()
				r := find(recs, label, func(q results.Point) bool { return q == p })
				if r == nil {
					row = append(row, missing())
					continue
				}
				sec[i] = r.Seconds() / float64(p.Steps)
				row = append(row, table.Number(sec[i], quantity.SI(sec[i], "s")))
			}
			t.Rows = append(t.Rows, append(row, number(sec[1]/sec[0], "%.2f"), number(sec[2]/sec[0], "%.2f")))
			if up := sec[2] / sec[0]; !math.IsNaN(up) {
				ratios = append(ratios, fmt.Sprintf("%.2f× at %d units (difference %s)", up, p.Hidden, quantity.SI(sec[2]-sec[0], "s")))
			}
			if up := sec[1] / sec[0]; !math.IsNaN(up) {
				dispatched, at = append(dispatched, up), p.Hidden
			}
			if p.Hidden > lastHidden && sec[2] < last/1.15 {
				jumps = append(jumps, fmt.Sprintf("From %d to %d units, the step time of product and cell falls from %s to %s. The records do not name the kernels, so the cause is not known.",
					lastHidden, p.Hidden, quantity.SI(last, "s"), quantity.SI(sec[2], "s")))
			}
			last, lastHidden = sec[2], p.Hidden
		}
		if len(ratios) == 0 {
			return nil, fmt.Errorf("experiments: no point has records of both a barrier and a product and cell per step")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(named(recs), plots.Spec{X: "hidden", Y: "time", Machine: on.Name, Title: "Diamos 4.3: per-step barrier versus per-step dispatch, one sequence, one gate"})
		rep.add("diamos-barrier", fig, err)
		rep.Findings = append(rep.Findings, "Time of a step with a dispatched product and cell, relative to a step with a barrier: "+strings.Join(ratios, ", ")+". In the paper, a global barrier has about a tenth of the latency of a kernel launch. Launches there cost 6 to 10 times the arithmetic of a step.")
		rep.Findings = append(rep.Findings, jumps...)
		if n := len(dispatched); n > 0 {
			times := dispatched[n-1] // the largest layer is nearest to the paper's 1152 units
			rep.claim(on, "a barrier has about a tenth of the latency of a launch",
				fmt.Sprintf("a step with a launched operation takes %.2f× the time of a step with a barrier at %d units, %.2f× to %.2f× over all sizes", times, at, slices.Min(dispatched), slices.Max(dispatched)),
				!differ(times, 10), on.say("dispatching an operation to CPU workers is not a kernel launch", ""))
		}
		return rep, nil
	},
}
