package diamos

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Labels of the barrier experiment. Recorded runs have the first; see relabelled.
const (
	barrierStep    = "meeting per step"
	operationStep  = "operation per step"
	operationGraph = "operation per step, as a graph"
	productStep    = "product and cell per step"
	productGraph   = "product and cell, as a graph"
)

// exchangeOver labels a layer that n groups of blocks run, each with its own copy of the weights.
func exchangeOver(n int) string {
	return fmt.Sprintf("exchange, %s of blocks", quantity.Plural(n, "group"))
}

// exchangeGroups lists the numbers of groups, from all multiprocessors of a GPU in one to an eighth in each.
func exchangeGroups() []int { return []int{1, 2, 4, 8} }

// exchangeSpecs are the layers whose blocks exchange states over all or a part of the GPU.
func exchangeSpecs() (all []grid.Spec) {
	for _, n := range exchangeGroups() {
		all = append(all, study.Spec(exchangeOver(n), "persistent", knob.Params{"transposed": 2, "resident": 2, "groups": n}))
	}
	return all
}

// relabelled returns recs with the barrier's label as readers see it. Records keep the label under
// which they were measured.
func relabelled(recs []record.Record) []record.Record {
	recs = slices.Clone(recs)
	for i := range recs {
		if recs[i].Impl.Label == barrierStep {
			recs[i].Impl.Label = "barrier per step"
		}
	}
	return recs
}

// Barrier is the experiment diamos-barrier.
var Barrier = study.Experiment{
	ID: "diamos-barrier", Title: "Per-step barrier versus per-step dispatch",
	Source: "Diamos et al. 2016, sections 1 and 4.3; the authors' blog post, 2.2",
	Unlike: "layers of other sizes with one sequence beside the paper's of 1152 units; a launch is measured with its product and cell",
	Parts: func(s study.Size, on study.Target) []study.Part {
		p := diamosLayer(study.Full)
		hidden := []int{32, 64, 128, 256, 512, 1024}
		p.Batch, p.Steps, p.Input = 1, 256, narrowInput // hardly any input product
		if s == study.Quick {
			hidden, p.Steps = hidden[:5], 128
		}
		var pts []record.Point
		for _, h := range hidden {
			q := p
			q.Hidden = h
			pts = append(pts, q)
		}
		operation := study.Spec(operationStep, "persistent", knob.Params{"transposed": 2, "inputbatch": 1})
		specs := on.WithGPU([]grid.Spec{persistentSpec(barrierStep, 2), operation, form.GemmSpec(productStep, 2)},
			study.Graphed(operationGraph, operation), study.Graphed(productGraph, form.GemmSpec("", 2)))
		parts := []study.Part{{Points: pts, Specs: specs}}
		if s == study.Full {
			paper := p
			paper.Batch = 4
			parts = append(parts, study.Part{Points: []record.Point{paper}, Specs: specs})
			if on.GPU {
				parts = append(parts, study.Part{Points: []record.Point{p}, Specs: exchangeSpecs()})
			}
		}
		return parts
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		sweep := pick.Where(recs, func(p record.Point) bool { return p.Batch == 1 && p.Hidden != diamosLayer(study.Full).Hidden })
		if err := barrierSweep(rep, sweep, on); err != nil {
			return nil, err
		}
		exchanges(rep, recs)
		barrierAsSuch(rep, recs, on)
		launchClaim(rep, recs, on)
		lateClaim(rep, recs, on)
		return rep, nil
	},
	Model: func(rep *study.Report, _ []record.Record, here *model.Machine) { measuredBarrier(rep, here) },
}

// barrierSweep adds the table and figure of steps over layer sizes, one sequence.
func barrierSweep(r *study.Report, recs []record.Record, on study.Target) error {
	columns := []struct{ label, name, key string }{
		{barrierStep, "barrier", "meeting"}, {operationStep, "operation", "operation"}, {operationGraph, "operation, graph", "operation_graph"},
		{productStep, "product and cell", "products"}, {productGraph, "product and cell, graph", "products_graph"},
	}
	if !on.GPU {
		columns = slices.DeleteFunc(columns, func(c struct{ label, name, key string }) bool { return strings.HasSuffix(c.key, "graph") })
	}
	t := &table.Table{Title: "Time of one step, one sequence, one gate: per-step barrier versus per-step dispatch", Columns: []table.Column{show.Column("H", "hidden")}}
	for _, c := range columns {
		t.Columns = append(t.Columns, show.Column(c.name, c.key+"_s"))
	}
	for _, c := range columns[1:] {
		t.Columns = append(t.Columns, show.Column(c.name+" ×", c.key+"_ratio"))
	}
	var ratios, jumps []string // jumps: sizes at which more units take less time
	var last *record.Record
	for _, p := range pick.Points(recs) {
		at := func(label string) *record.Record {
			return pick.Find(recs, label, func(q record.Point) bool { return q == p })
		}
		row := []table.Cell{table.Int(p.Hidden)}
		for _, c := range columns {
			x := at(c.label)
			if x == nil {
				row = append(row, show.Missing())
				continue
			}
			row = append(row, table.Number(step(x), quantity.SI(step(x), "s")).Of(x))
		}
		barrier := at(barrierStep)
		for _, c := range columns[1:] {
			row = append(row, show.Ratio(estimate.TimesAsFast(at(c.label), barrier).At))
		}
		t.Rows = append(t.Rows, row)
		x := at(productStep)
		if e := estimate.TimesAsFast(x, barrier); e.Known() {
			ratios = append(ratios, fmt.Sprintf("%s× at %d units (difference %s)", quantity.Ratio(e.At), p.Hidden, quantity.SI(step(x)-step(barrier), "s")))
		}
		if x != nil && last != nil && p.Hidden > last.Point.Hidden && estimate.Clearly(step(last)/step(x)) {
			jumps = append(jumps, fmt.Sprintf("From %d to %d units, the step time of product and cell falls from %s to %s.%s",
				last.Point.Hidden, p.Hidden, quantity.SI(step(last), "s"), quantity.SI(step(x), "s"), otherKernels(recs, last.Point.Hidden, p.Hidden)))
		}
		if x != nil {
			last = x
		}
	}
	if len(ratios) == 0 {
		return fmt.Errorf("experiments: no point has records of both a barrier and a product and cell per step")
	}
	r.Tables = append(r.Tables, t)
	fig, err := plots.Lines(relabelled(recs), plots.Spec{X: "hidden", Y: "step", Machine: on.Name, Title: "Diamos 4.3: a step with a barrier or with dispatch, one sequence, one gate"})
	r.Add("diamos-barrier", fig, err)
	r.Findings = append(r.Findings, "Time of a step with a dispatched product and cell, relative to a step with a barrier: "+strings.Join(ratios, ", ")+". The paper prints no such ratio.")
	if n := launchesPerStep(recs, operationStep); n > 1 {
		r.Findings = append(r.Findings, fmt.Sprintf("A dispatched operation is %d launches at each step.", n))
	}
	r.Findings = append(r.Findings, jumps...)
	return nil
}

// launchesPerStep counts the launches of a step of a technique; 0: not known.
func launchesPerStep(recs []record.Record, label string) (n int) {
	r := pick.Find(recs, label, func(record.Point) bool { return true })
	if r == nil {
		return 0
	}
	for _, k := range r.Kernels {
		n += k.Launches / r.Point.Steps
	}
	return n
}

// otherKernels says which kernels each step of product and cell launches at two sizes.
func otherKernels(recs []record.Record, small, large int) string {
	at := func(hidden int) string {
		r := pick.Find(recs, productStep, func(p record.Point) bool { return p.Hidden == hidden })
		var names []string
		for _, k := range r.Kernels {
			if k.Launches >= r.Point.Steps {
				names = append(names, k.Name)
			}
		}
		return strings.Join(names, " and ")
	}
	a, b := at(small), at(large)
	if a == b || a == "" || b == "" {
		return " The records do not show other kernels, so the cause is not known."
	}
	return fmt.Sprintf(" A step launches %s at %d units, and %s at %d.", a, small, b, large)
}
