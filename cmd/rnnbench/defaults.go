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

// vocabularyOf lists the device knobs for the kind of device that a key names.
func vocabularyOf(device string) []knob.Knob {
	if strings.HasPrefix(device, "cuda-") {
		return cuda.Vocabulary()
	}
	return cpu.Vocabulary()
}

// spelledOut formats a technique with its settings for --impl, without settings that are
// defaults at the point.
func spelledOut(name string, knobs knob.Params, at results.Point, device string) string {
	return tuner.Spell(impl.All(), vocabularyOf(device), name, knobs, at)
}
