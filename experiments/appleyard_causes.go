package experiments

import (
	"fmt"
	"math"
	"slices"

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
	s := ladderSpecs(layers)
	return append([]grid.Spec{graphed(naiveAsGraph, s[0]), graphed(fourAsGraph, s[4]), graphed(fiveAsGraph, s[5])}, libraryLadder(layers)[4:]...)
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
func naiveLaunches(four []record.Record, on Target) string {
	const alike = 1.6
	label := ladder(4)[0].label
	var times []float64
	launches := 0
	for _, p := range points(four) {
		if r := find(four, label, func(q record.Point) bool { return q == p }); r != nil {
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
const asMuch = 2 / closeness

// depth counts at how many points a form of four layers has twice the throughput of one layer.
func depth(four, one []record.Record, deep, single string) (v votes, most estimate) {
	most = estimate{math.NaN(), 0, 0}
	for _, p := range points(four) {
		a := find(one, single, func(q record.Point) bool { return q.Hidden == p.Hidden && q.Batch == p.Batch })
		b := find(four, deep, func(q record.Point) bool { return q == p })
		if e := throughput(a, b); e.known() {
			v.add(atLeast(asMuch).holds(e))
			if !most.known() || e.at > most.at {
				most = e
			}
		}
	}
	return v, most
}

// depthLaunches says that launches keep four layers from more throughput than one, if a graph shows
// that; "" if not.
func depthLaunches(four, one []record.Record, on Target) string {
	if !on.GPU {
		return "one layer fills the cores of a CPU"
	}
	last := ladder(4)[6].label
	var limited votes
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := timesAsFast(find(four, last, here), find(four, asGraph, here)); e.known() {
			limited.add(atLeast(closeness).holds(e))
		}
	}
	if limited.some() != yes {
		return ""
	}
	s := fmt.Sprintf("the host's launches limit the last stage: as a graph it is over %.2f times as fast at %v", closeness, limited)
	if _, most := depth(four, one, asGraph, asGraph); most.known() {
		return s + fmt.Sprintf("; with one layer as a graph too, four reach up to %s the throughput", most.times())
	}
	if v, most := depth(four, one, asGraph, last); most.known() {
		s += fmt.Sprintf(", and reaches up to %s the throughput of one layer that is launched, about twice at %v", most.times(), v)
	}
	return s
}

// otherKernel returns a finding on the points where batching inputs makes the products of the inputs
// run by other kernels, and is clearly slower; "" if there are none.
func otherKernel(four []record.Record) string {
	rungs := ladder(4)
	slower := 0
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		a, b := find(four, rungs[4].label, here), find(four, rungs[5].label, here)
		if e := timesAsFast(a, b); !e.known() || atLeast(1).holds(e) != no {
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
