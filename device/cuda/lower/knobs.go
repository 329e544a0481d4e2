package lower

import (
	"fmt"

	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Knobs are of forms of kernels, and no form has all of them. What asks for a setting
// that nothing in its schedule goes by would measure something else: it is declined. In
// training it is enough that either a layer or its gradient goes by it.

// taken are the knobs that something goes by, of those that are set.
type taken struct {
	knobs knob.Params
	names map[string]bool
}

// all notes that something goes by knobs of these names.
func (t taken) all(names ...string) {
	for _, name := range names {
		t.names[name] = true
	}
}

// form notes those of its settings that a form has as knobs ask for them.
func (t taken) form(settings knob.Params) {
	for name, v := range settings {
		if t.knobs[name] == v {
			t.names[name] = true
		}
	}
}

// declineKnobs declines a setting that nothing goes by.
func declineKnobs(p Plan) (Plan, error) {
	t := taken{knobs: p.Knobs, names: map[string]bool{}}
	var refused error // why a layer is in no groups of blocks
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
			note(l.config, l.refused, "back")
		}
	}
	return p, p.untaken(t, refused)
}

// product notes the knobs of one.
func (t taken) product(op schedule.Gemm, l *Plan) {
	switch {
	case l.Factors[op.B.M.ID] != nil:
		t.all("narrow", "narrowwidth", "narrowrows")
	case l.IsSplit(op):
		t.all("split")
	default:
		t.all("pick")
	}
}

// untaken declines a setting that is not taken.
func (p *Plan) untaken(t taken, refused error) error {
	form := "no form of a layer that fits has it, with what else is set: try another, or leave it out"
	switch {
	case p.Knobs["resident"] == persistent.WithBarrier:
		form = "one group with a barrier is divided in one way alone: leave it out, or set another form by resident"
	case len(p.Stacks.At) > 0:
		form = "layers that run as one kernel have groups and samples alone: set stack=2, or leave it out"
	}
	const product = "no product here is of so few rows, by packed weights that others do not read, and can be so divided: leave it out"
	for _, k := range []struct{ name, why string }{
		{"resident", form}, {"cluster", form}, {"groups", form}, {"samples", form}, {"tile", form}, {"lanes", form}, {"tensor", form}, {"share", form},
		{"functions", "one group with a barrier has exact ones: leave it out"},
		{"clocks", "no layer here runs in a form that has them: leave it out"},
		{"back", "no gradient here is divided among groups of blocks: leave it out"},
		{"narrowwidth", product}, {"narrowrows", product}, {"narrow", product},
		{"split", "no product here is one that the GPU can split: leave it out"},
		{"pick", "no product here is by one of the algorithms that the library names: leave it out"},
	} {
		v := p.Knobs[k.name]
		switch {
		case v == 0 || t.names[k.name] || v == 2 && (k.name == "narrow" || k.name == "split"): // 2: none is
		case k.why == form && refused != nil:
			return refused
		default:
			return fmt.Errorf("cuda: %s: %w: %s", persistent.Setting(k.name, v), schedule.ErrKnob, k.why)
		}
	}
	return nil
}
