package hwang

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// oneStream is how many times as fast one stream is with parallelism between steps; not a number:
// unknown.
func oneStream(recs []record.Record) quantity.Interval {
	one := func(p record.Point) bool { return p.Batch == 1 }
	a, b := pick.Find(recs, baseline, one), pick.Find(recs, intra, one)
	if a == nil || b == nil {
		return quantity.Interval{Value: math.NaN()}
	}
	return estimate.MoreEvents(b, a)
}

// shareOfBest is share, of the best speed with enoughStreams or the next larger number, with its
// interval.
func shareOfBest(recs []record.Record, share float64) quantity.Interval {
	best := busiest(recs, intra)
	for _, p := range pick.Points(recs) {
		if r := pick.Find(recs, intra, func(q record.Point) bool { return q == p }); p.Batch >= enoughStreams && r != nil && best != nil {
			return estimate.MoreEvents(r, best)
		}
	}
	return quantity.Interval{Value: share, Lo: share, Hi: share}
}

// serialSteps says what part of a minibatch's time is of steps that run one after the other, if that
// keeps enoughStreams below almost the best speed; else "". A minibatch has as many words for any
// number of streams, so its time is fitted by a start and a time for each of h steps, with the least
// squares of relative errors. Replayed as a graph, launches by the host play no part.
func serialSteps(recs []record.Record) string {
	type sample struct{ steps, seconds float64 }
	var all []sample
	most, at, frames := 0.0, math.Inf(1), 0.0 // words per second: the best, and with enoughStreams
	for _, p := range pick.Points(recs) {
		r := pick.Find(recs, intra+", graph", func(q record.Point) bool { return q == p })
		if r == nil {
			continue
		}
		all, frames = append(all, sample{float64(p.Steps), r.Seconds()}), float64(p.Batch*p.Steps)
		if most = max(most, words(r)); p.Batch == enoughStreams {
			at = words(r)
		}
	}
	if len(all) < 3 || math.IsInf(at, 1) {
		return ""
	}
	var w, x, xx, y, xy float64
	for _, s := range all {
		k := 1 / (s.seconds * s.seconds)
		w, x, xx, y, xy = w+k, x+k*s.steps, xx+k*s.steps*s.steps, y+k*s.seconds, xy+k*s.steps*s.seconds
	}
	step := (w*xy - x*y) / (w*xx - x*x)
	start := (y - step*x) / w
	h := frames / enoughStreams
	fitted := (start + step) / (start + h*step)
	if !(start > 0 && step > 0 && fitted < estimate.Almost) {
		return ""
	}
	return fmt.Sprintf("steps run one after the other: as a graph, a minibatch takes %s and %s for each of h steps, by a fit, with which %d streams reach %.0f %%; measured as a graph, they reach %.0f %%",
		quantity.SI(start, "s"), quantity.SI(step, "s"), enoughStreams, 100*fitted, 100*at/most)
}

// fig4Claims adds the tables of Figure 4, and compares them with what the paper says.
func fig4Claims(rep *study.Report, recs []record.Record, sizes []int, on study.Target) {
	var gains, best []string
	least := quantity.Interval{Value: math.Inf(1)} // of the gains
	grows := estimate.Estimate{At: math.Inf(1)}    // the least growth from a layer to the next
	before := 0
	for _, h := range sizes {
		some := pick.Where(recs, func(p record.Point) bool { return p.Hidden == h })
		streams(rep, some, "FLOP/s", (*record.Record).FLOPS, fmt.Sprintf("Hwang & Sung Figure 4: FLOP/s, LSTM of %d units", h))
		if v := oneStream(some); !math.IsNaN(v.Value) {
			gains = append(gains, fmt.Sprintf("%s× with %d units", quantity.Ratio(v.Value), h))
			if v.Value < least.Value {
				least = v
			}
		}
		if busiest(some, intra) == nil {
			continue
		}
		if a, b := withMostStreams(recs, before, h); a != nil {
			share := func(r *record.Record) string {
				text := quantity.SI(r.FLOPS(), "FLOP/s")
				if on.Halves > 0 {
					text += fmt.Sprintf(" (%.0f %%)", 100*r.FLOPS()/split(on))
				}
				return text
			}
			best = append(best, fmt.Sprintf("%s with %d units and %s with %d, at %s", share(a), before, share(b), h, quantity.Plural(a.Point.Batch, "stream")))
			if v := estimate.Throughput(a, b); v.At < grows.At {
				grows = v
			}
		}
		before = h
	}
	if gains != nil {
		study.ClaimAbove(rep, on, "parallel steps accelerate training with few streams (section 4)", "one stream: "+strings.Join(gains, ", "), least, 1, "")
		rep.Findings = append(rep.Findings, "One stream, speed-up from parallelism across steps: "+strings.Join(gains, ", ")+". The paper says it accelerates training especially with few streams. The recurrent product runs step by step in both.")
	}
	if len(best) > 0 {
		study.ClaimOf(rep, on, "utilization grows with the layer (section 4, Figure 4)", strings.Join(best, "; "), grows, estimate.Above(1), "")
		finding := "Throughput at the most streams that two layers were both measured with: " + strings.Join(best, "; ") + ". The paper says utilization grows with the layer and with the number of streams."
		if on.Halves > 0 {
			finding += fmt.Sprintf(" Percentages are of %s, a third of the rate of large fp16 products. An fp32 product is formed by three of them on tensor cores.", quantity.SI(split(on), "FLOP/s"))
		}
		rep.Findings = append(rep.Findings, finding)
	}
}

// withMostStreams returns the records with parallel steps of two layers, at the largest number of streams that
// both were measured with: with other numbers, the layer would not be all that differs. They are nil if there is none.
func withMostStreams(recs []record.Record, small, large int) (a, b *record.Record) {
	for i := range recs {
		x := &recs[i]
		if x.Point.Hidden != large || x.Impl.Label != intra || x.Seconds() == 0 || b != nil && x.Point.Batch < b.Point.Batch {
			continue
		}
		same := pick.Find(recs, intra, func(p record.Point) bool { return p.Hidden == small && p.Batch == x.Point.Batch })
		if same != nil {
			a, b = same, x
		}
	}
	return a, b
}

// split is the rate of fp32 products that are formed by three fp16 products, in FLOP/s; 0: unknown.
func split(t study.Target) float64 { return t.Halves / 3 }

// splitPeak draws the rate of split products as the limit of a GPU's figure.
func splitPeak(t study.Target, ch *plots.Chart) {
	if ch == nil || !t.GPU || t.Halves == 0 {
		return
	}
	for i := range ch.Panels {
		ch.Panels[i].Guides = append(slices.Clip(ch.Panels[i].Guides), plots.Guide{Label: "split products " + quantity.SI(split(t), "FLOP/s"), Y0: split(t), Y1: split(t)})
	}
	ch.Notes = append(ch.Notes, "Split products: an fp32 product formed by three fp16 products, at the measured rate of large ones.")
}
