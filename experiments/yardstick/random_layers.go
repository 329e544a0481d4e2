package yardstick

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// A reach is a range of whole numbers, both ends included.
type reach struct{ from, to int }

// draw takes one at random, evenly over the logarithm.
func (r reach) draw(rng *rand.Rand) int {
	lo, hi := math.Log(float64(r.from)), math.Log(float64(r.to))
	return int(math.Round(math.Exp(lo + (hi-lo)*rng.Float64())))
}

// A layerDraw says how layers are drawn.
type layerDraw struct {
	layers               int
	hidden, batch, steps reach
	flops                float64 // of a run at most, roughly: larger layers get fewer steps and sequences
}

// layerDrawOf returns the draw of a size. The full one on a GPU has layers of all sizes that fit
// there.
func layerDrawOf(s study.Size, on study.Target) layerDraw {
	d := layerDraw{layers: 60, hidden: reach{24, 3500}, batch: reach{1, 400}, steps: reach{40, 600}, flops: 3e12}
	switch {
	case s == study.Quick && on.GPU:
		d.layers = 20
	case s == study.Quick:
		d.layers, d.hidden, d.batch, d.steps, d.flops = 12, reach{24, 700}, reach{1, 64}, reach{20, 200}, 2e9
	case !on.GPU:
		d.flops = 3e10
	}
	return d
}

// fewestSteps is the least number of steps that a layer may be cut to.
const fewestSteps = 20

// draw draws layers from a seed, which alone decides them. Six in ten have a multiple of 32 units.
func (d layerDraw) draw(seed uint64) []record.Point {
	rng := rand.New(rand.NewPCG(seed, 0))
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	var all []record.Point
	for len(all) < d.layers {
		p := record.Point{Hidden: d.hidden.draw(rng), Batch: d.batch.draw(rng), Steps: d.steps.draw(rng)}
		if rng.Float64() < 0.6 {
			p.Hidden = max(16, p.Hidden/32*32)
		}
		p.Layers = []int{1, 1, 1, 2, 3}[rng.IntN(5)]
		p.Cell = one("lstm", "lstm", "gru", "rnn-tanh", "rnn-relu")
		p.Precision = one("fp32", "bf16", "bf16", "fp16")
		p.Pass = "forward"
		if rng.Float64() < 0.3 {
			p.Pass = "train"
		}
		p.Input = p.Hidden
		for d.work(p) > d.flops && (p.Steps > fewestSteps || p.Batch > 1) {
			p.Steps, p.Batch = max(fewestSteps, p.Steps/2), max(1, p.Batch/2)
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// work is roughly the FLOPs of a run, as if all cells had four gates.
func (d layerDraw) work(p record.Point) float64 {
	passes := 1.0
	if p.Pass == "train" {
		passes = 3
	}
	return 16 * float64(p.Hidden) * float64(p.Hidden) * float64(p.Batch) * float64(p.Steps) * float64(p.Layers) * passes
}

// RandomLayers is the experiment random-layers.
var RandomLayers = study.Experiment{
	ID: "random-layers", Title: "Layers drawn at random: auto against the fastest technique and against rivals", Source: "rnnbench; --seed draws the layers",
	TakesRivals: true,
	Parts: func(s study.Size, on study.Target) []study.Part {
		return byAuto(layerDrawOf(s, on).draw(on.Seed), on)
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep, err := reportAuto(recs, on, "random-layers", "Layers drawn at random", 10)
		if err != nil {
			return nil, err
		}
		all := pick.Points(recs)
		span := func(of func(record.Point) int) string {
			least := func(a, b record.Point) int { return of(a) - of(b) }
			return fmt.Sprintf("%d to %d", of(slices.MinFunc(all, least)), of(slices.MaxFunc(all, least)))
		}
		drawn := fmt.Sprintf("These layers were drawn from seed %d, evenly over the logarithm of each size: %s units, %s sequences, %s steps, %s layers. Another --seed draws others.", on.Seed,
			span(func(p record.Point) int { return p.Hidden }), span(func(p record.Point) int { return p.Batch }),
			span(func(p record.Point) int { return p.Steps }), span(func(p record.Point) int { return p.Layers }))
		rep.Findings = slices.Insert(rep.Findings, 0, drawn)
		return rep, nil
	},
}
