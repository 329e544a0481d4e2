package martin

import (
	"fmt"
	"math"
	"slices"
	"strings"

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

// martinWays returns the ways to run the recurrence of a layer.
func martinWays(on study.Target) []grid.Spec {
	if on.GPU {
		return []grid.Spec{form.StepByStep("step by step"), study.Graphed("step by step, graph", form.StepByStep("")), study.Spec(serialKernel, "scan", knob.Params{"inputbatch": 0, "graph": 1, "scanserial": 1}), study.Spec("scan", "scan", knob.Params{"inputbatch": 0, "graph": 1})}
	}
	return []grid.Spec{
		form.StepByStep("step by step"),
		study.Spec("one worker", "scan", knob.Params{"scanworkers": 1}),
		study.Spec("channels split", "scan", knob.Params{"scansplit": 1}),
		study.Spec("time split", "scan", knob.Params{"scansplit": allWorkers}),
	}
}

const allWorkers = 1024 // more than there are: it takes all

// serialKernel is the rival on a GPU: one kernel, whose threads have a channel each and loop over time.
const serialKernel = "serial kernel"

// Kernel is the experiment martin-kernel.
var Kernel = study.Experiment{
	ID: "martin-kernel", Title: "The recurrence of a layer, serial and parallel, over length and channels",
	Source: "Martin & Cundy 2017, sections 2.1 and 2.3",
	Unlike: "gates and the product with one input are included",
	Parts: func(s study.Size, on study.Target) []study.Part {
		hidden, steps := []int{16, 64, 256, 1024}, []int{256, 1024, 4096, 16384, 65536}
		if s == study.Quick {
			hidden, steps = []int{16, 256}, []int{64, 512, 4096}
		}
		var all []record.Point
		for _, h := range hidden {
			for _, n := range steps {
				all = append(all, record.Point{Cell: "gilr", Pass: "forward", Input: 1, Hidden: h, Layers: 1, Steps: n, Batch: 1, Precision: "fp32"})
			}
		}
		parts := []study.Part{{Points: all, Specs: martinWays(on)}}
		if !on.GPU {
			parts = append(parts, study.Part{Points: all, Specs: processorWays(on)})
		}
		return parts
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		t := &table.Table{
			Title:   "Forward pass of a GILR layer: one input, one sequence",
			Columns: []table.Column{{Name: "n", Key: "hidden", Right: true}, {Name: "T", Key: "steps", Right: true}},
		}
		ways := martinWays(on)
		for _, w := range ways {
			t.Columns = append(t.Columns, table.Column{Name: w.Label, Key: strings.ReplaceAll(w.Label, " ", "_") + "_s", Right: true})
		}
		last := ways[len(ways)-1].Label
		t.Columns = append(t.Columns, table.Column{Name: on.Say("one worker", serialKernel) + " / " + last, Key: "speedup", Right: true},
			table.Column{Name: "copy", Key: "copy_s", Right: true}, table.Column{Name: "copy / " + last, Key: "of_copy", Right: true})
		serial := map[bool]int{false: 1, true: 2}[on.GPU] // the index of the way that the last one is compared with
		var wins int
		var gains, all, overSteps, overGraphs []float64
		for _, p := range pick.Points(recs) {
			row := []table.Cell{table.Int(p.Hidden), table.Int(p.Steps)}
			var rec []*record.Record
			for _, w := range ways {
				r := pick.Find(recs, w.Label, func(q record.Point) bool { return q == p })
				if rec = append(rec, r); r == nil {
					row = append(row, show.Missing())
					continue
				}
				row = append(row, table.Time(r))
			}
			up, copied, of := math.NaN(), show.Missing(), math.NaN()
			if b := rec[len(rec)-1]; b != nil && on.Copy > 0 {
				sec := float64(b.Work.Bytes) / on.Copy
				copied, of = table.Number(sec, quantity.SI(sec, "s")), 100*sec/b.Seconds()
			}
			if a, b := rec[serial], rec[len(rec)-1]; a != nil && b != nil {
				up = a.Seconds() / b.Seconds()
				all = append(all, up)
				if up > 1 {
					wins++
				}
			}
			if on.GPU && rec[0] != nil && rec[3] != nil {
				overSteps = append(overSteps, rec[0].Seconds()/rec[3].Seconds())
			}
			if on.GPU && rec[1] != nil && rec[3] != nil {
				overGraphs = append(overGraphs, rec[1].Seconds()/rec[3].Seconds())
			}
			if !on.GPU && rec[0] != nil && rec[2] != nil {
				gains = append(gains, rec[0].Seconds()/rec[2].Seconds())
			}
			t.Rows = append(t.Rows, append(row, show.Ratio(up), copied, show.Number(of, "%.1f %%")))
		}
		if len(t.Rows) == 0 {
			return nil, fmt.Errorf("experiments: no records of the recurrence")
		}
		rep := &study.Report{Tables: []*table.Table{t}}
		if on.Copy > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("Copy: the time to read and write as many bytes as the operations do, at the measured %s. The bytes include the product with one input. Copy is the limit where the data does not fit into caches.", quantity.SI(on.Copy, "B/s")))
		}
		if on.GPU {
			kernelOnGPU(rep, recs, on, all, overSteps, overGraphs)
		} else {
			if len(all) > 0 {
				rep.Findings = append(rep.Findings, fmt.Sprintf("Splitting time among %s is faster than one worker at %d of %d points, gates and product included.", quantity.Plural(workers(recs[0].Device), "worker"), wins, len(all)))
			}
			overProcessors(rep, recs, on)
			rep.Findings = append(rep.Findings, "The times of the first table include the gates and the product with one input, which all workers share in every column.")
		}
		if len(gains) > 0 {
			rep.Findings = append(rep.Findings, fmt.Sprintf("A scan with its channels split is %.1f× as fast as one operation per step (geometric mean).", estimate.Geomean(gains)))
		}
		some := slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool {
			return !slices.ContainsFunc(ways, func(w grid.Spec) bool { return w.Label == r.Impl.Label })
		})
		fig, err := plots.Lines(some, plots.Spec{X: "steps", Y: "events", Panel: "hidden", Machine: on.Name, Title: "GILR layer: events per second over length, one sequence"})
		rep.Add("martin-kernel", fig, err)
		return rep, nil
	},
}

// workers returns the number of workers that a device's key ends with; 1 if it names none.
func workers(device string) int {
	var n int
	if _, err := fmt.Sscanf(device[strings.LastIndex(device, "-")+1:], "%dt", &n); err != nil || n < 1 {
		return 1
	}
	return n
}
