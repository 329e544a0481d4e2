package cuda

import (
	"fmt"
	"math"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Knobs are of forms of kernels, and no form has all of them. What asks for a setting
// that nothing in its schedule goes by would measure something else: it is declined. In
// training it is enough that either a layer or its gradient goes by it.

// takes notes that what is bound goes by knobs of these names.
func (b *binder) takes(names ...string) {
	for _, name := range names {
		b.taken[name] = true
	}
}

// take notes those of its settings that a form has as knobs ask for them.
func (b *binder) take(form knob.Params) {
	for name, v := range form {
		if b.knobs[name] == v {
			b.takes(name)
		}
	}
}

// barrierForm are the settings of one group with a barrier, whose cells have exact
// functions.
func barrierForm() knob.Params { return knob.Params{"resident": 3, "tensor": 2, "functions": 1} }

// closest are those of all, in their order, that have the most of what knobs ask for.
func (b *binder) closest(all []grouping) []grouping {
	var out []grouping
	least := math.MaxInt
	for _, t := range all {
		misses := 0
		for _, name := range []string{"resident", "cluster", "groups", "samples", "tile", "lanes", "tensor"} {
			if v := b.knobs[name]; v != 0 && t.knobs[name] != v {
				misses++
			}
		}
		if misses < least {
			least, out = misses, nil
		}
		if misses == least {
			out = append(out, t)
		}
	}
	return out
}

// untaken declines a setting that nothing bound goes by.
func (b *binder) untaken() error {
	division := "no form of a layer that fits has it, with what else is set: try another, or leave it out"
	switch {
	case b.knobs["resident"] == 3:
		division = "one group with a barrier is divided in one way alone: leave it out, or set another form by resident"
	case len(b.layout.stacks.at) > 0:
		division = "layers that run as one kernel have groups and samples alone: set stack=2, or leave it out"
	}
	const product = "no product here is of so few rows, by packed weights that others do not read, and can be so divided: leave it out"
	for _, k := range []struct{ name, why string }{
		{"resident", division}, {"cluster", division}, {"groups", division}, {"samples", division}, {"tile", division}, {"lanes", division}, {"tensor", division}, {"share", division},
		{"functions", "one group with a barrier has exact ones: leave it out"},
		{"clocks", "no layer here runs in a form that has them: leave it out"},
		{"back", "no gradient here is divided among groups of blocks: leave it out"},
		{"narrowwidth", product}, {"narrowrows", product}, {"narrow", product},
		{"split", "no product here is one that the GPU can split: leave it out"},
		{"pick", "no product here is by one of the algorithms that the library names: leave it out"},
	} {
		v := b.knobs[k.name]
		if v == 0 || b.taken[k.name] || v == 2 && (k.name == "narrow" || k.name == "split") { // 2: none is
			continue
		}
		if k.why == division && b.refused != nil {
			return b.refused
		}
		return fmt.Errorf("cuda: %s=%d: %w: %s", k.name, v, schedule.ErrUnsupported, k.why)
	}
	return nil
}
