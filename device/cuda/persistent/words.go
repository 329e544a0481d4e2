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
		words := constantWords(t.variant, name)
		n, err := strconv.Atoi(value)
		switch said := name == "SAMPLES" && n == t.samples; {
		case err != nil || n == 0 || said || words == "":
		case name == "BOUNDED" && n == 2:
			all = append(all, words+" if the first ones do")
		case switches[name] != "":
			all = append(all, words)
		default:
			all = append(all, words+": "+value)
		}
	}
	return all
}

// constantWords describes a constant of v's kernel; "": Words covers it elsewhere.
func constantWords(v *Variant, name string) string {
	if v.Backward {
		if words := ofGradients[name]; words != "" {
			return words
		}
	}
	return cmp.Or(switches[name], numbers[name])
}

// switches describes the constants that are on or off. Those that are 0 are not mentioned.
var switches = map[string]string{
	"SETTLED": "weights stay in registers over all steps",
	"EXACT":   "fp32 factors as two halves",
	"ORDERED": "weights packed in the kernel's order",
	"CLOCKS":  "phases timed",
	"WORDED":  "gradients travel as words",
	"BOUNDED": "states stay within ±1",
}

// numbers describes the other constants. The headers of kernels explain them at length.
var numbers = map[string]string{
	"UNITS":    "units per block",
	"SAMPLES":  "places for sequences",
	"TILE":     "units per thread",
	"LANES":    "threads that share a unit's columns",
	"BAND":     "units per warp",
	"SPLIT":    "warps that share columns",
	"CHUNKS":   "pieces of columns",
	"RESIDENT": "pieces in registers",
	"STREAMED": "inputs per unit, read ahead",
	"PARTS":    "parts of the sequences that take turns",
	"SLOTS":    "places for a turn's states",
	"NEAR":     "halves of pieces in registers",
	"PASSING":  "halves of pieces read from the L2 at each step",
	"STAGE":    "halves of pieces per copy",
	"RING":     "places for a warp's copies",
	"KEPT":     "copies that the L2 cache is asked to keep",
	"LOOK":     "pieces of states that are polled",
	"AHEAD":    "portions of states in flight",
	"COPIERS":  "blocks that copy for each other",
	"PRODUCTS": "products per warpgroup",
	"HELD":     "products whose weights are in registers",
	"PORTION":  "products per copy",
	"DEPTH":    "places for a warpgroup's copies",
	"MORE":     "registers of a multiplying thread",
	"FEWER":    "registers of the other threads",

	"WARPGROUPS": "warpgroups that multiply",
	"ROUND":      "places for streamed weights, in products",
}

// ofGradients describes constants that have another meaning in kernels of gradients.
var ofGradients = map[string]string{
	"CLUSTERS": "clusters per group",
	"CLUSTER":  "blocks per cluster",
	"WARPS":    "warps per block",
	"SAME":     "lanes that share a unit's last sum",
	"OUT":      "units that a thread multiplies for",
	"BAND":     "units whose gradients lie side by side",
	"HEIGHT":   "tiles of 16 units that a warp multiplies for",
	"SLOTS":    "places for a turn's gradients",
	"PASSING":  "pieces read from the L2 in each turn",
	"PORTION":  "pieces per copy",
	"DEPTH":    "places for a warp's copies",
	"AHEAD":    "steps by which inputs are read ahead",
}

// saidElsewhere lists the constants that Words describes with the group.
var saidElsewhere = map[string]bool{"SPREAD": true, "CLUSTER": true, "SEQUENCES": true}
