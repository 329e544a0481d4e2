package lower

import (
	"fmt"

	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// No kernel has all knobs. A setting is declined if no kernel of the schedule has the knob: the run
// would not measure what the setting says. In training it is enough that either a layer or its
// gradient has the knob.

// usedKnobs are the knobs that are set and that some kernel uses.
type usedKnobs struct {
	knobs knob.Params
	names map[string]bool
}

// all notes that some kernel uses the knobs of these names.
func (t usedKnobs) all(names ...string) {
	for _, name := range names {
		t.names[name] = true
	}
}

// form notes the settings of a configuration that equal what knobs ask for.
func (t usedKnobs) form(settings knob.Params) {
	for name, v := range settings {
		if t.knobs[name] == v {
			t.names[name] = true
		}
	}
}

// declineKnobs declines a setting that no kernel uses.
func declineKnobs(p Lowering) (Lowering, error) {
	t := usedKnobs{knobs: p.Knobs, names: map[string]bool{}}
	var refused error // why a layer has no grouped kernel
	note := func(form persistent.Config, no error, also ...string) {
		t.form(form.Knobs)
		if form.Grouped() {
			t.all(append(also, "share", "functions")...)
		} else {
			refused = no
		}
	}
	for i, n := range p.schedule.Nodes {
		switch op := n.Op.(type) {
		case schedule.Gemm:
			if !p.Inside[i] {
				t.product(op, &p)
			}
		case schedule.Persistent:
			if p.Inside[i] {
				continue
			}
			if p.Stacks.At[i] != nil {
				t.form(knob.Params{"tensor": 1})
				t.all("groups", "samples", "functions", "clocks")
				continue
			}
			l := p.layers[len(p.schedule.Prepare)+i]
			if l.err != nil {
				return p, l.err
			}
			note(l.config, l.refused, "clocks")
		case schedule.PersistentBackward:
			l := p.layers[len(p.schedule.Prepare)+i]
			if l.err != nil {
				return p, l.err
			}
			if l.stepwise { // it has no knobs
				l.config = persistent.Config{}
			}
			note(l.config, l.refused, "back")
		}
	}
	return p, p.declineUnused(t, refused)
}

// product notes the knobs that a product uses.
func (t usedKnobs) product(op schedule.Gemm, l *Lowering) {
	switch {
	case l.Factors[op.B.M.ID] != nil:
		t.all("narrow", "narrowwidth", "narrowrows")
	case l.IsSplit(op):
		t.all("split")
	}
}

// declineUnused declines a setting that no kernel uses.
func (p *Lowering) declineUnused(t usedKnobs, refused error) error {
	form := "no configuration that fits has this setting with the others: try another value, or leave it out"
	switch {
	case p.Knobs["resident"] == persistent.WithBarrier:
		form = "the barrier kernel has one configuration: leave it out, or set another value of resident"
	case len(p.Stacks.At) > 0:
		form = "layers that run as one kernel have the knobs groups and samples alone: set stack=2, or leave it out"
	}
	const product = "no product in this schedule is small enough for the skinny kernel: leave it out"
	for _, k := range []struct{ name, why string }{
		{"resident", form}, {"cluster", form}, {"groups", form}, {"samples", form}, {"tile", form}, {"lanes", form}, {"tensor", form}, {"share", form},
		{"ring", form}, {"stage", form}, {"near", form}, {"far", form}, {"parts", form}, {"kept", form}, {"look", form}, {"ahead", form}, {"wideback", form},
		{"functions", "the barrier kernel has exact functions: leave it out"},
		{"clocks", "no layer in this schedule runs by a kernel that has clocks: leave it out"},
		{"back", "no gradient in this schedule runs in groups of blocks: leave it out"},
		{"narrowwidth", product}, {"narrowrows", product}, {"narrow", product},
		{"split", "no product in this schedule can be split on this GPU: leave it out"},
	} {
		v := p.Knobs[k.name]
		switch {
		case v == 0 || t.names[k.name] || v == 2 && (k.name == "narrow" || k.name == "split"): // 2: none runs so
		case k.why == form && refused != nil:
			return refused
		default:
			return fmt.Errorf("cuda: %s: %w: %s", persistent.Setting(k.name, v), schedule.ErrKnob, k.why)
		}
	}
	return nil
}
