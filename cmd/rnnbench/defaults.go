package main

import (
	"strings"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
)

// vocabularyOf lists the knobs of devices of the kind that a key is of.
func vocabularyOf(device string) []knob.Knob {
	if strings.HasPrefix(device, "cuda-") {
		return cuda.Vocabulary()
	}
	return cpu.Vocabulary()
}

// spelledOut writes a technique with its settings at a point as --impl takes it,
// without those that are defaults there.
func spelledOut(name string, knobs knob.Params, at results.Point, device string) string {
	all := vocabularyOf(device)
	if problem, err := tuner.Problem(at); err == nil {
		if t := impl.Lookup(name); t != nil {
			all = append(t.Knobs(problem), all...)
		}
	}
	own := knob.Params{}
	for k, v := range knobs {
		if known := knob.Find(all, k); known == nil || known.Values[0] != v {
			own[k] = v
		}
	}
	return grid.Spec{Name: name, Knobs: own}.String()
}
