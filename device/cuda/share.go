package cuda

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

// sides is how many streams of s have persistent layers.
func sides(s *schedule.Schedule) int {
	on := map[int]bool{}
	for _, n := range s.Nodes {
		switch n.Op.(type) {
		case schedule.Persistent, schedule.PersistentBackward:
			on[n.Stream%launch.MaxStreams] = true
		}
	}
	return len(on)
}

// A choice is what groupings are listed for: the layers of a wave ask for the same
// again and again.
type choice struct {
	cell     *cell.Cell
	layer    layer
	backward bool
	samples  int // that knobs ask for
}

// A chosen is what there was to choose from, or why nothing.
type chosen struct {
	all []grouping
	err error
}

// shared is what parts yields, once for each choice.
func (b *binder) shared(c choice, list func(b *binder) ([]grouping, string)) ([]grouping, error) {
	c.samples = b.Knobs["samples"]
	out, ok := b.choices[c]
	if !ok {
		out.all, out.err = b.parts(list)
		b.choices[c] = out
	}
	return out.all, out.err
}

// parts lists groupings by how long a step of all layers beside each other is
// expected to take, each in a part of the GPU: so small that there is one left
// for products, or so large that layers wait for each other.
func (b *binder) parts(list func(b *binder) ([]grouping, string)) ([]grouping, error) {
	most, least := b.sides+1, 1
	switch {
	case b.Knobs["share"] != 0:
		most, least = b.Knobs["share"], b.Knobs["share"]
	case b.sides <= 1:
		most = 1
	}
	var all []grouping
	why := ""
	for n := most; n >= least; n-- {
		part, of := *b, *b.Target
		of.Properties = b.Properties.Share(n)
		part.Target = &of
		some, no := list(&part)
		for _, t := range some {
			t.cycles = t.beside(b.sides, n)
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
	return b.closest(all), nil
}

// waiting is what groups over the GPU take longer beside other work, as
// measured: all of their blocks start together or none, and others leave room for
// them one by one.
const waiting = 1.6

// beside is about how many cycles a step of so many layers takes, each by t in
// one of n parts of the GPU. Clusters of a layer start where there is room.
func (t grouping) beside(layers, n int) float64 {
	turns := max(1, float64(layers)/float64(n))
	if t.spread && layers > 1 {
		turns = waiting * math.Ceil(turns)
	}
	return t.cycles * turns
}
