package appleyard

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// A climb is a part of the ladder at one point, from one stage to a later one.
type climb struct {
	point record.Point
	own   estimate.Estimate // by rnnbench's kernels where they are faster
	likes estimate.Estimate // with every product by the vendor's library, as in the paper; unknown without one
	why   string            // the stage that differs most from the paper's
}

// climbOf returns the gain from one stage of the ladder to a later one; false: a stage is missing.
func climbOf(recs []record.Record, p record.Point, from, to int) (climb, bool) {
	here := func(q record.Point) bool { return q == p }
	rungs := form.Ladder(p.Layers)
	low, high := rungs[from].Label, rungs[to].Label
	a, b := pick.Find(recs, low, here), pick.Find(recs, high, here)
	if a == nil || b == nil {
		return climb{}, false
	}
	c := climb{point: p, own: estimate.TimesAsFast(a, b), likes: estimate.TimesAsFast(libraryStage(recs, low, p), libraryStage(recs, high, p))}
	stage := func(label string) *record.Record { return pick.Find(recs, label, here) }
	if c.likes.Known() {
		stage = func(label string) *record.Record { return libraryStage(recs, label, p) }
	}
	c.why = furthest(stage, rungs, from)
	return c, true
}

// faithful is the gain that is compared with the paper's.
func (c climb) faithful() estimate.Estimate {
	if c.likes.Known() {
		return c.likes
	}
	return c.own
}

// String spells the gain.
func (c climb) String() string {
	if c.likes.Known() {
		return fmt.Sprintf("%s with cuBLAS, as in the paper, and %s with rnnbench's kernels", c.likes.Times(), c.own.Times())
	}
	return c.own.Times()
}

// climbClaim adds a claim on the gain from a stage to the last one, at every length that was measured.
func climbClaim(r *study.Report, recs []record.Record, on study.Target, paper, lacks string, from int, factor float64) {
	var all estimate.Votes
	var here []string
	why := ""
	for _, p := range pick.Points(recs) {
		c, ok := climbOf(recs, p, from, len(form.Ladder(p.Layers))-1)
		if !ok {
			continue
		}
		holds := estimate.Near(factor).Holds(c.faithful())
		all.Add(holds)
		if holds == estimate.No && why == "" {
			why = c.why
		}
		here = append(here, fmt.Sprintf("T=%d: %v", p.Steps, c))
	}
	if here == nil {
		study.NotMeasured(r, paper, lacks)
		return
	}
	answer, openness := estimate.Open, "the interval covers the end of agreement"
	switch { // lengths whose intervals leave it open do not count
	case all.Yes > 0 && all.No > 0:
		openness = "one length agrees and another differs"
	case all.Yes > 0:
		answer = estimate.Yes
	case all.No > 0:
		answer = estimate.No
	}
	study.Settle(r, on, paper, strings.Join(here, "; "), answer, why, openness)
}

// ladderClaims compares the numbers of sections 2, 2.1 and 2.5 with the ladder: the rates of the
// first two stages at p, and the whole ladder over each of them.
func ladderClaims(r *study.Report, recs []record.Record, p record.Point, on study.Target) {
	const (
		whole       = "the whole ladder makes an LSTM 11.1 times as fast (Table 1)"
		overGrouped = "the whole ladder is about 6 times as fast as grouped products alone (section 2.5)"
		slow        = "naive runs at 0.4 TFLOP/s, less than 10 % of the peak (section 2.1)"
		doubled     = "grouping the products takes 0.4 to 0.8 TFLOP/s, twice as much (section 2.1)"
	)
	rungs := form.Ladder(p.Layers)
	climbClaim(r, recs, on, whole, "naive or the last stage", 0, rungs[len(rungs)-1].Up)
	here := func(q record.Point) bool { return q == p }
	naive, grouped := pick.Find(recs, rungs[0].Label, here), pick.Find(recs, rungs[1].Label, here)
	if naive == nil || naive.PeakFLOPS() == 0 {
		study.NotMeasured(r, slow, "the rate of naive, or the peak")
	} else {
		share := rateOf(naive).By(100 / naive.PeakFLOPS())
		study.ClaimOf(r, on, slow, fmt.Sprintf("%s, %s of the peak of multiply-adds", quantity.SI(naive.FLOPS(), "FLOP/s"), share.Text("%.3g", " %")), share, estimate.AtMost(10), "")
	}
	if naive == nil || grouped == nil {
		study.NotMeasured(r, doubled, "naive or grouped products")
	} else {
		gain := estimate.TimesAsFast(naive, grouped)
		study.ClaimOf(r, on, doubled, fmt.Sprintf("%s to %s, %s", quantity.SI(naive.FLOPS(), "FLOP/s"), quantity.SI(grouped.FLOPS(), "FLOP/s"), gain.Times()), gain, estimate.Near(2), "")
	}
	climbClaim(r, recs, on, overGrouped, "grouped products or the last stage", 1, 6)
}

// rateOf estimates r's FLOP/s.
func rateOf(r *record.Record) estimate.Estimate {
	e := estimate.Estimate{At: r.FLOPS()}
	if lo, hi := r.Stats.Lo, r.Stats.Hi; lo != nil && hi != nil {
		e.Lo, e.Hi = float64(r.Work.Flops)/(*hi)/(1+estimate.Moment), float64(r.Work.Flops)/(*lo)*(1+estimate.Moment)
		return e
	}
	return estimate.Estimate{At: e.At, Lo: 0, Hi: estimate.Inf}
}

// gridClaims compares what section 2.5 says of Figure 1 with the records: overlapping at the largest
// problem, and each stage in most cases.
func gridClaims(r *study.Report, four []record.Record, on study.Target) {
	const (
		largest = "overlapping layers still helps at minibatch 256 and hidden size 4096 (section 2.5)"
		most    = "each optimization but batched inputs helps in most cases (section 2.5)"
	)
	rungs := form.Ladder(4)
	gain := func(p record.Point, i int) estimate.Estimate {
		here := func(q record.Point) bool { return q == p }
		return estimate.TimesAsFast(pick.Find(four, rungs[i-1].Label, here), pick.Find(four, rungs[i].Label, here))
	}
	all := pick.Points(four)
	top := slices.MaxFunc(all, func(a, b record.Point) int { return a.Hidden*a.Batch - b.Hidden*b.Batch })
	overlap := len(rungs) - 1
	switch up := gain(top, overlap); {
	case !up.Known() || !on.Reduced && (top.Batch != 256 || top.Hidden != 4096):
		study.NotMeasured(r, largest, "both stages at that size")
	default:
		study.ClaimOf(r, on, largest, fmt.Sprintf("%s at minibatch %d and hidden size %d", up.Times(), top.Batch, top.Hidden), up, estimate.AtLeast(1), "")
	}
	var parts, less, unclear []string
	var answers []estimate.Answer
	for i := 1; i < len(rungs); i++ {
		if rungs[i].Knobs["inputbatch"] != rungs[i-1].Knobs["inputbatch"] && i > 1 { // batched inputs
			continue
		}
		var helps estimate.Votes
		for _, p := range all {
			if up := gain(p, i); up.Known() {
				helps.Add(estimate.AtLeast(1).Holds(up))
			}
		}
		if helps.All() == 0 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s at %v", rungs[i].Label, helps))
		a := helps.Share(0.5)
		switch a {
		case estimate.No:
			less = append(less, rungs[i].Label)
		case estimate.Open:
			unclear = append(unclear, rungs[i].Label)
		}
		answers = append(answers, a)
	}
	if parts == nil {
		study.NotMeasured(r, most, "two stages that follow each other")
		return
	}
	why := ""
	if less != nil {
		why = fmt.Sprintf("%s helps clearly at fewer than half of the points%s", strings.Join(less, " and "), launchedStages(four, less, on))
	}
	study.Settle(r, on, most, "faster with "+strings.Join(parts, "; "), estimate.Both(answers...), why, strings.Join(unclear, " and ")+" within intervals at too many points")
}

// launchedStages says why stages that add operations in flight gain little on a GPU; "" of others.
func launchedStages(four []record.Record, stages []string, on study.Target) string {
	concurrent := func(label string) bool { return strings.HasPrefix(label, "2 ") || strings.HasPrefix(label, "6 ") }
	if !on.GPU || !slices.ContainsFunc(stages, concurrent) {
		return ""
	}
	top := form.Ladder(4)[6].Label
	var faster estimate.Votes
	for _, p := range pick.Points(four) {
		here := func(q record.Point) bool { return q == p }
		if e := estimate.TimesAsFast(pick.Find(four, top, here), pick.Find(four, form.AsGraph, here)); e.Known() {
			faster.Add(estimate.AtLeast(estimate.Closeness).Holds(e))
		}
	}
	if faster.Some() != estimate.Yes {
		return ""
	}
	return fmt.Sprintf(": one host thread launches all operations, so that streams are seldom busy together. A graph, which starts them without the host, makes the last stage over %.2f times as fast at %v", estimate.Closeness, faster)
}
