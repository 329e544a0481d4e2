package form

import (
	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A Rung is a stage of the ladder of Appleyard et al. (2016), Table 1: an LSTM of 512 units, batch
// 64, four layers, on an M40.
type Rung struct {
	Label string
	Knobs knob.Params // nil: the naive technique
	Paper float64     // µs per cell
	Up    float64     // speed-up that the paper prints
}

// Ladder returns the stages, in their order.
func Ladder(layers int) []Rung {
	at := func(streams, fused, transposed, batch, overlap int) knob.Params {
		return knob.Params{"grouped": 1, "streams": streams, "fused": fused, "transposed": transposed, "inputbatch": batch, "overlap": overlap}
	}
	return []Rung{
		{"0 naive", nil, 777, 1.0},
		{"1 grouped", at(1, 0, 0, 1, 0), 400, 1.9},
		{"2 streamed", at(2, 0, 0, 1, 0), 280, 2.8},
		{"3 fused", at(2, 1, 0, 1, 0), 146, 5.3},
		{"4 transposed", at(2, 1, 1, 1, 0), 125, 6.2},
		{"5 inputs ×2", at(2, 1, 1, 2, 0), 119, 6.5},
		{"6 overlapped", at(2*layers, 1, 1, 2, 1), 70, 11.1},
	}
}

// LadderSpecs returns the stages as techniques.
func LadderSpecs(layers int) []grid.Spec {
	var specs []grid.Spec
	for _, r := range Ladder(layers) {
		if r.Knobs == nil {
			specs = append(specs, study.Spec(r.Label, "naive", nil))
		} else {
			specs = append(specs, study.Spec(r.Label, "cudnnstyle", r.Knobs))
		}
	}
	return specs
}

// AsGraph is the label of the last stage replayed as a graph.
const AsGraph = "6 as a graph"

// GraphAndForms returns the last stage replayed as a graph, then forms of NVIDIA's library.
func GraphAndForms(layers int, forms []grid.Spec) []grid.Spec {
	return append(SincePaper(layers)[:1], forms...)
}

// SincePaper returns what the paper could not yet compare with its ladder: the last stage replayed
// as a graph, and today's version of the library that the paper describes.
func SincePaper(layers int) []grid.Spec {
	specs := LadderSpecs(layers)
	return append([]grid.Spec{study.Graphed(AsGraph, specs[len(specs)-1])}, Vendors()[0])
}

// LSTM4 returns the LSTM of the ladder.
func LSTM4() record.Point {
	return record.Point{Cell: "lstm", Pass: "forward", Hidden: 512, Input: 512, Batch: 64, Steps: 100, Layers: 4, Precision: "fp32"}
}
