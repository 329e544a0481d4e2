package experiments

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// martinPoint returns the network of Figure 1: an embedding of 40 and a polarity in, two maps of 34²
// positions out.
func martinPoint(cell string, steps, batch int) record.Point {
	return record.Point{Cell: cell, Pass: "train", Input: 41, Hidden: 256, Layers: 2, Output: 2 * 34 * 34, Steps: steps, Batch: batch, Precision: "fp32"}
}

// Labels of Figure 1.
const (
	lsScan   = "LS-LSTM, scan"
	lsSerial = "LS-LSTM, step by step"
	lstmBest = "LSTM"

	lstmGraph           = "LSTM, graph"
	lstmPersistentGraph = "LSTM, persistent, graph"
	cudnnLSTM           = "cudnn LSTM"
)

// stepByStep returns the best serial form: all but the recurrence is batched as far as it can be.
func stepByStep(label string) grid.Spec {
	return spec(label, "cudnnstyle", knob.Params{"inputbatch": 0, "overlap": 0, "streams": 1})
}

// scanRows is the number of product rows that a scan on a GPU works on at a time: enough that launch
// overhead is negligible.
const scanRows = 1 << 16

// scanParts are the parts of LS-LSTM by scan, on a GPU one per minibatch.
func scanParts(points []record.Point, on Target) []Part {
	if !on.GPU {
		return []Part{{points, []grid.Spec{spec(lsScan, "scan", nil)}}}
	}
	var parts []Part
	for batch, group := range groupedBy(points, func(p record.Point) int { return p.Batch }) {
		parts = append(parts, Part{group, []grid.Spec{spec(lsScan, "scan", knob.Params{"inputbatch": max(1, scanRows/batch), "graph": 1})}})
	}
	return parts
}

// groupedBy yields points in groups, in the order of their keys.
func groupedBy(points []record.Point, key func(record.Point) int) iter.Seq2[int, []record.Point] {
	groups := map[int][]record.Point{}
	for _, p := range points {
		groups[key(p)] = append(groups[key(p)], p)
	}
	return func(yield func(int, []record.Point) bool) {
		for _, k := range slices.Sorted(maps.Keys(groups)) {
			if !yield(k, groups[k]) {
				return
			}
		}
	}
}

// sameForms returns the LSTMs that can be the fastest, replayed as graphs like the scan.
func sameForms() []grid.Spec {
	return slices.DeleteFunc(lstmForms(), func(s grid.Spec) bool { return s.Label != lstmGraph && s.Label != lstmPersistentGraph })
}

// lstmForms returns other forms of the LSTM on a GPU: as a framework runs one, as a graph, with
// weights on chip, and the vendor's.
func lstmForms() []grid.Spec {
	persistent := spec("LSTM, persistent", "persistent", nil)
	naive := spec("LSTM, naive", "naive", nil)
	forms := []grid.Spec{naive, graphed(lstmGraph, stepByStep("")), persistent, graphed(lstmPersistentGraph, persistent), graphed("LSTM, naive, graph", naive)}
	for _, v := range append(vendors(), eager()...) {
		forms = append(forms, spec(cudnnLSTM+strings.TrimPrefix(v.Label, "cudnn"), v.Name, v.Knobs))
	}
	return forms
}

// events is a record's throughput in 1000 events a second.
func events(r *record.Record) float64 {
	return float64(r.Point.Steps*r.Point.Batch) / r.Seconds() / 1000
}
