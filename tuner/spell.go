package tuner

import (
	"slices"

	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// Spell writes a technique with its settings at a point in the syntax of --impl. It omits settings
// that are the default at that point on every device. vocabulary is the device's.
func Spell(techniques []rnn.Technique, vocabulary []knob.Knob, name string, knobs knob.Params, at results.Point) string {
	all := vocabulary
	var launched []knob.Knob
	i := slices.IndexFunc(techniques, func(t rnn.Technique) bool { return t.Name() == name })
	if problem, err := Problem(at); err == nil && i >= 0 {
		all = slices.Concat(rnn.KnobsOf(techniques[i], problem, false), all)
		launched = rnn.KnobsOf(techniques[i], problem, true)
	}
	own := knob.Params{}
	for k, v := range knobs {
		known, there := knob.Find(all, k), knob.Find(launched, k)
		if known == nil || known.Values[0] != v || there != nil && there.Values[0] != v {
			own[k] = v
		}
	}
	return grid.Spec{Name: name, Knobs: own}.String()
}
