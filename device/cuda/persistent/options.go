package persistent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// What else could run a layer, and why it does not: for who asks. The choice itself is in
// choose.go.

// A question is what options are listed for, by a chooser.
type question struct {
	by       *Chooser
	cell     *cell.Cell
	layer    Layer
	backward bool
	usual    []Config // that the chooser considers
}

// Options lists the variants that do not run op, which runs by form.
func Options(c *Chooser, op schedule.Persistent, form Config) []device.Option {
	q := question{by: c, cell: op.Cell, layer: c.layer(op)}
	q.usual, _ = c.forwardConfigs(q.cell, q.layer)
	return q.options(form)
}

// BackwardOptions lists the variants that do not run the gradient op.
func BackwardOptions(c *Chooser, op schedule.PersistentBackward, form Config) []device.Option {
	q := question{by: c, cell: op.Cell, layer: c.gradient(op), backward: true}
	q.usual, _ = c.backwardConfigs(q.cell, q.layer)
	return q.options(form)
}

func (q question) options(form Config) []device.Option {
	var all []device.Option
	for _, v := range Variants {
		if v.Backward == q.backward && v != form.variant {
			all = append(all, q.option(v))
		}
	}
	if form.Grouped() {
		all = append(all, device.Option{Variant: "barrier", Exchange: "a barrier of all blocks", Config: Config{}.Words(), Why: "it runs only if nothing else fits, or if resident=3 asks for it"})
	}
	slices.SortStableFunc(all, func(x, y device.Option) int {
		if known := cmp.Compare(min(y.Cycles, 1), min(x.Cycles, 1)); known != 0 {
			return known
		}
		return cmp.Compare(x.Cycles, y.Cycles)
	})
	return all
}

// option is the best configuration of v, or why there is none.
func (q question) option(v *Variant) device.Option {
	o := device.Option{Variant: v.Name, Exchange: v.Exchange}
	if !v.Feasible(q.by.Properties) {
		o.Why = "the GPU has no clusters of blocks"
		return o
	}
	var best Config
	for _, strategy := range v.Strategies {
		all, why := q.only(v, strategy)
		if len(all) == 0 {
			o.Why = why
			continue
		}
		if best.variant == nil || all[0].cycles < best.cycles {
			best = all[0]
		}
	}
	if best.variant == nil {
		return o
	}
	o = best.Option()
	o.Why = q.passedOver(v, best)
	return o
}

// Option is t as an option.
func (t Config) Option() device.Option {
	if !t.Grouped() {
		return device.Option{Variant: "barrier", Exchange: "a barrier of all blocks", Config: t.Words()}
	}
	return device.Option{Variant: t.variant.Name, Exchange: t.variant.Exchange, Config: t.Words(), Cycles: t.cycles, Step: t.Step(), Floor: t.Floor()}
}

// passedOver is why v, which fits, is not considered; "": it is, and others are expected
// to be faster.
func (q question) passedOver(v *Variant, t Config) string {
	for _, name := range []string{"resident", "tensor"} {
		if asked := q.by.Knobs[name]; asked != 0 && t.Knobs[name] != asked {
			return Setting(name, asked) + " asks for another"
		}
	}
	switch considered := slices.ContainsFunc(q.usual, func(t Config) bool { return t.variant == v }); {
	case considered:
		return ""
	case v != simtVariant && q.layer.exact && q.cell.Kinked():
		return fmt.Sprintf("halves do not hold the states of %v, which may grow; tensor=1 takes it all the same", q.cell)
	}
	return "it fits, but others were measured to be faster at this size"
}

// only lists the configurations of v with one strategy, the cheapest first, or says why
// there are none.
func (q question) only(v *Variant, strategy int) (all []Config, why string) {
	probe, target := *q.by, *q.by.Target
	target.Knobs = maps.Clone(q.by.Knobs)
	if target.Knobs == nil {
		target.Knobs = map[string]int{}
	}
	target.Knobs["resident"], target.Knobs["tensor"] = strategy, 1
	if v == simtVariant || v == backwardSIMTVariant {
		target.Knobs["tensor"] = 2
	}
	probe.Target = &target
	all, _ = probe.overShares(func(c *Chooser) ([]Config, string) {
		some, no := q.kind(c, v)
		why = no
		return slices.DeleteFunc(some, func(t Config) bool { return t.variant != v }), no
	})
	return all, why
}

// kind lists the configurations of the kind that v is of, as c allows them.
func (q question) kind(c *Chooser, v *Variant) ([]Config, string) {
	switch {
	case v == backwardBulkVariant:
		return c.backwardBulks(q.layer, unitRegisters(q.cell), len(carried(q.cell)))
	case v.Backward:
		return c.backwardScatters(q.layer, unitRegisters(q.cell))
	}
	best := ""
	all, why := c.overGroupSizes(q.layer, func(l Layer, spread bool, blocks int, add func(Config, string)) {
		noting := func(t Config, no string) {
			if nearest(best, no, spread) {
				best = no
			}
			add(t, no)
		}
		switch v {
		case simtVariant:
			c.simts(l, spread, blocks, noting)
		case wholeRowVariant:
			c.wholeRows(l, spread, blocks, noting)
		default:
			c.mmas(l, len(q.cell.States), spread, blocks, noting)
		}
	})
	return all, cmp.Or(best, why)
}

// nearest reports whether no, of a division that does not fit, says more than best. What
// lacks registers or memory does. Large groups lack the least; over the GPU they come
// first, and of clusters last.
func nearest(best, no string, spread bool) bool {
	lacks := func(s string) bool { return strings.Contains(s, "registers") || strings.Contains(s, "shared memory") }
	return lacks(no) && !(lacks(best) && spread)
}
