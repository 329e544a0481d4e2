package main

import (
	"strings"

	"rnnbench/device/cpu"
	"rnnbench/device/cuda"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/rnn/knob"
	"rnnbench/tuner"
)

// vocabularyOf lists the device knobs for the kind of device that a key names.
func vocabularyOf(device string) []knob.Knob {
	if launches(device) {
		return cuda.Vocabulary()
	}
	return cpu.Vocabulary()
}

// launches reports whether a key names a device on which each operation is a launch.
func launches(device string) bool { return strings.HasPrefix(device, "cuda-") }

// spelledOut formats a technique with its settings for --impl, without settings that are
// defaults at the point on that device.
func spelledOut(name string, knobs knob.Params, at record.Point, device string) string {
	return tuner.Spell(impl.All(), vocabularyOf(device), launches(device), name, knobs, at)
}

// exampleKnobs lists the knobs of a technique: those for the example, then others of sequences with
// lengths of their own.
func exampleKnobs(t rnn.Technique) []knob.Knob {
	at := example()
	var all []knob.Knob
	for _, at.Lengths = range []axis.SequenceLengths{"", "uniform:50%"} {
		problem, err := tuner.Problem(at)
		if err != nil {
			continue
		}
		for _, k := range t.Knobs(problem) {
			if knob.Find(all, k.Name) == nil {
				all = append(all, k)
			}
		}
	}
	return all
}
