// Package diamos reproduces Diamos et al. (2016), "Persistent RNNs: Stashing Recurrent Weights
// On-Chip".
package diamos

import (
	"fmt"
	"slices"

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

// diamosLayer returns the layer of Diamos et al. (2016): one gate, 1152 units. The paper ran it on a
// TitanX of 6.144 TFLOP/s.
func diamosLayer(s study.Size) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "forward", Hidden: 1152, Input: 1152, Batch: 4, Steps: 100, Layers: 1, Precision: "fp32"}
	if s == study.Quick {
		p.Hidden, p.Input, p.Steps = 512, 512, 50
	}
	return p
}

// large is the layer size at which the paper finds matrix products efficient.
func large(s study.Size) int {
	if s == study.Quick {
		return 1152
	}
	return 2560
}

// persistentSpec is the paper's technique: weights on chip. packed says when weights are packed: 1
// in each pass, 2 ahead.
func persistentSpec(label string, packed int) grid.Spec {
	return study.Spec(label, "persistent", knob.Params{"transposed": packed})
}

// Fig4 is the experiment diamos-fig4.
var Fig4 = study.Experiment{
	ID: "diamos-fig4", Title: "Persistent layer over time steps: the cost of start-up",
	Source: "Diamos et al. 2016, Figure 4",
	Unlike: "rates include the input product",
	Parts: func(s study.Size, on study.Target) []study.Part {
		p := diamosLayer(s)
		var pts []record.Point
		for steps := 1; steps <= 256; steps *= 2 {
			q := p
			q.Steps = steps
			pts = append(pts, q)
		}
		// Weights are arranged in each pass: that is what a start costs.
		return []study.Part{{Points: pts, Specs: on.WithGPU([]grid.Spec{persistentSpec("persistent", 1), form.GemmSpec("cudnnstyle", 1)}, form.Vendors()...)}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
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
		for _, p := range pick.Points(recs) {
			here := func(q record.Point) bool { return q == p }
			r := pick.Find(recs, "persistent", here)
			if r != nil {
				runs = append(runs, r)
				if r.FLOPS() == most {
					best = r
				}
			}
			a, fast := show.Rate(r)
			b, slow := show.Rate(pick.Find(recs, "cudnnstyle", here))
			if p.Steps == 32 {
				at32 = r
			}
			t.Title = fmt.Sprintf("Diamos Figure 4: forward, one gate, %d units, minibatch %d", p.Hidden, p.Batch)
			t.Rows = append(t.Rows, []table.Cell{table.Int(p.Steps), a, show.Number(100*fast/most, "%.0f %%"), b, show.Ratio(fast / slow)})
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
		rep.Add("diamos-fig4", fig, err)
		rep.Findings = append(rep.Findings, fmt.Sprintf("Throughput reaches half of its maximum at %d steps and 90 %% at %d. The paper reaches most of it after about 30 steps.", half, nine)+startUp(runs))
		const most30 = "most of the throughput is reached after about 30 steps (section 5.1.2)"
		if at32 == nil {
			study.NotMeasured(rep, most30, "a run of 32 steps")
			return rep, nil
		}
		share := estimate.Throughput(best, at32)
		study.ClaimOf(rep, on, most30, fmt.Sprintf("%s of the maximum at 32 steps, 90 %% at %d", share.By(100).Text("%.0f", " %"), nine), share, estimate.AtLeast(0.5), "")
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
