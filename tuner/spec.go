package tuner

import (
	"slices"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// FormatSpec writes a technique with its settings at a point in the syntax of --impl. It omits settings
// that are the default at that point on the device: vocabulary lists its knobs, and launched says
// that each operation is a launch on it, which changes some defaults.
func FormatSpec(techniques []rnn.Technique, vocabulary []knob.Knob, launched bool, name string, knobs knob.Params, at record.Point) string {
	all := vocabulary
	i := slices.IndexFunc(techniques, func(t rnn.Technique) bool { return t.Name() == name })
	if problem, err := Problem(at); err == nil && i >= 0 {
		all = slices.Concat(rnn.KnobsOf(techniques[i], problem, launched), all)
	}
	own := knob.Params{}
	for k, v := range knobs {
		known := knob.Find(all, k)
		gone := known == nil && i >= 0 && v == 0 // a knob of an earlier version, which was not turned
		if !gone && (known == nil || known.Values[0] != v) {
			own[k] = v
		}
	}
	return grid.Spec{Name: name, Knobs: own}.String()
}
