package oracle

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/rnn"
	"rnnbench/rnn/graph"
)

// CompareGraph compares an answer of g, computed in single precision, with that of its reference. It
// returns the deviation of the tensor that uses most of its tolerance. Tolerances follow Tolerance:
// rounding errors add like a random walk, within each sum and over the layers and frames that a
// signal passes.
func CompareGraph(g *graph.Graph, size graph.Size, got, want graph.Values) (Deviation, error) {
	widest, classes := 1, 0
	for k, l := range g.Layers {
		terms := 0
		for _, m := range g.Into(k) {
			terms++
			if c := g.Connections[m]; c.Weight == graph.Full && g.Layers[c.From].Input != graph.Symbols {
				terms += g.Layers[c.From].Size
			}
		}
		widest = max(widest, terms)
		if l.Activation == graph.Softmax {
			classes = max(classes, l.Size)
		}
	}
	walk := float64(widest) * float64(size.Frames()) * float64(len(g.Layers))
	tolerance := func(name string) float64 {
		w := walk
		if size.Train && len(name) > 5 && name[:5] == "grad " {
			w = 4*walk + float64(size.Frames()*size.Batch) + float64(classes)
		}
		return 8 * rnn.FP32.Epsilon() * math.Sqrt(w+1)
	}
	worst := Deviation{Tolerance: 1}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		have, w := got[name], want[name]
		if len(have) != len(w) {
			return worst, fmt.Errorf("oracle: %q has %d values where %d are expected", name, len(have), len(w))
		}
		d, scale := Deviation{Tensor: name, Tolerance: tolerance(name)}, 0.0
		for i, e := range w {
			scale = max(scale, math.Abs(e))
			switch diff := math.Abs(have[i] - e); {
			case math.IsNaN(diff):
				d.MaxAbs, d.Col = math.Inf(1), i
			case diff > d.MaxAbs:
				d.MaxAbs, d.Col = diff, i
			}
		}
		if d.Error = d.MaxAbs; scale > 0 {
			d.Error /= scale
		}
		worst = worst.OrWorse(d)
	}
	return worst, nil
}
