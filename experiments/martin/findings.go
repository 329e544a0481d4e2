package martin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/record"
)

// martinFindings compares the records with what the paper says of Figure 1: first over the paper's
// own LSTM, then, in same, over the fastest LSTM of the same length.
func martinFindings(rep *study.Report, recs []record.Record, lstm map[int]float64, on study.Target, same []string) {
	var first, last, most *record.Record
	lo, hi, at := math.Inf(1), 0.0, ""
	for i := range recs {
		r := &recs[i]
		if r.Impl.Label != form.LSScan || r.Status != record.OK {
			continue
		}
		if v := lstm[r.Point.Batch]; v > 0 && r.Point.Steps <= paperLongest {
			ratio := estimate.Events(r) / v
			if lo = min(lo, ratio); ratio > hi {
				hi, at, most = ratio, fmt.Sprintf("T=%d, B=%d", r.Point.Steps, r.Point.Batch), r
			}
		}
		if r.Point.Batch == 1 {
			if first == nil || r.Point.Steps < first.Point.Steps {
				first = r
			}
			if last == nil || r.Point.Steps > last.Point.Steps {
				last = r
			}
		}
	}
	var out []string
	if hi > 0 {
		out = append(out, fmt.Sprintf("LS-LSTM by scan over the LSTM at the same minibatch: %s× to %s× (%s). This LSTM has one grouped product per step, like the paper's. The paper reports 1.17× to 175×.%s", quantity.Ratio(lo), quantity.Ratio(hi), at,
			on.Say(" Here, each step reads the LSTM's 1 MiB of recurrent weights from caches. The output layer, equal for both, takes over a third of the operations.", "")))
		const claim = "an LS-LSTM trains up to 175 times as fast as the LSTM at the same minibatch (section 4.1)"
		longest := pick.Find(recs, form.LSScan, func(p record.Point) bool { return p.Batch == 1 && p.Steps == paperLongest }) // the paper's 175
		if longest != nil && lstm[1] > 0 || on.Reduced {
			v, why := overLSTM(recs, most, on)
			study.ClaimNear(rep, on, claim, "up to "+estimate.Of(v).Times(), v, 175, why)
		} else {
			study.NotMeasured(rep, claim, "the LSTM or the longest LS-LSTM with one sequence")
		}
	}
	out = append(out, same...)
	if first != nil && last != first {
		grown := estimate.Events(last) / estimate.Events(first)
		out = append(out, fmt.Sprintf("One sequence at a time: %.0f thousand events per second at length %d and %.0f at length %d, %s× as many. The paper reports 13.1 at 256 and 129 at 65536.", estimate.Events(first), first.Point.Steps, estimate.Events(last), last.Point.Steps, quantity.Ratio(grown)))
		long := pick.Find(recs, form.LSScan, func(p record.Point) bool { return p.Batch == 1 && p.Steps == paperLongest })
		if long == nil {
			long = last
		}
		v := estimate.MoreEvents(long, first)
		study.ClaimNear(rep, on, "one sequence: 9.8 times as many events per second at 65536 steps as at 256 (Figure 1)", fmt.Sprintf("%s from %d to %d steps", estimate.Of(v).Times(), first.Point.Steps, long.Point.Steps), v, 129/13.1, cmp.Or(nearCopy(long, on), on.Say(peakLimits(long, first, 129/13.1), "")))
	}
	longBeatsMany(rep, recs, on)
	out = append(out, martinForms(recs)...)
	var gains []string
	for _, l := range martinLengths(on) {
		one := func(p record.Point) bool { return p.Steps == l.steps && p.Batch == 1 }
		if a, b := pick.Find(recs, form.LSSerial, one), pick.Find(recs, form.LSScan, one); a != nil && b != nil {
			gains = append(gains, fmt.Sprintf("%s× at T=%d", quantity.Ratio(a.Seconds()/b.Seconds()), l.steps))
		}
	}
	if gains != nil {
		out = append(out, "Speed-up of the LS-LSTM by scan over step by step, one sequence: "+strings.Join(gains, ", ")+".")
	}
	rep.Findings = append(rep.Findings, out...)
}

// paperLongest is the length of the paper's longest sequences. Longer ones are no part of its claims.
const paperLongest = 65536

// overLSTM is how many times the LSTM's events per second scan reaches at the same minibatch. why is
// what launches have to do with it, if the LSTM was also replayed as a graph, or on a CPU the peak.
func overLSTM(recs []record.Record, scan *record.Record, on study.Target) (v quantity.Interval, why string) {
	here := func(p record.Point) bool { return p.Cell == "lstm" && p.Batch == scan.Point.Batch && p.Steps == 256 }
	launched, graph := pick.Find(recs, form.LSTMBest, here), pick.Find(recs, form.LSTMGraph, here)
	v = estimate.MoreEvents(scan, launched)
	if !on.GPU {
		return v, peakLimits(scan, launched, 175)
	}
	if graph == nil || estimate.Events(graph) < estimate.Events(launched) {
		return v, ""
	}
	return v, fmt.Sprintf("the host launches each step of the LSTM: replayed as a graph, it takes %s instead of %s, and the factor is %.0f×", quantity.SI(graph.Seconds(), "s"), quantity.SI(launched.Seconds(), "s"), estimate.Events(scan)/estimate.Events(graph))
}

// peakLimits says that arithmetic keeps scan from times as many events per second as base, if even the
// peak of a processor would; else "".
func peakLimits(scan, base *record.Record, times float64) string {
	most := scan.PeakFLOPS() / float64(scan.Work.Flops) * float64(scan.Point.Steps*scan.Point.Batch) / 1000 // events
	if most <= 0 || most/estimate.Events(base) > times || !estimate.Differ(most/estimate.Events(base), times) {
		return ""
	}
	return fmt.Sprintf("arithmetic limits it: at the processor's peak, %s, it would be %.1f×", quantity.SI(scan.PeakFLOPS(), "FLOP/s"), most/estimate.Events(base))
}

// nearCopy says that memory limits r, if it moves its operations' bytes at most of the rate of a copy;
// else "".
func nearCopy(r *record.Record, on study.Target) string {
	const most = 0.7
	rate := float64(r.Work.Bytes) / r.Seconds()
	if on.Copy == 0 || rate < most*on.Copy {
		return ""
	}
	return fmt.Sprintf("memory limits the long sequence: it moves %s, %.0f %% of a copy's %s", quantity.SI(rate, "B/s"), 100*rate/on.Copy, quantity.SI(on.Copy, "B/s"))
}

// longBeatsMany compares one long sequence of an LS-LSTM with many short ones of an LSTM.
func longBeatsMany(r *study.Report, recs []record.Record, on study.Target) {
	const claim = "an LS-LSTM with one sequence of 8192 events beats an LSTM with 256 sequences (section 4.1)"
	scan := pick.Find(recs, form.LSScan, func(p record.Point) bool { return p.Batch == 1 && p.Steps == 8192 })
	many := func(p record.Point) bool { return p.Cell == "lstm" && p.Batch == 256 && p.Steps == 256 }
	lstm := pick.Find(recs, form.LSTMBest, many)
	if scan == nil || lstm == nil {
		study.NotMeasured(r, claim, "one of both")
		return
	}
	v := estimate.MoreEvents(scan, lstm)
	words := fmt.Sprintf("%.0f thousand events per second against %.0f, %s", estimate.Events(scan), estimate.Events(lstm), estimate.Of(v).Times())
	var forms []string
	for _, s := range append(form.LSTMForms(), form.StepByStep(form.LSTMBest)) {
		forms = append(forms, s.Label)
	}
	if best := pick.Fastest(recs, forms, many); best.Impl.Label != form.LSTMBest {
		words += fmt.Sprintf("; %s against the fastest form, %s", estimate.WithInterval(estimate.MoreEvents(scan, best), "%.3f", "×"), best.Impl.Label)
	}
	study.ClaimAbove(r, on, claim, words, v, 1, "")
}

// martinForms compares the best scan of one sequence with every LSTM of one: the paper's
// counterpart, then the others, the fastest first. An LSTM runs 256 steps, since its rate does not
// depend on their number.
func martinForms(recs []record.Record) []string {
	one := func(p record.Point) bool { return p.Batch == 1 }
	var best *record.Record
	for i := range recs {
		if r := &recs[i]; r.Impl.Label == form.LSScan && r.Status == record.OK && one(r.Point) && r.Point.Steps <= paperLongest && (best == nil || estimate.Events(r) > estimate.Events(best)) {
			best = r
		}
	}
	rank := func(r *record.Record) int {
		if r.Impl.Label == form.LSTMBest {
			return 0
		}
		return 1
	}
	var rivals []*record.Record
	for _, s := range append(form.LSTMForms(), form.StepByStep(form.LSTMBest)) {
		if r := pick.Find(recs, s.Label, one); best != nil && r != nil {
			rivals = append(rivals, r)
		}
	}
	if len(rivals) < 2 {
		return nil
	}
	slices.SortStableFunc(rivals, func(a, b *record.Record) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(estimate.Events(b), estimate.Events(a)))
	})
	var parts []string
	for _, r := range rivals {
		words := r.Impl.Label
		switch words {
		case form.LSTMBest:
			words += " (the paper's counterpart, one grouped product per step)"
		case "LSTM, naive":
			words += " (eight products per step)"
		}
		parts = append(parts, fmt.Sprintf("%s× over %s", quantity.Ratio(estimate.Events(best)/estimate.Events(r)), words))
	}
	return []string{fmt.Sprintf("One sequence, speed-up of the LS-LSTM of length %d over LSTMs of length 256: %s.", best.Point.Steps, strings.Join(parts, "; "))}
}

// sameLength compares LS-LSTM and the fastest LSTM where both have as many steps, with one sequence.
func sameLength(recs []record.Record) []string {
	var parts []string
	longest := 0
	graph := false
	steps := map[int]bool{}
	for _, p := range pick.Points(recs) {
		if p.Layers == 2 && p.Pass == "train" && p.Batch == 1 {
			steps[p.Steps] = true
		}
	}
	for _, n := range slices.Sorted(maps.Keys(steps)) {
		here := func(p record.Point) bool {
			return p.Layers == 2 && p.Pass == "train" && p.Batch == 1 && p.Steps == n
		}
		var forms, replayed []string
		for _, s := range append(form.LSTMForms(), form.StepByStep(form.LSTMBest)) {
			forms = append(forms, s.Label)
			if s.Knobs["graph"] == 1 {
				replayed = append(replayed, s.Label)
			}
		}
		scan, best, asGraph := pick.Find(recs, form.LSScan, here), pick.Fastest(recs, forms, here), pick.Fastest(recs, replayed, here)
		if scan == nil || best == nil {
			continue
		}
		longest = n
		graph = graph || pick.Find(recs, form.LSTMPersistentGraph, here) != nil
		part := fmt.Sprintf("%s× over %s", quantity.Ratio(best.Seconds()/scan.Seconds()), best.Impl.Label)
		if asGraph != nil && asGraph != best {
			part += fmt.Sprintf(" and %s× over %s", quantity.Ratio(asGraph.Seconds()/scan.Seconds()), asGraph.Impl.Label)
		}
		parts = append(parts, fmt.Sprintf("%s at T=%d", part, n))
	}
	if parts == nil {
		return nil
	}
	over := "the fastest LSTM"
	if record.OnGPU(recs[0].Device) {
		over += " and over the fastest LSTM as a graph"
	}
	s := "At the same length, one sequence, speed-up over " + over + ": " + strings.Join(parts, "; ") + "."
	if record.OnGPU(recs[0].Device) {
		if !graph {
			s += " This form was not measured in this run and may be faster: " + form.LSTMPersistentGraph + "."
		}
		if longest == 256 {
			s += " In this run, no LSTM has more than 256 steps."
		}
	}
	return []string{s}
}
