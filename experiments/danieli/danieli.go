// Package danieli compares Newton's method for all steps at once with a serial kernel, as ParaRNN of
// Danieli and others (2025, arXiv:2510.21450) and DEER of Lim and others (2024, arXiv:2309.12252) do.
// It asks for which sizes that pays: their rivals launch each step, ours is one kernel for all steps.
package danieli

import (
	"slices"
	"sync"

	"rnnbench/cells"
	"rnnbench/experiments/form"
	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Crossover is the experiment newton-crossover.
var Crossover = study.Experiment{
	ID: "newton-crossover", Title: "Newton's method for all steps against a serial kernel, over channels and steps",
	Source: "Danieli et al. 2025 (ParaRNN); Lim et al. 2024 (DEER)", Apart: true,
	Unlike: "a layer's forward pass alone, with the product of one input",
	Parts:  parts,
	Report: reportCrossover,
}

// Labels of the ways to run a layer.
const (
	newton   = "newton"
	serial   = "serial kernel" // a thread, or a lane of a vector, has a channel and loops over time
	launched = "step by step"  // a launch a step, as the papers' rivals
	single   = "single scan"   // of the surrogate: a bound of what one iteration costs
)

// surrogate is a linear recurrence of the same shape: a GRU whose gates do not read the state.
const surrogate = "mingru"

// diagonal registers the cell whose units read their own states alone, and returns its name.
var diagonal = sync.OnceValue(func() string {
	c, err := cells.Load("gru-diag")
	if err != nil {
		panic(err) // it is embedded
	}
	return c.Name
})

// A width is a number of channels, as sequences and units.
type width struct{ batch, hidden int }

// gains says how large recurrent weights are, in percent of those usually drawn.
var gains = []int{25, 100, 400, 1600}

// layers returns points of the map: of each width all steps up to most values, of which memory has
// several.
func layers(widths []width, steps []int, most int) (all []record.Point) {
	for _, w := range widths {
		for _, n := range steps {
			if w.batch*w.hidden*n <= most {
				all = append(all, record.Point{Cell: diagonal(), Pass: "forward", Input: 1, Hidden: w.hidden, Layers: 1, Steps: n, Batch: w.batch, Precision: "fp32"})
			}
		}
	}
	return all
}

// stronger returns layers with larger and smaller recurrent weights. The map has none of these widths.
func stronger(s study.Size) (all []record.Point) {
	steps := []int{256}
	if s != study.Quick {
		steps = []int{1 << 10, 1 << 13}
	}
	for _, p := range layers([]width{{1, 24}, {8, 48}}, steps, 1<<22) {
		for _, p.Gain = range gains {
			all = append(all, p)
		}
	}
	return all
}

// points returns the map that a size has on a device.
func points(s study.Size, on study.Target) []record.Point {
	switch {
	case s == study.Quick && on.GPU:
		return layers([]width{{1, 8}, {1, 256}, {16, 256}, {64, 1024}}, []int{256, 4096}, 1<<24)
	case s == study.Quick:
		return layers([]width{{1, 1}, {1, 64}, {8, 64}}, []int{256, 4096}, 1<<18)
	case !on.GPU:
		return layers([]width{{1, 1}, {1, 16}, {1, 64}, {1, 256}, {8, 64}, {8, 512}}, []int{256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18}, 1<<22)
	}
	all := layers([]width{{1, 8}, {1, 32}, {1, 256}, {1, 1024}, {8, 256}, {4, 1024}, {8, 2048}, {64, 1024}, {64, 4096}}, []int{256, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20}, 1<<26)
	for _, odd := range []struct {
		width
		steps int
	}{{width{16, 768}, 1024}, {width{64, 1024}, 512}} { // where a serial kernel won in first trials
		all = append(all, layers([]width{odd.width}, []int{odd.steps}, 1<<26)...)
	}
	return all
}

// mostLaunched is the most steps of which each is launched, since thousands of launches tell as much as more.
const mostLaunched = 4096

func parts(s study.Size, on study.Target) []study.Part {
	all := points(s, on)
	specs := []grid.Spec{study.Spec(newton, "newton", nil), study.Spec(serial, "persistent", nil)}
	scan := study.Spec(single, "scan", nil)
	if on.GPU {
		for i, x := range specs {
			specs[i] = study.Graphed(x.Label, x)
		}
		scan = study.Graphed(single, scan)
	}
	linear := slices.Clone(all)
	for i := range linear {
		linear[i].Cell = surrogate
	}
	list := []study.Part{{Points: all, Specs: specs}, {Points: linear, Specs: []grid.Spec{scan}}}
	if on.GPU {
		short := slices.DeleteFunc(slices.Clone(all), func(p record.Point) bool { return p.Steps > mostLaunched })
		list = append(list, study.Part{Points: short, Specs: []grid.Spec{form.StepByStep(launched)}})
	}
	return append(list, study.Part{Points: stronger(s), Specs: specs})
}
