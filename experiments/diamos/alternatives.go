package diamos

import (
	"fmt"

	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/model"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// Alternatives is the experiment diamos-alternatives.
var Alternatives = study.Experiment{
	ID: "diamos-alternatives", Title: "Alternatives to small minibatches: activations in host memory, and layers divided over GPUs",
	Source: "Diamos et al. 2016, the authors' blog post, 2.3.2 and 2.3.3",
	Unlike: "one device: copies are computed from their measured rates, and divided layers are modelled",
	Parts: func(size study.Size, on study.Target) []study.Part {
		var stacks, layers, medium []record.Point
		for _, b := range hostBatches {
			stacks = append(stacks, hostPoint(size, b))
		}
		for _, h := range dividedSizes(size) {
			layers = append(layers, dividedPoint(size, h))
			if h <= dividedMedium {
				medium = append(medium, dividedPoint(size, h))
			}
		}
		// Products of a library are the paper's. They run on GPUs alone.
		persistent, own := persistentSpec("persistent", 1), form.GemmSpec("cudnnstyle", 1)
		return []study.Part{
			{Points: stacks, Specs: []grid.Spec{persistent, own}},
			{Points: medium, Specs: []grid.Spec{persistent}},
			{Points: layers, Specs: on.WithGPU([]grid.Spec{own}, form.ByLibrary("cudnnstyle, cuBLAS", form.GemmSpec("", 1)))},
		}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		paper, err := model.Load("titanx")
		if err != nil {
			return nil, err
		}
		rep := &study.Report{}
		paperHost(rep, paper)
		reportHost(rep, recs, on)
		paperDivided(rep, paper)
		drawLayers(rep, recs, on)
		return rep, nil
	},
	Model: reportDivided,
}

// What the blog post says of activations in host memory, and how much of its machine they concern.
const (
	hostClaim  = "keeping activations in host memory makes training 2 to 4 times slower (blog, section 2.3.2)"
	hostLeast  = 2.0
	hostMost   = 4.0
	hostShared = 8 // GPUs of a node of the paper, which stream to the same memory
)

// hostBatches are the minibatches of the stacks whose activations would be copied: the paper's for a GPU, and
// that which products need.
var hostBatches = []int{4, 64}

// hostPoint is the training of four of the layers of diamos-fig5. Each of more layers copies as much.
func hostPoint(size study.Size, batch int) record.Point {
	p := fig5Point(size, batch)
	p.Layers = 4
	return p
}

// keptBytes is the number of bytes that the backward pass of t reads of what the forward pass wrote: what
// would be copied to the host and back. Weights that it rearranged are no activations.
func keptBytes(t rnn.Technique, p rnn.Problem) (bytes float64, err error) {
	_, s, err := rnn.LayoutHosted(t, p, nil)
	if err != nil {
		return 0, err
	}
	written, counted, backward := map[*schedule.Matrix]bool{}, map[*schedule.Matrix]bool{}, false
	for _, n := range s.Nodes {
		if _, ok := n.Op.(schedule.Pause); ok {
			backward = true
		}
		for v, writes := range schedule.Accesses(n.Op) {
			switch {
			case v.M.Packed:
			case !backward && writes:
				written[v.M] = true
			case backward && !writes && written[v.M] && !counted[v.M]:
				counted[v.M] = true
				bytes += 4 * float64(v.M.Elements())
			}
		}
	}
	return bytes, nil
}

// keptByRecord is keptBytes of the technique and the stack that r ran. If the schedule does not say, it is
// the least.
func keptByRecord(r *record.Record) float64 {
	p, err := tuner.Problem(r.Point)
	if t := impl.Lookup(r.Impl.Name); err == nil && t != nil {
		if bytes, err := keptBytes(t, p); err == nil {
			return bytes
		}
	}
	return stateBytes(r.Point)
}

// stateBytes is the least that a stack must keep: a state a unit, step and sequence.
func stateBytes(p record.Point) float64 {
	return 4 * float64(p.Layers) * float64(p.Hidden) * float64(p.Batch) * float64(p.Steps)
}

// A streamed training keeps its activations in host memory: it takes the time to compute, and the time to
// copy activations there and back.
type streamed struct{ compute, copies float64 }

// hidden is how many times as fast training is as without copies if they run beside all of the computing, and after is
// the same if none does.
func (s streamed) hidden() float64 { return min(1, s.compute/s.copies) }
func (s streamed) after() float64  { return s.compute / (s.compute + s.copies) }

// between spells both ratios.
func (s streamed) between() string {
	return fmt.Sprintf("%.2f× as fast as without copies if these run beside it, %.2f× if after it", s.hidden(), s.after())
}

// overlaps reports whether the range of ratios meets the paper's.
func (s streamed) overlaps() bool { return s.after() <= 1/hostLeast && s.hidden() >= 1/hostMost }

// paperHost computes the paper's own slowdown from what a GPU sustains and the link of its machine.
func paperHost(r *study.Report, m *model.Machine) {
	link, _ := m.Links.Across(hostShared)
	p := fig5Point(study.Full, 1)
	h := float64(p.Hidden)
	one := streamed{compute: trainFLOPs(p) / (fig5FLOPS / fig5Devices), copies: hostShared * 2 * 4 * h / link.B}
	r.Findings = append(r.Findings, fmt.Sprintf("The blog post says that %s. Its 128 GPUs sustain 250 TFLOP/s with layers of %d units, and %d share a node. If they also share one link of %s, copies of a state and back take %.2f of the time to train with it. A slowdown of 2 to 4 beside the computing would need %.1f to %.1f values kept for each state.",
		hostClaim, p.Hidden, hostShared, quantity.SI(link.B, "B/s"), one.copies/one.compute, hostLeast*one.compute/one.copies, hostMost*one.compute/one.copies))
}

// trainFLOPs are those of training one layer for a step: three products each of input and recurrent weights.
func trainFLOPs(p record.Point) float64 {
	return 12 * float64(p.Hidden) * float64(p.Hidden) * float64(p.Batch)
}

// reportHost adds what training would take here with its activations in host memory.
func reportHost(r *study.Report, recs []record.Record, on study.Target) {
	t := &table.Table{
		Title: "Training with activations in host memory, computed from measured rates",
		Columns: []table.Column{
			show.Column("B", "batch"), {Name: "Technique", Key: "technique"}, show.Column("Kept", "kept_bytes"), show.Column("a state", "kept_per_state"),
			show.Column("iteration", "iteration_s"), show.Column("copies", "copies_s"), show.Column("beside, ×", "beside"), show.Column("after, ×", "after"),
		},
		Notes: []string{
			"kept: what the backward pass reads of what the forward pass wrote, by the schedule; a state: values kept for each unit, step and sequence of a layer",
			"copies: to pinned memory of the host and back",
			"beside: times as fast as without copies if they hide behind the whole iteration, which is the best case; after: if none hides",
			"measured: the iteration, and the rates of copies alone",
		},
	}
	var fastest *record.Record
	for _, p := range pick.Points(recs) {
		for _, label := range pick.Labels(recs) {
			x := pick.Find(recs, label, func(q record.Point) bool { return q == p })
			if x == nil || p.Layers == 1 {
				continue
			}
			if fastest == nil || x.FLOPS() > fastest.FLOPS() {
				fastest = x
			}
			t.Rows = append(t.Rows, hostRow(x, on))
		}
	}
	if len(t.Rows) > 0 {
		r.Tables = append(r.Tables, t)
	}
	hostVerdict(r, fastest, on)
}

// copying is the training of x with its activations in host memory. The rates of on must be known.
func copying(x *record.Record, on study.Target) streamed {
	bytes := keptByRecord(x)
	return streamed{x.Seconds(), bytes/on.ToHost + bytes/on.FromHost}
}

// knowsCopies reports whether both rates are known.
func knowsCopies(on study.Target) bool { return on.ToHost > 0 && on.FromHost > 0 }

func hostRow(x *record.Record, on study.Target) []table.Cell {
	bytes := keptByRecord(x)
	row := []table.Cell{table.Int(x.Point.Batch), table.Text(x.Impl.Label), table.Number(bytes, quantity.SI(bytes, "B")), show.Ratio(bytes / stateBytes(x.Point)), table.Time(x)}
	if !knowsCopies(on) {
		return append(row, show.Missing(), show.Missing(), show.Missing())
	}
	s := copying(x, on)
	return append(row, table.Number(s.copies, quantity.SI(s.copies, "s")), show.Number(s.hidden(), "%.2f"), show.Number(s.after(), "%.2f"))
}

// hostVerdict compares the fastest training with the paper's slowdown.
func hostVerdict(r *study.Report, x *record.Record, on study.Target) {
	switch {
	case !on.GPU:
		study.NotMeasured(r, hostClaim, "a GPU: the activations of a processor are in host memory anyway")
		return
	case x == nil || !knowsCopies(on):
		study.NotMeasured(r, hostClaim, "times of trainings together with rates of copies between the GPU and the host")
		return
	}
	s := copying(x, on)
	shared := streamed{s.compute, hostShared * s.copies}
	here := fmt.Sprintf("computed from copies at %s out and %s in: %s trains with minibatch %d %s", quantity.SI(on.ToHost, "B/s"), quantity.SI(on.FromHost, "B/s"), x.Impl.Label, x.Point.Batch, s.between())
	why := fmt.Sprintf("one GPU has the link and the host's memory to itself; at an eighth of the rates, as if %d shared them, it would be %s", hostShared, shared.between())
	computed(r, on.Reduced, hostClaim, here, s.overlaps(), why)
	r.Findings = append(r.Findings, fmt.Sprintf("%s. If %d GPUs shared these rates: %s.", show.Upper(here), hostShared, shared.between()))
}

// computed adds a claim that is computed from measured numbers. At reduced sizes it neither agrees nor
// differs.
func computed(r *study.Report, reduced bool, paper, here string, agrees bool, why string) {
	if reduced {
		r.Claim(study.Target{Reduced: true}, paper, here, agrees, why)
		return
	}
	study.Computed(r, paper, here, agrees, why)
}
