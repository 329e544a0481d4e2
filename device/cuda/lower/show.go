package lower

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/schedule"
)

// What passes have found, a line each, for readers of a lowering between two passes.

// count spells the number of each kind, in the order of their names.
func count[K comparable](all map[K]int) string {
	var parts []string
	for k, n := range all {
		parts = append(parts, fmt.Sprintf("%v: %d", k, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func showElements(p *Lowering) []string {
	all := map[driver.Element]int{}
	for _, e := range p.elements {
		all[e]++
	}
	return []string{"matrices stored as " + count(all)}
}

func showStacks(p *Lowering) (lines []string) {
	for _, i := range slices.Sorted(maps.Keys(p.Stacks.At)) {
		lines = append(lines, fmt.Sprintf("node %d: %v", i, p.Stacks.At[i]))
	}
	return lines
}

func showProducts(p *Lowering) (lines []string) {
	all := map[string]int{}
	for op := range p.schedule.Operations() {
		g, ok := op.(schedule.Gemm)
		switch {
		case !ok || p.Lower[g.B.M.ID]:
		case p.Factors[g.B.M.ID] != nil:
			all["skinny kernel"]++
		default:
			all[p.MethodOf(g).String()]++
		}
	}
	if len(all) > 0 {
		lines = append(lines, "products by "+count(all))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Factors)) {
		lines = append(lines, fmt.Sprintf("matrix %d is packed for skinny products: %v", id, p.Factors[id]))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Kept)) {
		if m := p.Kept[id]; m != gemm.Library {
			lines = append(lines, fmt.Sprintf("matrix %d is packed for products by %v", id, m))
		}
	}
	return lines
}

func showLayers(p *Lowering) (lines []string) {
	for _, i := range slices.Sorted(maps.Keys(p.layers)) {
		switch l := p.layers[i]; {
		case l.err != nil:
			lines = append(lines, fmt.Sprintf("operation %d: %v", i, l.err))
		case l.config.Grouped():
			lines = append(lines, fmt.Sprintf("operation %d: %s", i, l.config.Summary()))
		default:
			lines = append(lines, fmt.Sprintf("operation %d: one group with a barrier", i))
		}
	}
	return lines
}

func showMemory(p *Lowering) []string {
	return []string{fmt.Sprintf("%d bytes, of which %d are words that blocks share, and %d of workspace for each of %d streams",
		p.total, p.total-p.control, p.properties.Workspace, Streams(p.schedule))}
}

func showWeights(p *Lowering) []string {
	all := map[persistent.WeightLayout]int{}
	for _, w := range p.weights {
		all[w]++
	}
	if len(all) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("packed weights lie %s; %d need no copy", count(all), len(p.alias))}
}

func showBatches(p *Lowering) (lines []string) {
	for _, i := range slices.Sorted(maps.Keys(p.batches)) {
		if r := p.batches[i]; len(r.ops) > 1 {
			lines = append(lines, fmt.Sprintf("nodes %d to %d are launched together", r.first, r.first+len(r.ops)-1))
		}
	}
	return lines
}
