package appleyard

import (
	"fmt"
	"math"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// Labels of forms of Figure 1 that show what launches by the host cost.
const (
	naiveAsGraph = "0 as a graph"
	fourAsGraph  = "4 as a graph"
	fiveAsGraph  = "5 as a graph"
)

// withoutLaunches returns stages replayed as graphs, and the last stages with every product by the
// vendor's library. They tell what in Figure 1 is of launches by the host, and what of rnnbench's
// kernels. The library makes the products of the first four stages anyway.
func withoutLaunches(layers int) []grid.Spec {
	s := form.LadderSpecs(layers)
	return append([]grid.Spec{study.Graphed(naiveAsGraph, s[0]), study.Graphed(fourAsGraph, s[4]), study.Graphed(fiveAsGraph, s[5])}, libraryLadder(layers)[4:]...)
}

// launchesOf is how many kernels a run of r starts; 0: unknown.
func launchesOf(r *record.Record) (n int) {
	for _, k := range r.Kernels {
		n += k.Launches
	}
	return n
}

// naiveLaunches says that launches limit the naive form, if its time hardly depends on the problem:
// at half of the points or more it takes at most 1.6 times as long as at the fastest. Then its
// rival gains most where that has least to compute. It is "" if they do not.
func naiveLaunches(four []record.Record, on study.Target) string {
	const alike = 1.6
	label := form.Ladder(4)[0].Label
	var times []float64
	launches := 0
	for _, p := range pick.Points(four) {
		if r := pick.Find(four, label, func(q record.Point) bool { return q == p }); r != nil {
			times = append(times, r.Seconds()/float64(p.Layers*p.Steps)*1e6)
			if launches == 0 {
				launches = launchesOf(r)
			}
		}
	}
	if !on.GPU || launches == 0 {
		return ""
	}
	slices.Sort(times)
	n := 0
	for n < len(times) && times[n] <= alike*times[0] {
		n++
	}
	if 2*n < len(times) {
		return ""
	}
	return fmt.Sprintf("launches limit the naive form: it starts %d kernels a run, which takes %.0f to %.0f µs a cell at %d of %d points, whatever their size; the last stage takes the less the fewer sequences there are", launches, times[0], times[n-1], n, len(times))
}

// asMuch is how many times the throughput of one layer four must reach to count as twice.
const asMuch = 2 / estimate.Closeness

// depth counts at how many points a form of four layers has twice the throughput of one layer.
func depth(four, one []record.Record, deep, single string) (v estimate.Votes, most estimate.Estimate) {
	most = estimate.Estimate{At: math.NaN(), Lo: 0, Hi: 0}
	for _, p := range pick.Points(four) {
		a := pick.Find(one, single, func(q record.Point) bool { return q.Hidden == p.Hidden && q.Batch == p.Batch })
		b := pick.Find(four, deep, func(q record.Point) bool { return q == p })
		if e := estimate.Throughput(a, b); e.Known() {
			v.Add(estimate.AtLeast(asMuch).Holds(e))
			if !most.Known() || e.At > most.At {
				most = e
			}
		}
	}
	return v, most
}

// depthLaunches says that launches keep four layers from more throughput than one, if a graph shows
// that; "" if not.
func depthLaunches(four, one []record.Record, on study.Target) string {
	if !on.GPU {
		return ""
	}
	last := form.Ladder(4)[6].Label
	var limited estimate.Votes
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := estimate.TimesAsFast(pick.Find(four, last, here), pick.Find(four, form.AsGraph, here)); e.Known() {
			limited.Add(estimate.AtLeast(estimate.Closeness).Holds(e))
		}
	}
	if limited.Some() != estimate.Yes {
		return ""
	}
	s := fmt.Sprintf("the host's launches limit the last stage: as a graph it is over %.2f times as fast at %v", estimate.Closeness, limited)
	if _, most := depth(four, one, form.AsGraph, form.AsGraph); most.Known() {
		return s + fmt.Sprintf("; with one layer as a graph too, four reach up to %s the throughput", most.Times())
	}
	if v, most := depth(four, one, form.AsGraph, last); most.Known() {
		s += fmt.Sprintf(", and reaches up to %s the throughput of one layer that is launched, about twice at %v", most.Times(), v)
	}
	return s
}

// otherKernel returns a finding on the points where batching inputs makes the products of the inputs
// run by other kernels, and is clearly slower; "" if there are none.
func otherKernel(four []record.Record) string {
	rungs := form.Ladder(4)
	slower := 0
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		a, b := pick.Find(four, rungs[4].Label, here), pick.Find(four, rungs[5].Label, here)
		if e := estimate.TimesAsFast(a, b); !e.Known() || estimate.AtLeast(1).Holds(e) != estimate.No {
			continue
		}
		if x, y := kernelNames(a), kernelNames(b); len(x) > 0 && len(y) > 0 && !slices.Equal(x, y) {
			slower++
		}
	}
	if slower == 0 {
		return ""
	}
	return fmt.Sprintf("At %d of the slower points, products of two steps run by another kernel than those of one.", slower)
}

// kernelNames lists the names of r's kernels without repetition, sorted.
func kernelNames(r *record.Record) (names []string) {
	for _, k := range r.Kernels {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
