package experiments

import (
	"fmt"
	"slices"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// diamosLayer returns the layer of Diamos et al. (2016): one gate, 1152 units. The paper ran it on a
// TitanX of 6.144 TFLOP/s.
func diamosLayer(s Size) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "forward", Hidden: 1152, Input: 1152, Batch: 4, Steps: 100, Layers: 1, Precision: "fp32"}
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

// persistentSpec is the paper's technique: weights on chip. packed says when weights are packed: 1
// in each pass, 2 ahead.
func persistentSpec(label string, packed int) grid.Spec {
	return spec(label, "persistent", knob.Params{"transposed": packed})
}

var diamosFig4 = Experiment{
	ID: "diamos-fig4", Title: "Persistent layer over time steps: the cost of start-up",
	Source: "Diamos et al. 2016, Figure 4",
	Unlike: "rates include the input product",
	Parts: func(s Size, on Target) []Part {
		p := diamosLayer(s)
		var pts []record.Point
		for steps := 1; steps <= 256; steps *= 2 {
			q := p
			q.Steps = steps
			pts = append(pts, q)
		}
		// Weights are arranged in each pass: that is what a start costs.
		return []Part{{pts, on.withGPU([]grid.Spec{persistentSpec("persistent", 1), gemmSpec("cudnnstyle", 1)}, vendors()...)}}
	},
	Report: func(recs []record.Record, on Target) (*Report, error) {
		rep := &Report{}
		t := &table.Table{Columns: []table.Column{
			{Name: "T", Key: "steps", Right: true}, {Name: "persistent", Key: "persistent_flops_per_s", Right: true},
			{Name: "of the best", Key: "share", Right: true}, {Name: "products", Key: "gemm_flops_per_s", Right: true}, {Name: "×", Key: "speedup", Right: true},
		}}
		var most float64
		for _, r := range recs {
			if r.Impl.Label == "persistent" && r.Status == record.OK {
				most = max(most, r.FLOPS())
			}
		}
		if most == 0 {
			return nil, fmt.Errorf("experiments: no records of the persistent technique")
		}
		half, nine := 0, 0
		var runs []*record.Record // of the persistent layer, by steps
		var best, at32 *record.Record
		for _, p := range points(recs) {
			here := func(q record.Point) bool { return q == p }
			r := find(recs, "persistent", here)
			if r != nil {
				runs = append(runs, r)
				if r.FLOPS() == most {
					best = r
				}
			}
			a, fast := rate(r)
			b, slow := rate(find(recs, "cudnnstyle", here))
			if p.Steps == 32 {
				at32 = r
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
		if err == nil {
			fig.Panels[0].Guides = append(fig.Panels[0].Guides, plots.Guide{Label: "paper: 2.8 TFLOP/s, most of it after about 30 steps", Y0: paperPersistent, Y1: paperPersistent})
		}
		rep.add("diamos-fig4", fig, err)
		rep.Findings = append(rep.Findings, fmt.Sprintf("Throughput reaches half of its maximum at %d steps and 90 %% at %d. The paper reaches most of it after about 30 steps.", half, nine)+startUp(runs))
		const most30 = "most of the throughput is reached after about 30 steps"
		if at32 == nil {
			unmeasured(rep, most30, "a run of 32 steps")
			return rep, nil
		}
		share := throughput(best, at32)
		claimOf(rep, on, most30, fmt.Sprintf("%s of the maximum at 32 steps, 90 %% at %d", share.by(100).text("%.0f", " %"), nine), share, atLeast(0.5), "")
		return rep, nil
	},
}

// startUp returns a sentence on what a run takes besides its steps, by the difference of its two
// longest runs. It is empty if they do not show it.
func startUp(runs []*record.Record) string {
	slices.SortFunc(runs, func(a, b *record.Record) int { return a.Point.Steps - b.Point.Steps })
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
