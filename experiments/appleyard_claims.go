package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/results"
)

// ladderClaims compares the numbers of sections 2, 2.1 and 2.5 with the ladder at p: the rates of
// the first two stages, and the whole ladder over grouped products.
func ladderClaims(r *Report, recs []results.Record, p results.Point, on Target) {
	const (
		overGrouped = "the whole ladder is about 6 times as fast as grouped products alone"
		slow        = "naive runs at 0.4 TFLOP/s, less than 10 % of the peak"
		doubled     = "grouping the products takes 0.4 to 0.8 TFLOP/s, twice as much"
	)
	here := func(q results.Point) bool { return q == p }
	rungs := ladder(p.Layers)
	naive, grouped, last := find(recs, rungs[0].label, here), find(recs, rungs[1].label, here), find(recs, rungs[len(rungs)-1].label, here)
	if naive == nil || naive.PeakFLOPS() == 0 {
		unmeasured(r, slow, "the rate of naive, or the peak")
	} else {
		share := 100 * naive.FLOPS() / naive.PeakFLOPS()
		r.claim(on, slow, fmt.Sprintf("%s, %.3g %% of the peak of multiply-adds", quantity.SI(naive.FLOPS(), "FLOP/s"), share), share < 10,
			on.say("a product fills the cores of a CPU", ""))
	}
	if naive == nil || grouped == nil {
		unmeasured(r, doubled, "naive or grouped products")
	} else {
		times := naive.Seconds() / grouped.Seconds()
		r.claim(on, doubled, fmt.Sprintf("%s to %s, %.2f×", quantity.SI(naive.FLOPS(), "FLOP/s"), quantity.SI(grouped.FLOPS(), "FLOP/s"), times), !differ(times, 2),
			on.say("one gate's product already fills the cores of a CPU", ""))
	}
	if grouped == nil || last == nil {
		unmeasured(r, overGrouped, "grouped products or the last stage")
		return
	}
	times := grouped.Seconds() / last.Seconds()
	words := fmt.Sprintf("%.2f×", times)
	a, b := libraryStage(recs, rungs[1].label, p), libraryStage(recs, rungs[len(rungs)-1].label, p)
	if a != nil && b != nil {
		words += fmt.Sprintf(", %.2f× with cuBLAS", a.Seconds()/b.Seconds())
	}
	r.claim(on, overGrouped, words, !differ(times, 6), furthest(recs, p, 1))
}

// gridClaims compares what section 2.5 says of Figure 1 with the records: overlapping at the largest
// problem, and each stage in most cases.
func gridClaims(r *Report, four []results.Record, on Target) {
	const (
		largest = "overlapping layers still helps at minibatch 256 and hidden size 4096"
		most    = "each optimization but batched inputs helps in most cases"
	)
	rungs := ladder(4)
	gain := func(p results.Point, i int) float64 {
		here := func(q results.Point) bool { return q == p }
		a, b := find(four, rungs[i-1].label, here), find(four, rungs[i].label, here)
		if a == nil || b == nil {
			return math.NaN()
		}
		return a.Seconds() / b.Seconds()
	}
	all := points(four)
	top := slices.MaxFunc(all, func(a, b results.Point) int { return a.Hidden*a.Batch - b.Hidden*b.Batch })
	overlap := len(rungs) - 1
	switch up := gain(top, overlap); {
	case math.IsNaN(up) || !on.Reduced && (top.Batch != 256 || top.Hidden != 4096):
		unmeasured(r, largest, "both stages at that size")
	default:
		r.claim(on, largest, fmt.Sprintf("%.2f× at minibatch %d and hidden size %d", up, top.Batch, top.Hidden), up > 1, on.say("the cores are already busy", ""))
	}
	var parts, less []string
	for i := 1; i < len(rungs); i++ {
		if rungs[i].knobs["inputbatch"] != rungs[i-1].knobs["inputbatch"] && i > 1 { // batched inputs
			continue
		}
		helps, n := 0, 0
		for _, p := range all {
			if up := gain(p, i); !math.IsNaN(up) {
				n++
				if up > 1 {
					helps++
				}
			}
		}
		if n == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s at %d of %d", rungs[i].label, helps, n))
		if 2*helps <= n {
			less = append(less, rungs[i].label)
		}
	}
	if parts == nil {
		unmeasured(r, most, "two stages that follow each other")
		return
	}
	r.claim(on, most, strings.Join(parts, ", ")+" points", less == nil, "")
}
