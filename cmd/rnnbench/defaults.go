package main

import (
	"strings"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/results"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
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
	return tuner.Spell(impl.All(), vocabularyOf(device), name, knobs, at)
}
