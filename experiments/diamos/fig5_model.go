package diamos

import (
	"fmt"
	"math"

	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// backwardShare is the part of an iteration that its backward pass takes: of three equal
// products of each weight, two are gradients, of the input and of the weight.
const backwardShare = 2.0 / 3

// layerBytes returns the bytes of one layer's gradients: of input and recurrent weights and of
// biases.
func layerBytes(p record.Point) float64 {
	h := float64(p.Hidden)
	return 4 * (2*h*h + 2*h)
}

// iteration returns an iteration of s on n devices. Only the last turn of a device hides sums.
func (s scaling) iteration(n int) (model.Iteration, bool) {
	t, ok := s.part(n)
	return model.Iteration{
		Compute: t.seconds, Backward: backwardShare * t.seconds / float64(max(1, t.times)),
		Layers: s.point.Layers, Bytes: layerBytes(s.point),
	}, ok
}

// fig5Paper checks by the model what the paper says of its own cluster: at 250 TFLOP/s, do its links
// hide the sums?
func fig5Paper(r *study.Report) {
	m, err := model.Load("titanx")
	if err != nil {
		r.Findings = append(r.Findings, "The paper's cluster is unknown: "+err.Error()+".")
		return
	}
	p := fig5Point(study.Full, fig5Minibatch)
	t := &table.Table{
		Title: "The paper's cluster, computed: sums over GPUs beside the backward pass",
		Columns: []table.Column{
			{Name: "GPUs", Key: "devices", Right: true}, {Name: "Link", Key: "link"}, {Name: "Gradients", Key: "gradient_bytes", Right: true},
			{Name: "Sums", Key: "sums_s", Right: true}, {Name: "Backward pass", Key: "backward_s", Right: true}, {Name: "Waiting", Key: "waiting_s", Right: true},
		},
		Notes: []string{
			"computed, not measured: an iteration runs at 250 TFLOP/s on 128 GPUs, and each of fewer GPUs is as fast",
			"links: those that the paper names, with the bandwidth of their standards",
		},
	}
	var share float64
	for _, n := range fig5Counts()[1:] {
		l, ok := m.Links.Across(n)
		if !ok {
			continue
		}
		s := scaling{point: p}
		compute := s.flops() / (fig5FLOPS / fig5Devices) / float64(n)
		it := model.Iteration{Compute: compute, Backward: backwardShare * compute, Layers: p.Layers, Bytes: layerBytes(p)}
		_, waiting := it.Over(l, n)
		sums := float64(p.Layers) * l.AllReduce(it.Bytes, n)
		share = waiting / compute
		t.Rows = append(t.Rows, []table.Cell{table.Int(n), table.Text(l.Name), table.Number(float64(p.Layers)*it.Bytes, quantity.SI(float64(p.Layers)*it.Bytes, "B")),
			table.Number(sums, quantity.SI(sums, "s")), table.Number(it.Backward, quantity.SI(it.Backward, "s")), table.Number(waiting, quantity.SI(waiting, "s"))})
	}
	r.Tables = append(r.Tables, t)
	here := fmt.Sprintf("by the model of a ring over its links, %d GPUs wait for sums for %.1f %% of an iteration", fig5Devices, 100*share)
	study.Computed(r, "the sums overlap completely with the backward pass (section 5.1.3)", here, share < 0.02, "")
	r.Findings = append(r.Findings,
		"The paper says that its system is fast enough to overlap the sums completely with the backward pass. "+show.Upper(here)+", since no backward pass is left to hide the sums of the lowest layer.",
		"The paper says that each of 16 GPUs has a minibatch of 64. But 512 sequences give each of 16 GPUs 32, or each of 8 GPUs 64. Its text prints one throughput, 250 TFLOP/s on 128 GPUs, for 61 layers. The 48 recurrent layers are measured here.")
}

// reportFig5Model draws the curve over devices that the links of this machine join.
func reportFig5Model(rep *study.Report, recs []record.Record, here *model.Machine) {
	all := scalings(recs)
	if len(all) == 0 {
		return // the report says so
	}
	if _, ok := here.Links.Across(2); !ok {
		rep.Findings = append(rep.Findings, fmt.Sprintf("The machine file of %s has no links, so nothing is modelled for several devices.", here.Name))
		return
	}
	p := all[0].point
	t := &table.Table{
		Title: fmt.Sprintf("Training by several devices, modelled: %d layers of %d units, minibatch %d", p.Layers, p.Hidden, fig5Minibatch),
		Columns: []table.Column{
			{Name: "Devices", Key: "devices", Right: true}, {Name: "Technique", Key: "technique"}, {Name: "At a time", Key: "at_a_time", Right: true}, {Name: "Link", Key: "link"},
			{Name: "Sums", Key: "sums_s", Right: true}, {Name: "Iteration", Key: "iteration_s", Right: true}, {Name: "waiting, %", Key: "waiting_percent", Right: true},
			{Name: "FLOP/s", Key: "flops_per_s", Right: true}, {Name: "of linear, %", Key: "linear_percent", Right: true}, {Name: "Paper, FLOP/s", Key: "paper_flops_per_s", Right: true},
		},
		Notes: []string{
			"modelled from one device's time on its part and a ring over the links, 2(n−1)/n·bytes/bandwidth + 2(n−1)·latency for each layer",
			"at a time: a device runs its part in turns of so many sequences and adds the gradients up; the fastest measured number counts",
			"waiting: for sums that the backward pass does not hide",
		},
	}
	t.Notes = append(t.Notes, "machine: "+here.Source)
	for _, l := range here.Links {
		t.Notes = append(t.Notes, fmt.Sprintf("%s: %s and %s a step; %s", l.Name, quantity.SI(l.B, "B/s"), quantity.SI(l.L, "s"), l.Source))
	}
	ch := &plots.Chart{Title: "Diamos Figure 5: throughput over devices, modelled from one", Subtitle: fmt.Sprintf("%s · %s · H=%d · L=%d · T=%d · minibatch %d", here.Name, p.Cell, p.Hidden, p.Layers, p.Steps, fig5Minibatch),
		X: plots.Axis{Title: "Devices", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Throughput of all devices (FLOP/s)", Scale: plots.Log},
		Notes: []string{"Lines are modelled: one device's time on its part, in turns if it is large, and sums over links that overlap with the backward pass."}}
	var panel plots.Panel
	for _, n := range fig5Counts() {
		ch.X.Places = append(ch.X.Places, float64(n))
	}
	for _, s := range all {
		panel.Series = append(panel.Series, fig5Curve(rep, t, here, s))
	}
	if replicas := replicaSeries(recs); len(replicas.Points) > 0 {
		panel.Series = append(panel.Series, replicas)
		ch.Notes = append(ch.Notes, fmt.Sprintf("Replicas are measured, with a minibatch of %d in all.", fig5Shared))
	}
	panel.Guides = []plots.Guide{{Label: "paper: 250 TFLOP/s on 128 TitanX", Y0: fig5FLOPS, Y1: fig5FLOPS}}
	if base := all[0].alone(); !math.IsNaN(base) {
		panel.Guides = append(panel.Guides, plots.Guide{Label: "linear", X0: 1, Y0: base, X1: fig5Devices, Y1: base * fig5Devices})
	}
	ch.Panels = []plots.Panel{panel}
	rep.Tables = append(rep.Tables, t)
	rep.Add("diamos-fig5", ch, nil)
	fig5Modelled(rep, here, all)
}

// alone is the throughput of one device with the whole minibatch, in turns; NaN if no part was
// measured that is larger than each of 16 devices has.
func (s scaling) alone() float64 {
	if !s.beyond() {
		return math.NaN()
	}
	return s.rate(1)
}

// fig5Curve adds the rows of a technique, and returns its modelled series.
func fig5Curve(r *study.Report, t *table.Table, here *model.Machine, s scaling) plots.Series {
	curve := plots.Series{Label: s.label + ", modelled", Like: s.label}
	for _, n := range fig5Counts() {
		it, ok := s.iteration(n)
		l, joined := here.Links.Across(n)
		part, _ := s.part(n)
		if !ok || !joined || part.times > 1 && !s.beyond() {
			continue
		}
		seconds, waiting := it.Over(l, n)
		rate := s.flops() / seconds
		all := float64(it.Layers) * l.AllReduce(it.Bytes, n)
		name, sums := l.Name, table.Number(all, quantity.SI(all, "s"))
		if n == 1 {
			name, sums = "none", show.Missing()
		}
		curve.Points = append(curve.Points, plots.Point{X: float64(n), Y: rate})
		paper := show.Missing()
		if n == fig5Devices && s.label == "persistent" {
			paper = table.Number(fig5FLOPS, quantity.SI(fig5FLOPS, "FLOP/s"))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Int(n), table.Text(s.label), table.Int(part.sequences), table.Text(name), sums, table.Number(seconds, quantity.SI(seconds, "s")),
			show.Number(100*waiting/seconds, "%.1f"), table.Number(rate, quantity.SI(rate, "FLOP/s")), show.Number(100*rate/s.alone()/float64(n), "%.0f"), paper})
	}
	return curve
}

// replicaSeries are the measured replicas of this machine.
func replicaSeries(recs []record.Record) plots.Series {
	s := plots.Series{Label: "persistent, replicas measured", Like: "persistent", Scatter: true}
	for _, n := range replicaCounts(study.Target{GPU: true}) {
		if rec := replicasRun(recs, n); rec != nil {
			s.Points = append(s.Points, show.RatePoint(float64(n), rec))
		}
	}
	return s
}

// fig5Modelled says what the model gives for the most devices.
func fig5Modelled(r *study.Report, here *model.Machine, all []scaling) {
	for _, s := range all {
		l, joined := here.Links.Across(fig5Devices)
		it, ok := s.iteration(fig5Devices)
		if !ok || !joined {
			continue
		}
		seconds, waiting := it.Over(l, fig5Devices)
		said := fmt.Sprintf("Modelled over %s, %d devices reach %s by %s", l.Name, fig5Devices, quantity.SI(s.flops()/seconds, "FLOP/s"), s.label)
		if base := s.alone(); !math.IsNaN(base) {
			said += fmt.Sprintf(", %.0f %% of linear", 100*s.flops()/seconds/base/fig5Devices)
		}
		r.Findings = append(r.Findings, fmt.Sprintf("%s, and wait for sums for %.0f %% of the time.", said, 100*waiting/seconds))
	}
}
