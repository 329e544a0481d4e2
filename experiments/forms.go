package experiments

import (
	"maps"

	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// gemmSpec is the rival of a persistent kernel: a product and a cell, each launched at every step.
func gemmSpec(label string, packed int) grid.Spec {
	return spec(label, "cudnnstyle", knob.Params{"transposed": packed, "streams": 1, "overlap": 0, "inputbatch": 0})
}

// byLibrary returns s with every product by the vendor's library in single precision. The paper's
// rivals are that library and Nervana's, section 5.1.
func byLibrary(label string, s grid.Spec) grid.Spec {
	k := knob.Params{"narrow": 2, "split": 2}
	maps.Copy(k, s.Knobs)
	return spec(label, s.Name, k)
}
