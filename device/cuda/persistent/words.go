package persistent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Words describes how t divides a layer: its groups, then the constants that its kernel is compiled
// with.
func (t Config) Words() string {
	if !t.Grouped() {
		return "one group of all blocks, with a barrier"
	}
	group := fmt.Sprintf("a cluster of %d blocks of %d threads", t.blocks, t.threads)
	switch {
	case t.blocks == 1:
		group = fmt.Sprintf("one block of %d threads", t.threads)
	case t.spread:
		group = fmt.Sprintf("%d blocks of %d threads, spread over the GPU", t.blocks, t.threads)
	}
	words := fmt.Sprintf("a group is %s, and runs %d sequences at a time", group, t.samples)
	if more := t.constants(); len(more) > 0 {
		words += "; " + strings.Join(more, ", ")
	}
	return words
}

// Summary names the variant and a group's blocks and threads, with the constants in words and the
// predicted cycles of a step.
func (t Config) Summary() string {
	parts := append([]string{fmt.Sprintf("%s %d×%d", t.variant.Name, t.blocks, t.threads)}, t.constants()...)
	return fmt.Sprintf("%s; %.0f cycles", strings.Join(parts, ", "), t.cycles)
}

// Group says in a few words which blocks share a copy of the weights.
func (t Config) Group() string {
	switch {
	case !t.Grouped():
		return "all blocks"
	case t.blocks == 1:
		return "one block"
	case t.spread:
		return fmt.Sprintf("spread %d", t.blocks)
	}
	return fmt.Sprintf("cluster %d", t.blocks)
}

// constants describes the constants of t's kernel, without those that Words covers elsewhere.
func (t Config) constants() (all []string) {
	for field := range strings.SplitSeq(t.sizes, ", ") {
		name, value, _ := strings.Cut(field, " = ")
		words := t.variant.describe(name)
		n, err := strconv.Atoi(value)
		switch said := name == "SAMPLES" && n == t.samples; {
		case err != nil || n == 0 || said || words == "":
		case name == "BOUNDED" && n == 2:
			all = append(all, words+" if the first ones do")
		default:
			all = append(all, strings.ReplaceAll(words, "%d", value))
		}
	}
	return all
}

// describe describes a constant of v's kernel, whose value stands for %d; "": Words covers it
// elsewhere. Constants without a value are on or off, and are not mentioned if they are 0.
func (v *Variant) describe(name string) string {
	common := ""
	if v.Backward {
		common = gradientWords[name]
	}
	return cmp.Or(v.words[name], common, commonWords[name])
}

// commonWords describes the constants of several kernels. The headers of kernels explain them at
// length.
var commonWords = map[string]string{
	"EXACT":    "fp32 factors as two halves",
	"ORDERED":  "weights packed in the kernel's order",
	"CLOCKS":   "phases timed",
	"BOUNDED":  "states stay within ±1",
	"UNITS":    "units per block: %d",
	"SAMPLES":  "places for sequences: %d",
	"LANES":    "threads that share a unit's columns: %d",
	"BAND":     "units per warp: %d",
	"SPLIT":    "warps that share columns: %d",
	"CHUNKS":   "pieces of columns: %d",
	"RESIDENT": "pieces in registers: %d",
	"PARTS":    "parts of the sequences that take turns: %d",
	"KEPT":     "copies that the L2 cache is asked to keep: %d",
	"PRODUCTS": "products per warpgroup: %d",
	"HELD":     "products whose weights are in registers: %d",
	"MORE":     "registers of a multiplying thread: %d",
	"FEWER":    "registers of the other threads: %d",
}

// gradientWords describes those of kernels of gradients.
var gradientWords = map[string]string{
	"CLUSTERS": "clusters per group: %d",
	"CLUSTER":  "blocks per cluster: %d",
	"WARPS":    "warps per block: %d",
	"SAME":     "lanes that share a unit's last sum: %d",
	"HEIGHT":   "tiles of 16 units that a warp multiplies for: %d",
	"PASSING":  "pieces read from the L2 in each turn: %d",
	"PORTION":  "pieces per copy: %d",
	"DEPTH":    "places for a warp's copies: %d",
}

// saidElsewhere lists the constants that Words describes with the group.
var saidElsewhere = map[string]bool{"SPREAD": true, "CLUSTER": true, "SEQUENCES": true}
