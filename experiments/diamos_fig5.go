package experiments

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// What the paper states of Figure 5, section 5.1.3: the minibatch of all devices together,
// the most devices, and what they sustain, which is about 30 % of their peak.
const (
	fig5Minibatch = 512
	fig5Devices   = 128
	fig5FLOPS     = 250e12
	fig5Knee      = 16 // devices up to which products scale well
)

// fig5Counts are the numbers of devices of the figure.
func fig5Counts() (n []int) {
	for d := 1; d <= fig5Devices; d *= 2 {
		n = append(n, d)
	}
	return n
}

// fig5Point returns the training of the stack on batch sequences, over the paper's average utterance
// of 350 steps. The quick one has an eighth of the units.
func fig5Point(size Size, batch int) results.Point {
	p := results.Point{Cell: "rnn-relu", Pass: "train", Hidden: 1152, Layers: 48, Batch: batch, Steps: 350, Precision: "fp32"}
	if size == Quick {
		p.Hidden, p.Steps = 1152/8, 20
	}
	p.Input = p.Hidden
	return p
}

// fig5Batches lists the measured parts in sequences: those of 128 to 8 devices. The paper's GPUs had
// memory for 64 sequences at most.
func fig5Batches() []int { return []int{4, 8, 16, 32, 64} }

var diamosFig5 = Experiment{
	ID: "diamos-fig5", Title: "Data-parallel training of 48 layers over 1 to 128 devices, minibatch 512",
	Source: "Diamos et al. 2016, Figure 5 and section 5.1.3",
	Unlike: "one device's part is measured, and sums over devices are computed",
	Parts: func(size Size, on Target) []Part {
		var list []results.Point
		for _, b := range fig5Batches() {
			list = append(list, fig5Point(size, b))
		}
		specs := []grid.Spec{persistentSpec("persistent", 1), gemmSpec("cudnnstyle", 1)}
		return []Part{{list, on.beside(specs, byLibrary("cudnnstyle, cuBLAS", gemmSpec("", 1)))}}
	},
	Trainings: fig5Replicas,
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		fig5Paper(rep)
		all := scalings(recs)
		if len(all) == 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Scaling over devices was not measured: it needs times of parts of %d and of %d sequences.", fig5Minibatch/fig5Devices, fig5Minibatch/fig5Knee))
		} else {
			rep.fig5Parts(all, on)
			rep.fig5Scaling(all, on)
		}
		if on.Reduced {
			markReduced(rep, 1, 0) // the first table is of the paper's sizes
		}
		rep.fig5Measured(recs, on)
		rep.exact.tables, rep.exact.figures = len(rep.Tables), len(rep.Figures) // they are marked already
		return rep, nil
	},
	Model: reportFig5Model,
}

// A scaling holds one technique's times for parts of the minibatch on one device.
type scaling struct {
	label string
	point results.Point   // of the parts, except for the batch
	took  map[int]float64 // seconds, by sequences
}

// tells reports whether enough parts were measured to say how the technique scales: those of 128
// devices, and those of 16. Otherwise parts of few sequences would stand for all.
func (s scaling) tells() bool {
	return s.took[fig5Minibatch/fig5Devices] > 0 && s.took[fig5Minibatch/fig5Knee] > 0
}

// scalings returns the techniques of recs whose parts tell how they scale, in order of appearance:
// at the full size or, if recs have none there, at the quick size.
func scalings(recs []results.Record) (all []scaling) {
	for _, size := range []Size{Full, Quick} {
		for _, label := range labels(recs) {
			s := scaling{label, fig5Point(size, fig5Minibatch), map[int]float64{}}
			for _, b := range fig5Batches() {
				if r := find(recs, label, func(p results.Point) bool { return p == fig5Point(size, b) }); r != nil {
					s.took[b] = r.Seconds()
				}
			}
			if s.tells() {
				all = append(all, s)
			}
		}
		if len(all) > 0 {
			return all
		}
	}
	return nil
}

// A partRun says how a device runs its part: how many sequences at a time, and how many times. The
// device adds up the gradients.
type partRun struct {
	sequences int
	times     int
	seconds   float64 // of all
}

// part returns the fastest way in which one of n devices can run its part; false if none was
// measured.
func (s scaling) part(n int) (best partRun, ok bool) {
	for _, b := range fig5Batches() {
		t, measured := s.took[b]
		if of := fig5Minibatch / n; measured && of%b == 0 {
			if sec := t * float64(of/b); !ok || sec < best.seconds {
				best, ok = partRun{b, of / b, sec}, true
			}
		}
	}
	return best, ok
}

// flops returns the FLOPs of the whole minibatch.
func (s scaling) flops() float64 {
	p, err := tuner.Problem(s.point)
	if err != nil {
		return math.NaN()
	}
	return float64(p.FLOPs())
}

// rate is the throughput of one of n devices while it computes.
func (s scaling) rate(n int) float64 {
	t, ok := s.part(n)
	if !ok {
		return math.NaN()
	}
	return s.flops() / float64(n) / t.seconds
}

// keptShare returns the throughput of one of n devices, over that of a device with a minibatch to
// itself.
func (s scaling) keptShare(n int) float64 { return s.rate(n) / s.rate(1) }

// fig5Parts adds the table and figure of one device's throughput on its part.
func (r *Report) fig5Parts(all []scaling, on Target) {
	p := all[0].point
	t := &table.Table{
		Title: fmt.Sprintf("Training %d layers of %d units: one device's part of minibatch %d", p.Layers, p.Hidden, fig5Minibatch),
		Columns: []table.Column{
			{Name: "Devices", Key: "devices", Right: true}, {Name: "Part", Key: "sequences", Right: true}, {Name: "Technique", Key: "technique"},
			{Name: "At a time", Key: "at_a_time", Right: true}, {Name: "time", Key: "time_s", Right: true},
			{Name: "FLOP/s", Key: "flops_per_s", Right: true}, {Name: "of 1 device, %", Key: "kept_percent", Right: true},
		},
		Notes: []string{
			"measured on one device, without sums over devices",
			"at a time: a device runs its part in turns of so many sequences and adds the gradients up; the fastest measured number counts",
		},
	}
	ch := &plots.Chart{Title: "Diamos Figure 5: one device's throughput on its part", Subtitle: fmt.Sprintf("%s · %s · %s · H=%d · L=%d · T=%d", on.Name, p.Cell, p.Pass, p.Hidden, p.Layers, p.Steps),
		X: plots.Axis{Title: "Devices that share a minibatch of 512", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Throughput of one device (FLOP/s)", Zero: true},
		Notes: []string{"Measured on one device, without sums over devices. With few devices, a part is run in turns."}}
	var panel plots.Panel
	for _, s := range all {
		panel.Series = append(panel.Series, plots.Series{Label: s.label})
	}
	for _, n := range fig5Counts() {
		ch.X.Places = append(ch.X.Places, float64(n))
		for i, s := range all {
			best, ok := s.part(n)
			if !ok {
				panel.Series[i].Points = append(panel.Series[i].Points, plots.Point{X: float64(n), Missing: true})
				continue
			}
			panel.Series[i].Points = append(panel.Series[i].Points, plots.Point{X: float64(n), Y: s.rate(n)})
			t.Rows = append(t.Rows, []table.Cell{table.Int(n), table.Int(fig5Minibatch / n), table.Text(s.label), table.Int(best.sequences),
				table.Number(best.seconds, quantity.SI(best.seconds, "s")), table.Number(s.rate(n), quantity.SI(s.rate(n), "FLOP/s")), number(100*s.keptShare(n), "%.0f")})
		}
	}
	ch.Panels = []plots.Panel{panel}
	r.Tables = append(r.Tables, t)
	r.add("diamos-fig5-part", ch, nil)
}

// Thresholds for the paper's words, as shares of a device's throughput: a technique that keeps at
// least scalesWell scales well, and one that keeps at most scalesWorse does substantially worse.
const (
	scalesWell  = 0.75
	scalesWorse = 0.5
)

// fig5Scaling compares what small parts cost each technique with the paper's finding.
func (r *Report) fig5Scaling(all []scaling, on Target) {
	for _, s := range all {
		knee, end := s.keptShare(fig5Knee), s.keptShare(fig5Devices)
		here := fmt.Sprintf("%s keeps %.0f %% of one device's throughput with %d devices and %.0f %% with %d, without sums", s.label, 100*knee, fig5Knee, 100*end, fig5Devices)
		if s.label == "persistent" {
			agrees := end >= scalesWell
			compare(r, on, here+". The paper's persistent kernels scale nearly linearly.", "persistent kernels scale nearly linearly to 128 GPUs", here, agrees,
				on.say("with 4 sequences, each weight that a device packs and reads serves fewer products", "with 4 sequences, the latency of steps outweighs the products"))
			continue
		}
		agrees := knee >= scalesWell && end <= scalesWorse
		compare(r, on, here+". The paper's products scale well up to 16 GPUs, and substantially worse beyond.", "products scale well up to 16 GPUs and do substantially worse with more", here, agrees, "")
	}
	first := slices.IndexFunc(all, func(s scaling) bool { return s.label == "persistent" })
	if first < 0 || len(all) < 2 {
		return
	}
	for _, s := range all {
		if up := all[first].rate(fig5Devices) / s.rate(fig5Devices); s.label != "persistent" && !math.IsNaN(up) {
			r.Findings = append(r.Findings, fmt.Sprintf("With 4 sequences, the part of each of 128 devices, persistent trains at %.2f× the throughput of %s.", up, s.label))
		}
	}
}
