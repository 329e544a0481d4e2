package diamos

import (
	"fmt"
	"math"
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
func fig5Point(size study.Size, batch int) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "train", Hidden: 1152, Layers: 48, Batch: batch, Steps: 350, Precision: "fp32"}
	if size == study.Quick {
		p.Hidden, p.Steps = 1152/8, 20
	}
	p.Input = p.Hidden
	return p
}

// fig5Batches lists the numbers of sequences that a device runs at once: the parts of 128 to 4
// devices. Those of more than 32 say what a device reaches that shares with fewer than 16.
func fig5Batches() []int { return []int{4, 8, 16, 32, 64, 128} }

// Fig5 is the experiment diamos-fig5.
var Fig5 = study.Experiment{
	ID: "diamos-fig5", Title: "Data-parallel training of 48 layers over 1 to 128 devices, minibatch 512",
	Source: "Diamos et al. 2016, Figure 5 and section 5.1.3",
	Unlike: "one device's part is measured, and sums over devices are computed; the 48 recurrent layers without the other 13",
	Parts: func(size study.Size, on study.Target) []study.Part {
		var list []record.Point
		for _, b := range fig5Batches() {
			list = append(list, fig5Point(size, b))
		}
		specs := []grid.Spec{persistentSpec("persistent", 1), form.GemmSpec("cudnnstyle", 1)}
		return []study.Part{{Points: list, Specs: on.WithGPU(specs, form.ByLibrary("cudnnstyle, cuBLAS", form.GemmSpec("", 1)))}}
	},
	Trainings: fig5Replicas,
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		fig5Paper(rep)
		all := scalings(recs)
		if len(all) == 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Scaling over devices was not measured: it needs times of parts of %d and of %d sequences.", fig5Minibatch/fig5Devices, fig5Minibatch/fig5Knee))
		} else {
			fig5Parts(rep, all, on)
			fig5Scaling(rep, all, on)
		}
		if on.Reduced {
			study.MarkReduced(rep, 1, 0) // the first table is of the paper's sizes
		}
		fig5Measured(rep, recs, on)
		rep.Exact.Tables, rep.Exact.Figures = len(rep.Tables), len(rep.Figures) // they are marked already
		return rep, nil
	},
	Model: reportFig5Model,
}

// A scaling holds one technique's runs of parts of the minibatch on one device.
type scaling struct {
	label string
	point record.Point           // of the parts, except for the batch
	runs  map[int]*record.Record // by sequences
}

// tells reports whether enough parts were measured to say how the technique scales: those of 128
// devices, and those of 16. Otherwise parts of few sequences would stand for all.
func (s scaling) tells() bool {
	return s.runs[fig5Minibatch/fig5Devices] != nil && s.runs[fig5Minibatch/fig5Knee] != nil
}

// beyond reports whether a device ran more sequences at once than each of 16 devices has. Otherwise
// what one device reaches, over which others are said to scale, would be that part itself.
func (s scaling) beyond() bool {
	for b := range s.runs {
		if b > fig5Minibatch/fig5Knee {
			return true
		}
	}
	return false
}

// scalings returns the techniques of recs whose parts tell how they scale, in order of appearance:
// at the full size or, if recs have none there, at the quick size.
func scalings(recs []record.Record) (all []scaling) {
	for _, size := range []study.Size{study.Full, study.Quick} {
		for _, label := range pick.Labels(recs) {
			s := scaling{label, fig5Point(size, fig5Minibatch), map[int]*record.Record{}}
			for _, b := range fig5Batches() {
				if r := pick.Find(recs, label, func(p record.Point) bool { return p == fig5Point(size, b) }); r != nil {
					s.runs[b] = r
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
		r := s.runs[b]
		if of := fig5Minibatch / n; r != nil && of%b == 0 {
			if sec := r.Seconds() * float64(of/b); !ok || sec < best.seconds {
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

// best is the run with the highest throughput.
func (s scaling) best() (r *record.Record) {
	for _, b := range fig5Batches() {
		if x := s.runs[b]; x != nil && (r == nil || x.FLOPS() > r.FLOPS()) {
			r = x
		}
	}
	return r
}

// keptShare estimates the throughput of one of n devices on its part, run at once, over the highest
// that a device reaches.
func (s scaling) keptShare(n int) estimate.Estimate {
	return estimate.Throughput(s.best(), s.runs[fig5Minibatch/n])
}

// fig5Parts adds the table and figure of one device's throughput by sequences.
func fig5Parts(r *study.Report, all []scaling, on study.Target) {
	p := all[0].point
	t := &table.Table{
		Title: fmt.Sprintf("Training %d layers of %d units on one device, by sequences", p.Layers, p.Hidden),
		Columns: []table.Column{
			{Name: "Sequences", Key: "sequences", Right: true}, {Name: "Devices that share 512 so", Key: "devices", Right: true}, {Name: "Technique", Key: "technique"},
			{Name: "time", Key: "time_s", Right: true}, {Name: "FLOP/s", Key: "flops_per_s", Right: true}, {Name: "of the best, %", Key: "kept_percent", Right: true},
		},
		Notes: []string{"measured on one device, without sums over devices"},
	}
	ch := &plots.Chart{Title: "Diamos Figure 5: one device's throughput by sequences", Subtitle: fmt.Sprintf("%s · %s · %s · H=%d · L=%d · T=%d", on.Name, p.Cell, p.Pass, p.Hidden, p.Layers, p.Steps),
		X: plots.Axis{Title: "Sequences on the device", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Throughput of one device (FLOP/s)", Zero: true},
		Notes: []string{"Measured on one device, without sums over devices. With 4 sequences each, 128 devices share a minibatch of 512; with 64 each, 8 do."}}
	panel := plots.Panel{Series: make([]plots.Series, len(all))}
	for _, b := range fig5Batches() {
		ch.X.Places = append(ch.X.Places, float64(b))
		for i, s := range all {
			panel.Series[i].Label = s.label
			x := s.runs[b]
			if x == nil {
				panel.Series[i].Points = append(panel.Series[i].Points, plots.Point{X: float64(b), Missing: true})
				continue
			}
			panel.Series[i].Points = append(panel.Series[i].Points, show.RatePoint(float64(b), x))
			flops, _ := show.Rate(x)
			t.Rows = append(t.Rows, []table.Cell{table.Int(b), table.Int(fig5Minibatch / b), table.Text(s.label),
				table.Time(x), flops, show.Number(100*s.keptShare(fig5Minibatch/b).At, "%.0f")})
		}
	}
	ch.Panels = []plots.Panel{panel}
	r.Tables = append(r.Tables, t)
	r.Add("diamos-fig5-part", ch, nil)
}

// Thresholds for the paper's words, as shares of a device's throughput: a technique that keeps at
// least scalesWell scales well, and one that keeps at most scalesWorse does substantially worse.
const (
	scalesWell  = 0.75
	scalesWorse = 0.5
)

// fig5Scaling compares what small parts cost each technique with the paper's finding.
func fig5Scaling(r *study.Report, all []scaling, on study.Target) {
	first := slices.IndexFunc(all, func(s scaling) bool { return s.label == "persistent" })
	for _, s := range all {
		r.Findings = append(r.Findings, fmt.Sprintf("With 4 sequences, %s keeps %s of the highest throughput that one device reaches.", s.label, s.keptShare(fig5Devices).By(100).Text("%.0f", " %")))
		if first >= 0 && s.label != "persistent" {
			up := estimate.TimesAsFast(s.runs[fig5Minibatch/fig5Devices], all[first].runs[fig5Minibatch/fig5Devices])
			r.Findings = append(r.Findings, fmt.Sprintf("With 4 sequences, the part of each of 128 devices, persistent trains %s as fast as %s.", up.Times(), s.label))
		}
	}
	if first >= 0 {
		fig5Persistent(r, all[first], on)
	}
	// The paper's products are libraries'.
	if i := slices.IndexFunc(all, func(s scaling) bool { return s.label == "cudnnstyle, cuBLAS" }); i >= 0 {
		fig5Products(r, all[i], on)
	} else if i := slices.IndexFunc(all, func(s scaling) bool { return s.label == "cudnnstyle" }); i >= 0 {
		fig5Products(r, all[i], on)
	}
}

// lacksMore is what records lack that cannot say how devices scale.
func lacksMore() string {
	return fmt.Sprintf("passes of more than %d sequences, so the part of each of %d devices would be compared with itself", fig5Minibatch/fig5Knee, fig5Knee)
}

// fig5Linear is the paper's finding on persistent kernels. Replicas and parts of replicas both bear on it.
const fig5Linear = "persistent kernels scale nearly linearly to 128 GPUs (section 5.1.3)"

// fig5Persistent compares how the persistent kernels scale. Without sums, the shares are at most what
// devices reach together. Without passes of many sequences, a share is at most too high.
func fig5Persistent(r *study.Report, s scaling, on study.Target) {
	kept, well := s.keptShare(fig5Devices), estimate.AtLeast(scalesWell)
	if !s.beyond() && well.Holds(kept) != estimate.No {
		study.NotMeasured(r, fig5Linear, lacksMore())
		return
	}
	few, many := s.runs[fig5Minibatch/fig5Devices], s.runs[fig5Minibatch/fig5Knee]
	n, m := float64(few.Point.Batch), float64(many.Point.Batch)
	fixed := few.Seconds() - n*(many.Seconds()-few.Seconds())/(m-n)
	why := fmt.Sprintf("by a line through the times of %.0f and %.0f sequences, %.0f %% of the time with %.0f does not depend on their number", n, m, 100*fixed/few.Seconds(), n)
	study.ClaimOf(r, on, fig5Linear, fmt.Sprintf("with its part of 4 sequences, a device keeps %s of its highest throughput, without sums", kept.By(100).Text("%.0f", " %")), kept, well, why)
}

// fig5Products compares how products scale.
func fig5Products(r *study.Report, s scaling, on study.Target) {
	const paper = "products scale well up to 16 GPUs and do substantially worse with more (section 5.1.3)"
	if !s.beyond() {
		study.NotMeasured(r, paper, lacksMore())
		return
	}
	knee, end := s.keptShare(fig5Knee), s.keptShare(fig5Devices)
	well, worse := estimate.AtLeast(scalesWell), estimate.AtMost(scalesWorse)
	open := well.Openness(knee)
	if well.Holds(knee) != estimate.No && worse.Holds(end) != estimate.Yes {
		open = worse.Openness(end)
	}
	study.Settle(r, on, paper, fmt.Sprintf("by %s, a device keeps %s of its highest throughput with the part of each of %d devices, and %s with that of %d, without sums", s.label, knee.By(100).Text("%.0f", " %"), fig5Knee, end.By(100).Text("%.0f", " %"), fig5Devices),
		estimate.Both(well.Holds(knee), worse.Holds(end)), "", open)
}
