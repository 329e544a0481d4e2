package tuner

import (
	"slices"

	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Spell writes a technique with its settings at a point as --impl takes it, without
// those that are defaults there. vocabulary is that of the device.
func Spell(techniques []rnn.Technique, vocabulary []knob.Knob, name string, knobs knob.Params, at results.Point) string {
	all := vocabulary
	i := slices.IndexFunc(techniques, func(t rnn.Technique) bool { return t.Name() == name })
	if problem, err := Problem(at); err == nil && i >= 0 {
		all = slices.Concat(techniques[i].Knobs(problem), all)
	}
	own := knob.Params{}
	for k, v := range knobs {
		if known := knob.Find(all, k); known == nil || known.Values[0] != v {
			own[k] = v
		}
	}
	return grid.Spec{Name: name, Knobs: own}.String()
}
