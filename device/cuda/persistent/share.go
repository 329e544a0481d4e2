package persistent

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// Persistent layers on several streams run side by side if each leaves room for the others. So each
// layer is configured for a part of the GPU. The blocks of a kernel start together and wait only
// for each other, never for another kernel. A kernel that finds no room waits, and the order in
// which kernels start does not matter.

// A Chooser chooses how persistent layers and their gradients run.
type Chooser struct {
	*launch.Target
	Sides    int // streams with such layers, which share the GPU
	choices  map[choice]chosen
	explains bool // reasons are for readers: see nearest
}

// NewChooser returns a chooser for layers on so many streams.
func NewChooser(t *launch.Target, sides int) *Chooser {
	return &Chooser{Target: t, Sides: sides, choices: map[choice]chosen{}}
}

// A choice identifies a list of configurations. The layers of a wave ask for the same list again
// and again.
type choice struct {
	layer    Layer
	backward bool
	samples  int // the setting of the knob
}

// A chosen is the list for a choice, or the reason why it is empty.
type chosen struct {
	all []Config
	err error
}

// choiceOf returns the configurations of l, or of its gradient, and caches them.
func (c *Chooser) choiceOf(l Layer, backward bool) ([]Config, error) {
	of := choice{layer: l, backward: backward, samples: c.Knobs["samples"]}
	out, ok := c.choices[of]
	if !ok {
		out.all, out.err = c.overShares(func(c *Chooser) ([]Config, string) { return c.configs(l, backward) })
		c.choices[of] = out
	}
	return out.all, out.err
}

// overShares lists configurations for several shares of the GPU, by the predicted time of a step of
// all layers that run side by side. The smallest share leaves one more share for products. With
// larger shares, layers wait for each other.
func (c *Chooser) overShares(list func(c *Chooser) ([]Config, string)) ([]Config, error) {
	most, least := c.Sides+1, 1
	switch {
	case c.Knobs["share"] != 0:
		most, least = c.Knobs["share"], c.Knobs["share"]
	case c.Sides <= 1:
		most = 1
	}
	var all []Config
	why := ""
	for n := most; n >= least; n-- {
		part, of := *c, *c.Target
		of.Properties = c.Properties.Share(n)
		part.Target = &of
		some, no := list(&part)
		for _, t := range some {
			t.cycles = t.sideBySide(c.Sides, n)
			all = append(all, t)
		}
		if len(some) == 0 {
			why = no
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cuda: %w: %s", schedule.ErrUnsupported, why)
	}
	slices.SortStableFunc(all, cheaper)
	return c.closest(all), nil
}

// closest keeps the configurations that match the most knobs, in their order.
func (c *Chooser) closest(all []Config) []Config {
	var out []Config
	least := math.MaxInt
	for _, t := range all {
		misses := misses(c, t)
		if misses < least {
			least, out = misses, nil
		}
		if misses == least {
			out = append(out, t)
		}
	}
	return out
}

// configKnobs are the knobs that ask for a configuration.
var configKnobs = []string{"resident", "cluster", "groups", "samples", "tile", "lanes", "tensor"}

// misses counts the knobs whose settings t does not have.
func misses(c *Chooser, t Config) int {
	n := 0
	for _, name := range configKnobs {
		if v := c.Knobs[name]; v != 0 && t.Knobs[name] != v {
			n++
		}
	}
	return n
}
