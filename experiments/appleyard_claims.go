package experiments

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A climb is a part of the ladder at one point, from one stage to a later one.
type climb struct {
	point record.Point
	own   estimate // by rnnbench's kernels where they are faster
	likes estimate // with every product by the vendor's library, as in the paper; unknown without one
	why   string   // the stage that differs most from the paper's
}

// climbOf returns the gain from one stage of the ladder to a later one; false: a stage is missing.
func climbOf(recs []record.Record, p record.Point, from, to int, on Target) (climb, bool) {
	here := func(q record.Point) bool { return q == p }
	rungs := ladder(p.Layers)
	low, high := rungs[from].label, rungs[to].label
	a, b := find(recs, low, here), find(recs, high, here)
	if a == nil || b == nil {
		return climb{}, false
	}
	c := climb{point: p, own: timesAsFast(a, b), likes: timesAsFast(libraryStage(recs, low, p), libraryStage(recs, high, p))}
	stage := func(label string) *record.Record { return find(recs, label, here) }
	if c.likes.known() {
		stage = func(label string) *record.Record { return libraryStage(recs, label, p) }
		rungs[4].gpu = reason{} // which is of rnnbench's kernels
	}
	c.why = furthest(stage, rungs, from, on)
	return c, true
}

// faithful is the gain that is compared with the paper's.
func (c climb) faithful() estimate {
	if c.likes.known() {
		return c.likes
	}
	return c.own
}

// String spells the gain.
func (c climb) String() string {
	if c.likes.known() {
		return fmt.Sprintf("%s with cuBLAS, as in the paper, and %s with rnnbench's kernels", c.likes.times(), c.own.times())
	}
	return c.own.times()
}

// climbClaim adds a claim on the gain from a stage to the last one, at every length that was measured.
func climbClaim(r *Report, recs []record.Record, on Target, paper, lacks string, from int, factor float64) {
	var all votes
	var here []string
	why := ""
	for _, p := range points(recs) {
		c, ok := climbOf(recs, p, from, len(ladder(p.Layers))-1, on)
		if !ok {
			continue
		}
		holds := near(factor).holds(c.faithful())
		all.add(holds)
		if holds == no && why == "" {
			why = c.why
		}
		here = append(here, fmt.Sprintf("T=%d: %v", p.Steps, c))
	}
	if here == nil {
		unmeasured(r, paper, lacks)
		return
	}
	answer, openness := open, "the interval covers the end of agreement"
	switch { // lengths whose intervals leave it open do not count
	case all.yes > 0 && all.no > 0:
		openness = "one length agrees and another differs"
	case all.yes > 0:
		answer = yes
	case all.no > 0:
		answer = no
	}
	settle(r, on, paper, strings.Join(here, "; "), answer, why, openness)
}

// ladderClaims compares the numbers of sections 2, 2.1 and 2.5 with the ladder: the rates of the
// first two stages at p, and the whole ladder over each of them.
func ladderClaims(r *Report, recs []record.Record, p record.Point, on Target) {
	const (
		whole       = "the whole ladder makes an LSTM 11.1 times as fast"
		overGrouped = "the whole ladder is about 6 times as fast as grouped products alone"
		slow        = "naive runs at 0.4 TFLOP/s, less than 10 % of the peak"
		doubled     = "grouping the products takes 0.4 to 0.8 TFLOP/s, twice as much"
	)
	rungs := ladder(p.Layers)
	climbClaim(r, recs, on, whole, "naive or the last stage", 0, rungs[len(rungs)-1].up)
	here := func(q record.Point) bool { return q == p }
	naive, grouped := find(recs, rungs[0].label, here), find(recs, rungs[1].label, here)
	if naive == nil || naive.PeakFLOPS() == 0 {
		unmeasured(r, slow, "the rate of naive, or the peak")
	} else {
		share := rateOf(naive).by(100 / naive.PeakFLOPS())
		claimOf(r, on, slow, fmt.Sprintf("%s, %s of the peak of multiply-adds", quantity.SI(naive.FLOPS(), "FLOP/s"), share.text("%.3g", " %")), share, atMost(10),
			on.say("a product fills the cores of a CPU", ""))
	}
	if naive == nil || grouped == nil {
		unmeasured(r, doubled, "naive or grouped products")
	} else {
		gain := timesAsFast(naive, grouped)
		claimOf(r, on, doubled, fmt.Sprintf("%s to %s, %s", quantity.SI(naive.FLOPS(), "FLOP/s"), quantity.SI(grouped.FLOPS(), "FLOP/s"), gain.times()), gain, near(2),
			on.say("one gate's product already fills the cores of a CPU", ""))
	}
	climbClaim(r, recs, on, overGrouped, "grouped products or the last stage", 1, 6)
}

// rateOf estimates r's FLOP/s.
func rateOf(r *record.Record) estimate {
	e := estimate{at: r.FLOPS()}
	if lo, hi := r.Stats.Lo, r.Stats.Hi; lo != nil && hi != nil {
		e.lo, e.hi = float64(r.Work.Flops)/(*hi)/(1+moment), float64(r.Work.Flops)/(*lo)*(1+moment)
		return e
	}
	return estimate{e.at, 0, inf}
}

// gridClaims compares what section 2.5 says of Figure 1 with the records: overlapping at the largest
// problem, and each stage in most cases.
func gridClaims(r *Report, four []record.Record, on Target) {
	const (
		largest = "overlapping layers still helps at minibatch 256 and hidden size 4096"
		most    = "each optimization but batched inputs helps in most cases"
	)
	rungs := ladder(4)
	gain := func(p record.Point, i int) estimate {
		here := func(q record.Point) bool { return q == p }
		return timesAsFast(find(four, rungs[i-1].label, here), find(four, rungs[i].label, here))
	}
	all := points(four)
	top := slices.MaxFunc(all, func(a, b record.Point) int { return a.Hidden*a.Batch - b.Hidden*b.Batch })
	overlap := len(rungs) - 1
	switch up := gain(top, overlap); {
	case !up.known() || !on.Reduced && (top.Batch != 256 || top.Hidden != 4096):
		unmeasured(r, largest, "both stages at that size")
	default:
		claimOf(r, on, largest, fmt.Sprintf("%s at minibatch %d and hidden size %d", up.times(), top.Batch, top.Hidden), up, atLeast(1), on.say("the cores are already busy", ""))
	}
	var parts, less, unclear []string
	var answers []answer
	for i := 1; i < len(rungs); i++ {
		if rungs[i].knobs["inputbatch"] != rungs[i-1].knobs["inputbatch"] && i > 1 { // batched inputs
			continue
		}
		var helps votes
		for _, p := range all {
			if up := gain(p, i); up.known() {
				helps.add(atLeast(1).holds(up))
			}
		}
		if helps.all() == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s at %v", rungs[i].label, helps))
		a := helps.share(0.5)
		switch a {
		case no:
			less = append(less, rungs[i].label)
		case open:
			unclear = append(unclear, rungs[i].label)
		}
		answers = append(answers, a)
	}
	if parts == nil {
		unmeasured(r, most, "two stages that follow each other")
		return
	}
	why := ""
	if less != nil {
		why = fmt.Sprintf("%s helps clearly at fewer than half of the points%s", strings.Join(less, " and "), launchedStages(four, less, on))
	}
	settle(r, on, most, "faster with "+strings.Join(parts, "; "), both(answers...), why, strings.Join(unclear, " and ")+" within intervals at too many points")
}

// launchedStages says why stages that add operations in flight gain little on a GPU; "" of others.
func launchedStages(four []record.Record, stages []string, on Target) string {
	concurrent := func(label string) bool { return strings.HasPrefix(label, "2 ") || strings.HasPrefix(label, "6 ") }
	if !on.GPU || !slices.ContainsFunc(stages, concurrent) {
		return ""
	}
	top := ladder(4)[6].label
	var faster votes
	for _, p := range points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := timesAsFast(find(four, top, here), find(four, asGraph, here)); e.known() {
			faster.add(atLeast(closeness).holds(e))
		}
	}
	if faster.some() != yes {
		return ""
	}
	return fmt.Sprintf(": one host thread launches all operations, so that streams are seldom busy together. A graph, which starts them without the host, makes the last stage over %.2f times as fast at %v", closeness, faster)
}
