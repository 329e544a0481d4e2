// Package form has the techniques, with their labels, that several experiments measure.
package form

import (
	"maps"

	"rnnbench/experiments/study"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// GemmSpec is the rival of a persistent kernel: a product and a cell, each launched at every step.
func GemmSpec(label string, packed int) grid.Spec {
	return study.Spec(label, "cudnnstyle", knob.Params{"transposed": packed, "streams": 1, "overlap": 0, "inputbatch": 0})
}

// ByLibrary returns s with every product by the vendor's library in single precision. The paper's
// rivals are that library and Nervana's, section 5.1.
func ByLibrary(label string, s grid.Spec) grid.Spec {
	k := knob.Params{"narrow": 2, "split": 2}
	maps.Copy(k, s.Knobs)
	return study.Spec(label, s.Name, k)
}
