package persistent

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Persistent layers on several streams run side by side if each leaves room for the
// others. So each layer is configured for a part of the GPU. The blocks of a kernel
// start together and wait for each other alone, never for another kernel. A kernel that
// finds no room waits its turn, and the order in which kernels start does not matter.

// A Chooser chooses how persistent layers and their gradients run.
type Chooser struct {
	*launch.Target
	Sides   int // parts of the GPU that layers share
	choices map[choice]chosen
}

// NewChooser returns a chooser for layers on so many streams.
func NewChooser(t *launch.Target, sides int) *Chooser {
	return &Chooser{Target: t, Sides: sides, choices: map[choice]chosen{}}
}

// A choice is what configurations are listed for. The layers of a wave ask for the same
// list again and again.
type choice struct {
	cell     *cell.Cell
	layer    Layer
	backward bool
	samples  int // that knobs ask for
}

// A chosen is the list for a choice, or why there is none.
type chosen struct {
	all []Config
	err error
}

// choiceOf lists the configurations for a choice, once.
func (c *Chooser) choiceOf(of choice, list func(c *Chooser) ([]Config, string)) ([]Config, error) {
	of.samples = c.Knobs["samples"]
	out, ok := c.choices[of]
	if !ok {
		out.all, out.err = c.overShares(list)
		c.choices[of] = out
	}
	return out.all, out.err
}

// overShares lists configurations by the expected time of a step of all layers that run
// side by side. Each layer has a part of the GPU. The smallest part leaves one more for
// products; with larger ones, layers wait for each other.
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
			t.cycles = t.beside(c.Sides, n)
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

// misses counts the knobs that ask for another configuration than t.
func misses(c *Chooser, t Config) int {
	n := 0
	for _, name := range configKnobs {
		if v := c.Knobs[name]; v != 0 && t.Knobs[name] != v {
			n++
		}
	}
	return n
}
