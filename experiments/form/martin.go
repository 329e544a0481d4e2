package form

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// MartinPoint returns the network of Figure 1: an embedding of 40 and a polarity in, two maps of 34²
// positions out.
func MartinPoint(cell string, steps, batch int) record.Point {
	return record.Point{Cell: cell, Pass: "train", Input: 41, Hidden: 256, Layers: 2, Output: 2 * 34 * 34, Steps: steps, Batch: batch, Precision: "fp32"}
}

// Labels of Figure 1.
const (
	LSScan   = "LS-LSTM, scan"
	LSSerial = "LS-LSTM, step by step"
	LSTMBest = "LSTM"

	LSTMGraph           = "LSTM, graph"
	LSTMPersistentGraph = "LSTM, persistent, graph"
	CuDNNLSTM           = "cudnn LSTM"
)

// StepByStep returns the best serial form: all but the recurrence is batched as far as it can be.
func StepByStep(label string) grid.Spec {
	return study.Spec(label, "cudnnstyle", knob.Params{"inputbatch": 0, "overlap": 0, "streams": 1})
}

// ScanRows is the number of product rows that a scan on a GPU works on at a time: enough that launch
// overhead is negligible.
const ScanRows = 1 << 16

// ScanParts are the parts of LS-LSTM by scan, on a GPU one per minibatch.
func ScanParts(points []record.Point, on study.Target) []study.Part {
	if !on.GPU {
		return []study.Part{{Points: points, Specs: []grid.Spec{study.Spec(LSScan, "scan", nil)}}}
	}
	var parts []study.Part
	for batch, group := range groupedBy(points, func(p record.Point) int { return p.Batch }) {
		parts = append(parts, study.Part{Points: group, Specs: []grid.Spec{study.Spec(LSScan, "scan", knob.Params{"inputbatch": max(1, ScanRows/batch), "graph": 1})}})
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

// SameForms returns the LSTMs that can be the fastest, replayed as graphs like the scan.
func SameForms() []grid.Spec {
	return slices.DeleteFunc(LSTMForms(), func(s grid.Spec) bool { return s.Label != LSTMGraph && s.Label != LSTMPersistentGraph })
}

// LSTMForms returns other forms of the LSTM on a GPU: as a framework runs one, as a graph, with
// weights on chip, and the vendor's.
func LSTMForms() []grid.Spec {
	persistent := study.Spec("LSTM, persistent", "persistent", nil)
	naive := study.Spec("LSTM, naive", "naive", nil)
	forms := []grid.Spec{naive, study.Graphed(LSTMGraph, StepByStep("")), persistent, study.Graphed(LSTMPersistentGraph, persistent), study.Graphed("LSTM, naive, graph", naive)}
	for _, v := range append(Vendors(), Eager()...) {
		forms = append(forms, study.Spec(CuDNNLSTM+strings.TrimPrefix(v.Label, "cudnn"), v.Name, v.Knobs))
	}
	return forms
}
