package persistent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Words say how t divides a layer: its groups, then the constants that its kernel is
// compiled with.
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

// Summary names the variant and a group's blocks and threads, with the constants in words
// and the expected time of a step.
func (t Config) Summary() string {
	parts := append([]string{fmt.Sprintf("%s %d×%d", t.variant.Name, t.blocks, t.threads)}, t.constants()...)
	return fmt.Sprintf("%s; %.0f cycles", strings.Join(parts, ", "), t.cycles)
}

// Group says in a few words which blocks have a copy of the weights.
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

// constants are those of t's kernel in words, without what Words says anyway.
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

// constantWords say what the constant of v's kernel is; "": Words says it in another way.
func constantWords(v *Variant, name string) string {
	if v.Backward {
		if words := ofGradients[name]; words != "" {
			return words
		}
	}
	return cmp.Or(switches[name], numbers[name])
}

// switches are the constants that are 0 or not. Nothing is said of those that are 0.
var switches = map[string]string{
	"SETTLED": "weights stay in registers over all steps",
	"EXACT":   "fp32 factors as two halves",
	"ORDERED": "weights packed in the kernel's order",
	"CLOCKS":  "phases timed",
	"WORDED":  "gradients travel as words",
	"BOUNDED": "states stay within ±1",
}

// numbers are the others. The headers of kernels explain them at length.
var numbers = map[string]string{
	"UNITS":    "units of a block",
	"SAMPLES":  "places for sequences",
	"TILE":     "units of a thread",
	"LANES":    "threads that share a unit's columns",
	"BAND":     "units of a warp",
	"SPLIT":    "warps that share columns",
	"CHUNKS":   "pieces of columns",
	"RESIDENT": "pieces in registers",
	"STREAMED": "inputs of a unit read ahead",
	"PARTS":    "parts of the sequences that take turns",
	"SLOTS":    "turns whose states fit",
	"NEAR":     "halves of pieces in registers",
	"PASSING":  "halves of pieces read from the L2 at each step",
	"STAGE":    "halves of pieces in a copy",
	"RING":     "copies of a warp that fit",
	"KEPT":     "copies that the L2 keeps",
	"LOOK":     "pieces of states that are polled",
	"AHEAD":    "portions of states in flight",
	"COPIERS":  "blocks that copy for each other",
	"PRODUCTS": "products of a warpgroup",
	"HELD":     "products whose weights are in registers",
	"PORTION":  "products by a copy",
	"DEPTH":    "copies of a warpgroup that fit",
	"MORE":     "registers of a thread that multiplies",
	"FEWER":    "registers of the others",

	"WARPGROUPS": "warpgroups that multiply",
	"ROUND":      "products whose streamed weights fit",
}

// ofGradients are those of kernels of gradients that differ.
var ofGradients = map[string]string{
	"CLUSTERS": "clusters of a group",
	"CLUSTER":  "blocks of a cluster",
	"WARPS":    "warps of a block",
	"SAME":     "lanes that share a unit's last sum",
	"OUT":      "units that a thread multiplies for",
	"BAND":     "units whose gradients lie side by side",
	"HEIGHT":   "tiles of 16 units that a warp multiplies for",
	"SLOTS":    "turns whose gradients fit",
	"PASSING":  "pieces read from the L2 in each turn",
	"PORTION":  "pieces in a copy",
	"DEPTH":    "copies of a warp that fit",
	"AHEAD":    "steps by which inputs are read ahead",
}

// saidElsewhere are the constants that Words says with the group.
var saidElsewhere = map[string]bool{"SPREAD": true, "CLUSTER": true, "SEQUENCES": true}
