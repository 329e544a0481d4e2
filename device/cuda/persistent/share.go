package persistent

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// Persistent layers on several streams run side by side if each leaves room for
// the others: its groups are chosen as if the GPU were so many times smaller.
// Kernels never wait for each other's progress, only for blocks of their own,
// which all start together; so those that find no room wait their turn, and the
// order in which kernels start does not matter.

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

// A choice is what groupings are listed for: the layers of a wave ask for the same
// again and again.
type choice struct {
	cell     *cell.Cell
	layer    Layer
	backward bool
	samples  int // that knobs ask for
}

// A chosen is what there was to choose from, or why nothing.
type chosen struct {
	all []Config
	err error
}

// choiceOf is what parts yields, once for each choice.
func (c *Chooser) choiceOf(of choice, list func(c *Chooser) ([]Config, string)) ([]Config, error) {
	of.samples = c.Knobs["samples"]
	out, ok := c.choices[of]
	if !ok {
		out.all, out.err = c.overShares(list)
		c.choices[of] = out
	}
	return out.all, out.err
}

// overShares lists groupings by how long a step of all layers beside each other is
// expected to take, each in a part of the GPU: so small that there is one left
// for products, or so large that layers wait for each other.
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

// closest are those of all, in their order, that have the most of what knobs ask for.
func (c *Chooser) closest(all []Config) []Config {
	var out []Config
	least := math.MaxInt
	for _, t := range all {
		misses := 0
		for _, name := range []string{"resident", "cluster", "groups", "samples", "tile", "lanes", "tensor"} {
			if v := c.Knobs[name]; v != 0 && t.Knobs[name] != v {
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
