package diamos

import (
	"fmt"
	"strconv"
	"strings"

	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// What the blog post says of divided layers.
const (
	dividedClaim = "a layer divided over 4 GPUs makes sense only when it is very large, for example with 5000 units (blog, section 2.3.3)"
	dividedOver  = 4
	dividedBatch = 64

	// Units: the measured size next to the paper's, a quarter of it, and the most that persistent kernels
	// are for.
	dividedAt     = 5120
	dividedSmall  = dividedAt / 4
	dividedMedium = 3616
)

// dividedCounts are the numbers of devices that share a layer.
func dividedCounts() []int { return []int{1, 2, dividedOver} }

// dividedSizes are layer sizes that grow by the root of two, in multiples of eight. So a layer has twice
// the weights of the size before, and half of it as many as the size before.
func dividedSizes(size study.Size) []int {
	if size == study.Quick {
		return []int{64, 88, 128, 184, 256, 360, 512}
	}
	return []int{640, 904, dividedSmall, 1808, 2560, dividedMedium, dividedAt, 7240}
}

// dividedPoint is the training of one layer.
func dividedPoint(size study.Size, hidden int) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "train", Hidden: hidden, Input: hidden, Layers: 1, Batch: dividedBatch, Steps: 32, Precision: "fp32"}
	if size == study.Quick {
		p.Steps = 20
	}
	return p
}

// exchangeTime is the time a step in which n devices exchange what each has a part of: states in the forward
// pass, gradients of states in the backward pass, and gradients of inputs once for all steps.
func exchangeTime(l model.Link, hidden, batch, steps, n int) float64 {
	bytes := 4 * float64(hidden) * float64(batch)
	return 2*l.AllGather(bytes, n) + l.AllGather(bytes*float64(steps), n)/float64(steps)
}

// A dividedLayer holds the seconds a step of a layer by 1, 2 and 4 devices; 0: unknown.
type dividedLayer struct {
	hidden    int
	by        map[int]float64
	who       string  // the fastest technique of one device
	exchanges float64 // of 4 devices, in seconds
}

// gain is how many times as fast n devices are as one.
func (d dividedLayer) gain(n int) float64 {
	if d.by[n] == 0 {
		return 0
	}
	return d.by[1] / d.by[n]
}

// pays reports whether n devices keep at least half of linear scaling.
func (d dividedLayer) pays(n int) bool { return d.gain(n) >= float64(n)/2 }

// paysFrom is the smallest of all from which on all pay over n devices; 0: the largest does not.
func paysFrom(all []dividedLayer, n int) (hidden int) {
	for i := len(all) - 1; i >= 0 && all[i].pays(n); i-- {
		hidden = all[i].hidden
	}
	return hidden
}

// alike reports whether a layer as large as the paper's pays over four devices, and one of a quarter
// of its units does not.
func alike(all []dividedLayer) bool {
	from := paysFrom(all, dividedOver)
	return from > dividedSmall && from <= dividedAt
}

// fromWord says from which size on layers pay over n devices.
func fromWord(all []dividedLayer, n int) string {
	if from := paysFrom(all, n); from > all[0].hidden {
		return fmt.Sprintf("from %d units on", from)
	} else if from > 0 {
		return fmt.Sprintf("at all sizes, from %d units on", from)
	}
	return fmt.Sprintf("not at the largest size, %d units", all[len(all)-1].hidden)
}

// shown is the layer as large as the paper's, or else the largest.
func shown(all []dividedLayer) dividedLayer {
	for _, d := range all {
		if d.hidden == dividedAt {
			return d
		}
	}
	return all[len(all)-1]
}

// dividedCause says why layers pay at other sizes than the paper's.
func dividedCause(all []dividedLayer) string {
	d := shown(all)
	return fmt.Sprintf("with %d units, exchanges between %d devices take %s, and a quarter of one device's step %s", d.hidden, dividedOver, quantity.SI(d.exchanges, "s"), quantity.SI(d.by[1]/dividedOver, "s"))
}

// paperDivided computes by its machine's peak and link from where the paper's division would pay.
func paperDivided(r *study.Report, m *model.Machine) {
	link, _ := m.Links.Across(dividedOver)
	var all []dividedLayer
	for _, h := range dividedSizes(study.Full)[2:] {
		p := dividedPoint(study.Full, h)
		one := trainFLOPs(p) / m.FLOPS
		x := exchangeTime(link, h, p.Batch, p.Steps, dividedOver)
		all = append(all, dividedLayer{hidden: h, by: map[int]float64{1: one, dividedOver: one/dividedOver + x}, exchanges: x})
	}
	study.Computed(r, dividedClaim, fmt.Sprintf("by the model of 4 TitanX at their peak over %s, minibatch %d: at least half of linear scaling %s", link.Name, dividedBatch, fromWord(all, dividedOver)), alike(all), dividedCause(all))
}

// measuredLayers returns the records of divided layers' sizes: at the full size or, if there are none, at the quick one.
func measuredLayers(recs []record.Record) (points []record.Point) {
	for _, size := range []study.Size{study.Full, study.Quick} {
		for _, h := range dividedSizes(size) {
			if p := dividedPoint(size, h); fastestAt(recs, p, pick.Labels(recs)) != nil {
				points = append(points, p)
			}
		}
		if len(points) > 0 {
			return points
		}
	}
	return nil
}

func fastestAt(recs []record.Record, p record.Point, labels []string) *record.Record {
	return pick.Fastest(recs, labels, func(q record.Point) bool { return q == p })
}

// products are the labels of techniques that a divided layer uses: those of one product a step.
func products(recs []record.Record) (labels []string) {
	for _, l := range pick.Labels(recs) {
		if strings.HasPrefix(l, "cudnnstyle") {
			labels = append(labels, l)
		}
	}
	return labels
}

// stepOf is the seconds a step of a record; 0: there is none.
func stepOf(r *record.Record) float64 {
	if r == nil {
		return 0
	}
	return r.Seconds() / float64(r.Point.Steps)
}

// drawLayers draws the measured steps of one device.
func drawLayers(r *study.Report, recs []record.Record, on study.Target) {
	points := measuredLayers(recs)
	if len(points) == 0 {
		return
	}
	p := points[0]
	ch := &plots.Chart{Title: "A training step of one layer over its size", Subtitle: fmt.Sprintf("%s · %s · %s · B=%d · T=%d", on.Name, p.Cell, p.Pass, p.Batch, p.Steps),
		X: plots.Axis{Title: "Units", Scale: plots.Log, Format: func(h float64) string { return strconv.Itoa(int(h)) }}, Y: plots.Axis{Title: "Time a step (s)", Scale: plots.Log}}
	var panel plots.Panel
	for _, label := range pick.Labels(recs) {
		s := plots.Series{Label: label + ", one device", Like: label}
		for _, p := range points {
			if x := fastestAt(recs, p, []string{label}); x != nil {
				s.Points = append(s.Points, plots.Point{X: float64(p.Hidden), Y: stepOf(x), From: x})
			}
		}
		if len(s.Points) > 0 {
			panel.Series = append(panel.Series, s)
		}
	}
	for _, p := range points {
		ch.X.Places = append(ch.X.Places, float64(p.Hidden))
	}
	ch.Panels = []plots.Panel{panel}
	r.Add("diamos-alternatives", ch, nil)
}

// divided models layers over the links of here. The part of a device has the weights of a smaller layer,
// whose products were measured.
func divided(recs []record.Record, here *model.Machine) (all []dividedLayer) {
	points := measuredLayers(recs)
	if len(points) == 0 {
		return nil
	}
	sizes := dividedSizes(study.Full)
	if points[0] != dividedPoint(study.Full, points[0].Hidden) {
		sizes = dividedSizes(study.Quick)
	}
	for i, h := range sizes[2:] {
		p := points[0]
		at := func(hidden int, labels []string) *record.Record {
			p.Hidden, p.Input = hidden, hidden
			return fastestAt(recs, p, labels)
		}
		one := at(h, pick.Labels(recs))
		if one == nil {
			continue
		}
		d := dividedLayer{hidden: h, who: one.Impl.Label, by: map[int]float64{1: stepOf(one)}}
		for back, n := range dividedCounts() {
			link, ok := here.Links.Across(n)
			part := stepOf(at(sizes[2+i-back], products(recs)))
			if n > 1 && ok && part > 0 {
				d.exchanges = exchangeTime(link, h, p.Batch, p.Steps, n)
				d.by[n] = part + d.exchanges
			}
		}
		if d.by[dividedOver] > 0 {
			all = append(all, d)
		}
	}
	return all
}

// reportDivided adds what the links of here give for layers over several devices.
func reportDivided(r *study.Report, recs []record.Record, here *model.Machine) {
	link, joined := here.Links.Across(dividedOver)
	all := divided(recs, here)
	switch {
	case !joined:
		r.Findings = append(r.Findings, fmt.Sprintf("The machine file of %s has no links, so no layer is divided.", here.Name))
		return
	case len(all) == 0:
		r.Findings = append(r.Findings, "Divided layers were not modelled: it needs times of products of layers of half their units.")
		return
	}
	t := &table.Table{
		Title: fmt.Sprintf("A training step of a layer divided over devices, modelled: minibatch %d", dividedBatch),
		Columns: []table.Column{
			show.Column("H", "hidden"), show.Column("1 device", "one_s"), {Name: "by", Key: "technique"}, show.Column("2 devices", "two_s"), show.Column("×", "two_times"),
			show.Column("4 devices", "four_s"), show.Column("×", "four_times"), show.Column("exchanges", "exchanges_s"),
		},
		Notes: []string{
			"1 device: measured, the fastest technique; a step of forward and backward, input products included",
			"more devices: each has a part of the rows, as many weights as a layer of H/√n units, whose products were measured; and exchanges",
			"exchanges: by 4 devices, of states and of their gradients at each step and of input gradients at once, in a ring: (n−1)/n·bytes/bandwidth + (n−1)·latency; nothing hides them",
			fmt.Sprintf("%s: %s and %s a step; %s", link.Name, quantity.SI(link.B, "B/s"), quantity.SI(link.L, "s"), link.Source),
		},
	}
	for _, d := range all {
		sec := func(v float64) table.Cell {
			if v == 0 {
				return show.Missing()
			}
			return table.Number(v, quantity.SI(v, "s"))
		}
		two := show.Missing()
		if d.by[2] > 0 {
			two = show.Ratio(d.gain(2))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Int(d.hidden), sec(d.by[1]), table.Text(d.who), sec(d.by[2]), two,
			sec(d.by[dividedOver]), show.Ratio(d.gain(dividedOver)), sec(d.exchanges)})
	}
	r.Tables = append(r.Tables, t)
	drawDivided(r, all)
	said := fmt.Sprintf("modelled over %s from products of one device, minibatch %d: at least half of linear scaling %s; %.2f× as fast as one device with %d units",
		link.Name, dividedBatch, fromWord(all, dividedOver), shown(all).gain(dividedOver), shown(all).hidden)
	computed(r, r.Reduced, dividedClaim, said, alike(all), dividedCause(all))
	r.Findings = append(r.Findings, fmt.Sprintf("%s. Two devices are at least as fast as one %s. %s.", show.Upper(said), fromWord(all, 2), show.Upper(dividedCause(all))))
}

// drawDivided adds the modelled lines to the figure of one device.
func drawDivided(r *study.Report, all []dividedLayer) {
	for _, x := range r.Figures {
		ch, ok := x.Figure.(*plots.Chart)
		if !ok || x.Name != "diamos-alternatives" {
			continue
		}
		for _, n := range dividedCounts()[1:] {
			s := plots.Series{Label: fmt.Sprintf("%d devices, modelled", n), Reference: true}
			for _, d := range all {
				s.Points = append(s.Points, plots.Point{X: float64(d.hidden), Y: d.by[n], Missing: d.by[n] == 0})
			}
			ch.Panels[0].Series = append(ch.Panels[0].Series, s)
		}
		ch.Title = "A training step of one layer over its size, by one device and divided"
		ch.Notes = append(ch.Notes, "Divided layers are modelled: products of smaller layers as measured, and exchanges over links between devices.")
	}
}
