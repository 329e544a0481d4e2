package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/model"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Labels of the barrier experiment. Recorded runs have the first; see relabelled.
const (
	barrierStep   = "meeting per step"
	operationStep = "operation per step"
	productStep   = "product and cell per step"
)

// relabelled returns recs with the barrier's label as readers see it. Records keep the label under
// which they were measured.
func relabelled(recs []results.Record) []results.Record {
	recs = slices.Clone(recs)
	for i := range recs {
		if recs[i].Impl.Label == barrierStep {
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
			persistentSpec(barrierStep, 2),
			spec(operationStep, "persistent", knob.Params{"transposed": 2, "inputbatch": 1}),
			gemmSpec(productStep, 2),
		}, graphed("product and cell, as a graph", gemmSpec("", 2)))}}
	},
	Report: func(recs []results.Record, on Target) (*Report, error) {
		rep := &Report{}
		labels := []string{barrierStep, operationStep, productStep}
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
				jumps = append(jumps, fmt.Sprintf("From %d to %d units, the step time of product and cell falls from %s to %s.%s",
					lastHidden, p.Hidden, quantity.SI(last, "s"), quantity.SI(sec[2], "s"), otherKernels(recs, lastHidden, p.Hidden)))
			}
			last, lastHidden = sec[2], p.Hidden
		}
		if len(ratios) == 0 {
			return nil, fmt.Errorf("experiments: no point has records of both a barrier and a product and cell per step")
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := plots.Lines(relabelled(recs), plots.Spec{X: "hidden", Y: "time", Machine: on.Name, Title: "Diamos 4.3: per-step barrier versus per-step dispatch, one sequence, one gate"})
		rep.add("diamos-barrier", fig, err)
		rep.Findings = append(rep.Findings, "Time of a step with a dispatched product and cell, relative to a step with a barrier: "+strings.Join(ratios, ", ")+". In the paper, a global barrier has about a tenth of the latency of a kernel launch. Launches there cost 6 to 10 times the arithmetic of a step.")
		rep.Findings = append(rep.Findings, jumps...)
		barrierAsSuch(rep, on)
		if n := len(dispatched); n > 0 {
			times := dispatched[n-1] // the largest layer is nearest to the paper's 1152 units
			rep.claim(on, "a step with a launch takes about 10 times as long as one with a barrier",
				fmt.Sprintf("a step with a launched operation takes %.2f× the time of a step with a barrier at %d units, %.2f× to %.2f× over all sizes", times, at, slices.Min(dispatched), slices.Max(dispatched)),
				!differ(times, 10), on.say("dispatching an operation to CPU workers is not a kernel launch", ""))
		}
		return rep, nil
	},
	Model: func(rep *Report, _ []results.Record, here *model.Machine) { measuredBarrier(rep, here) },
}

// otherKernels says which kernels each step of product and cell launches at two sizes.
func otherKernels(recs []results.Record, small, large int) string {
	at := func(hidden int) string {
		r := find(recs, productStep, func(p results.Point) bool { return p.Hidden == hidden })
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

// aTenth is the paper's claim of the barrier alone, section 4.3.
const aTenth = "a barrier has about a tenth of the latency of a kernel launch"

// barrierAsSuch compares a GPU's barrier with its launches, as measured by kernels that do nothing
// else: doctor and each run measure them.
func barrierAsSuch(r *Report, on Target) {
	if !on.GPU {
		return // a CPU has no launches
	}
	if on.Barrier == 0 || on.Launch == 0 {
		unmeasured(r, aTenth, "the latency of a barrier or of a launch alone")
		return
	}
	times := on.Launch / on.Barrier
	here := fmt.Sprintf("a barrier of all blocks takes %s and a launch %s, %.2f×", quantity.SI(on.Barrier, "s"), quantity.SI(on.Launch, "s"), times)
	if v := on.InGraph; v > 0 {
		here += fmt.Sprintf("; in a graph a launch takes %s, %.2f×", quantity.SI(v, "s"), v/on.Barrier)
	}
	r.claim(Target{}, aTenth, here, !differ(times, 10), "") // it depends on no size
	r.Findings = append(r.Findings, "Alone, "+here+". Kernels that do nothing else gave these times. Most persistent kernels here need no barrier of all blocks: their blocks exchange states in groups.")
}

// measuredBarrier adds the time of a barrier of a CPU's workers, as measured on the machine.
func measuredBarrier(r *Report, here *model.Machine) {
	if here.GPU != nil || here.Barrier() == 0 { // barrierAsSuch has a GPU's
		return
	}
	words := fmt.Sprintf("a barrier of %d workers takes %s", here.Parts(), quantity.SI(here.Barrier(), "s"))
	r.yardstick(words + " alone; a CPU launches no kernels")
	r.Findings = append(r.Findings, upper(words)+" alone, as doctor measures it.")
}
