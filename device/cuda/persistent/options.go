package persistent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/persistent/kernels"
	"rnnbench/rnn/schedule"
)

// For readers: what else could run a layer, and why it does not. The choice itself is made in
// choose.go.

// A question is a layer, or its gradient, whose options are listed.
type question struct {
	by       *Chooser
	layer    Layer
	backward bool
	usual    []Config // configurations that the chooser considers, the cheapest first
}

// Options lists the variants that do not run op. form is the configuration that does.
func Options(c *Chooser, op schedule.Persistent, form Config) []device.Option {
	return options(c, c.Layer(op), false, form)
}

// BackwardOptions lists the variants that do not run the gradient op.
func BackwardOptions(c *Chooser, op schedule.PersistentBackward, form Config) []device.Option {
	return options(c, c.gradient(op), true, form)
}

// options lists the variants: first those that knobs allow, last those that do not fit.
func options(c *Chooser, l Layer, backward bool, form Config) []device.Option {
	q := question{by: c, layer: l, backward: backward}
	q.usual, _ = c.overShares(func(c *Chooser) ([]Config, string) { return c.configs(l, backward) })
	var all []device.Option
	for _, v := range Variants {
		if v.Backward == q.backward && v != form.variant {
			all = append(all, q.option(v, form))
		}
	}
	if form.Grouped() {
		barrier := barrierOption(q.backward)
		barrier.Why = "it runs only if nothing else fits, or if resident=3 asks for it"
		all = append(all, barrier)
	}
	slices.SortStableFunc(all, func(x, y device.Option) int {
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x.Cycles, y.Cycles))
	})
	return all
}

// place orders options: 0: could run; 1: passed over; 2: of unknown time.
func place(o device.Option) int {
	switch {
	case o.Cycles == 0:
		return 2
	case o.Why != "":
		return 1
	}
	return 0
}

// option returns the best configuration of v that knobs allow. If they allow none, it is the
// nearest one that fits, or it says why none does.
func (q question) option(v *Variant, form Config) device.Option {
	o := device.Option{Variant: v.Name, Exchange: v.Exchange, Source: v.Place()}
	if !v.Feasible(q.by.Properties) {
		o.Why = "the GPU has no " + v.needs
		return o
	}
	if i := slices.IndexFunc(q.usual, func(t Config) bool { return t.variant == v }); i >= 0 {
		return q.usual[i].Option(v.Backward)
	}
	var best Config
	for _, strategy := range v.Strategies {
		all, why := q.only(v, strategy)
		if len(all) == 0 {
			o.Why = why
			continue
		}
		if best.variant == nil || cmp.Or(cmp.Compare(misses(q.by, all[0]), misses(q.by, best)), cheaper(all[0], best)) < 0 {
			best = all[0]
		}
	}
	if best.variant == nil {
		return o
	}
	o = best.Option(v.Backward)
	o.Why = q.passedOver(v, best, form)
	return o
}

// Option describes t, of a layer or its gradient, as an option.
func (t Config) Option(backward bool) device.Option {
	if !t.Grouped() {
		return barrierOption(backward)
	}
	return device.Option{
		Variant: t.variant.Name, Exchange: t.variant.Exchange, Group: t.Group(), Source: t.variant.Place(), Config: t.Words(),
		Cycles: t.cycles, Step: t.Step(), Start: StartTime, Floor: t.Floor(),
	}
}

// barrierOption describes the barrier kernel of a layer, or of its gradient.
func barrierOption(backward bool) device.Option {
	t := barrierConfig()
	o := device.Option{Variant: "barrier", Exchange: "a barrier of all blocks", Group: t.Group(), Source: kernels.BarrierPlace(backward), Config: t.Words()}
	if backward {
		o.Variant = "backward-barrier"
	}
	return o
}

// passedOver says why v, which fits as t, is not considered; form runs instead.
func (q question) passedOver(v *Variant, t, form Config) string {
	ruled := ""
	for _, name := range configKnobs {
		asked := q.by.Knobs[name]
		if asked == 0 || t.Knobs[name] == asked {
			continue
		}
		if why := Setting(name, asked) + " rules it out"; ruled == "" || form.Knobs[name] == asked {
			ruled = why
		}
	}
	switch {
	case ruled != "":
		return ruled
	case (v.tensor || v.Backward) && q.layer.Exact && q.layer.Cell.Kinked():
		return fmt.Sprintf("states of %v may grow beyond what fp16 halves can hold; tensor=1 runs it all the same", q.layer.Cell)
	}
	return cmp.Or(v.aside, "it fits, but others were measured to be faster at this size")
}

// only lists the configurations of v with one strategy, the cheapest first, or says why there are
// none.
func (q question) only(v *Variant, strategy int) (all []Config, why string) {
	probe, target := *q.by, *q.by.Target
	target.Knobs = maps.Clone(q.by.Knobs)
	if target.Knobs == nil {
		target.Knobs = map[string]int{}
	}
	target.Knobs["resident"], target.Knobs["tensor"] = strategy, 2-ints.FromBool(v.tensor)
	probe.Target, probe.explains = &target, true
	all, _ = probe.overShares(func(c *Chooser) (some []Config, no string) {
		some, why = v.list(c, q.layer)
		return some, why
	})
	return all, why
}

// nearest reports whether no, the reason of a division that does not fit, says more than best. A
// lack of registers or memory says the most. Large groups lack the least: groups over the GPU try
// these first, clusters last.
func nearest(best, no string, spread bool) bool {
	lacks := func(s string) bool { return strings.Contains(s, "registers") || strings.Contains(s, "shared memory") }
	return lacks(no) && !(lacks(best) && spread)
}
