package martin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
)

// initial is the share of the training time that counts as initial learning.
const initial = 0.02

// lengthFindings adds whether shorter sequences learn faster at first and end at a higher loss.
func lengthFindings(rep *study.Report, all []learned, on study.Target) {
	lstms := slices.DeleteFunc(slices.Clone(all), func(l learned) bool { return l.cell != "lstm" })
	if len(lstms) < 2 {
		return
	}
	slices.SortStableFunc(lstms, func(a, b learned) int { return a.steps - b.steps })
	const sooner, higher = "the shorter the sequences, the faster the LSTM learns at first (Figure 2)", "the shorter the sequences, the higher the LSTM's final loss (Figure 2)"
	if at := earliest(lstms); math.IsNaN(at) {
		study.NotMeasured(rep, sooner, "a time that all LSTMs have trained for")
	} else {
		values, margin := inOrder(lstms, func(l learned) quantity.Interval { return plusMinus(l.train.at(at), l.train.noise()) }, lossBelow)
		study.CompareAbove(rep, on, fmt.Sprintf("Training losses of the LSTMs after %.3g s: %s. The paper: the shorter the sequences, the faster the LSTM learns at first.", at, values),
			sooner, fmt.Sprintf("training losses after %.3g s: %s", at, values), margin, 0, "")
	}
	values, margin := inOrder(lstms, func(l learned) quantity.Interval { return l.train.last() }, func(a, b quantity.Interval) quantity.Interval { return lossBelow(b, a) })
	said := fmt.Sprintf("Training losses of the LSTMs, means over the last quarter: %s. The paper: the shorter the sequences, the higher the final loss. Each network was trained once, so the spread over first weights is not known.", values)
	falls := stillFalls(lstms)
	if falls == "" {
		study.CompareAbove(rep, on, said, higher, values, margin, 0, "")
		return
	}
	rep.Findings = append(rep.Findings, said+on.Agree(estimate.Open, "", falls))
	study.Settle(rep, on, higher, values, estimate.Open, "", falls)
}

// inOrder spells a loss of each network. margin is the smallest of those by which a network's exceeds
// what its neighbour with longer sequences has, by apart.
func inOrder(all []learned, loss func(learned) quantity.Interval, apart func(a, b quantity.Interval) quantity.Interval) (values string, margin quantity.Interval) {
	margin.Value = math.Inf(1)
	var each []string
	for i, l := range all {
		v := loss(l)
		each = append(each, fmt.Sprintf("%.3f (%s)", v.Value, l.label))
		if i == 0 {
			continue
		}
		if m := apart(loss(all[i-1]), v); m.Value < margin.Value {
			margin = m
		}
	}
	return strings.Join(each, ", "), margin
}

// earliest is a time early in training at which all networks have records before or after: the first
// that all have or, if that is later, initial of the shortest training. It is not a number if one
// network ended before another's first record.
func earliest(all []learned) float64 {
	from, end := 0.0, math.Inf(1)
	for _, l := range all {
		from, end = max(from, l.train.seconds[0]), min(end, l.train.end())
	}
	if from > end {
		return math.NaN()
	}
	return max(from, initial*end)
}

// stillFalls says that the longest sequences' loss is not final, if the records show it; else "".
func stillFalls(lstms []learned) string {
	long := lstms[len(lstms)-1]
	if v := long.train.falls(); v.Lo > 0 {
		return fmt.Sprintf("the loss of %s is not final after %.0f s: it falls by %s nats from the third quarter of the time to the last", long.label, long.train.end(), estimate.WithInterval(v, "%.3f", ""))
	}
	return ""
}

// paperLead is how many times the events per second of the paper's LSTM with 256 sequences its LS-LSTM
// of 1024 steps reaches with 16 sequences (Figure 1).
const paperLead = 112 / 99.8

// quarterClaim compares the time in which the LS-LSTM reaches a better training loss than any LSTM.
func quarterClaim(rep *study.Report, ls learned, lstms []learned, on study.Target) {
	const claim, times = "an LS-LSTM reaches a better training loss than any LSTM in a quarter of the time (section 4.2)", 4
	if !ls.means || slices.ContainsFunc(lstms, func(l learned) bool { return !l.means }) {
		study.NotMeasured(rep, claim, "training losses as means over iterations: each is of one minibatch")
		return
	}
	v, level, at := quarter(ls, lstms, func(learned) float64 { return 1 })
	here := fmt.Sprintf("%.3f after %.3g s, the lowest of any LSTM after %.0f s: %s", level, at, ends(lstms), estimate.Of(v).Times())
	if math.IsInf(at, 1) {
		here = fmt.Sprintf("%.3f, the lowest of any LSTM, is not reached after %.0f s", level, ls.train.end())
	}
	lead := func(l learned) float64 { return perSecond(ls) / perSecond(l) / paperLead }
	alike, _, _ := quarter(ls, lstms, func(l learned) float64 { return 1 / lead(l) })
	slow, _, _ := quarter(ls, lstms, learned.slower)
	why := ""
	switch {
	case alike.Lo > times:
		why = fmt.Sprintf("the LSTMs here are faster beside the LS-LSTM than the paper's; computed for the paper's rates, it is %s", estimate.Of(alike).Times())
	case slow.Lo > times:
		why = fmt.Sprintf("the LSTMs here keep their weights on chip; computed for LSTMs step by step, it is %s", estimate.Of(slow).Times())
	}
	study.CompareAbove(rep, on, "Training loss of the LS-LSTM, a mean over the last twentieth of the time: "+here+". The paper: in about 4.5 hours, the LS-LSTM reaches a better one than any LSTM in 18.", claim, here, v, times, why)
	if math.IsNaN(alike.Value) {
		return
	}
	rep.Findings = append(rep.Findings, fmt.Sprintf("If the LSTMs had the paper's rates, beside the LS-LSTM's, the quotient of times would be %s. It is computed: each LSTM's loss is taken from an earlier or later time. In all, an LSTM learns from %.3g million events here. The paper's rates give %.3g million in 18 hours.",
		estimate.Of(alike).Times(), mostEvents(lstms)/1e6, 99.8e3*18*3600/1e6))
}

// ends is the longest time that a network was trained for.
func ends(all []learned) (most float64) {
	for _, l := range all {
		most = max(most, l.train.end())
	}
	return most
}

// mostEvents is the most events that a network has learnt from.
func mostEvents(all []learned) (most float64) {
	for _, l := range all {
		most = max(most, float64(l.last().Frames))
	}
	return most
}

// perSecond is the rate of events in training.
func perSecond(l learned) float64 { return float64(l.batch*l.steps) / l.seconds() }

// quarter returns the LSTMs' time over that in which the LS-LSTM reaches the lowest training loss of
// all of them, that loss and the LS-LSTM's time, which is infinite if it does not. slower says how many
// times as long the LSTMs are to take, so that they reach less within their time; not a number: unknown. The interval comes from the noise of the losses.
func quarter(ls learned, lstms []learned, slower func(learned) float64) (v quantity.Interval, level, at float64) {
	level = math.Inf(1)
	unsure := 0.0
	smoothed := func(l learned) float64 { return l.train.noise() / math.Sqrt(max(1, float64(len(l.records))/20)) }
	for _, l := range lstms {
		c := l.train.smooth()
		for i, t := range c.seconds {
			if t*slower(l) <= l.train.end() && c.loss[i] < level {
				level, unsure = c.loss[i], smoothed(l)
			}
		}
	}
	if math.IsInf(level, 1) { // it is not known how much slower they would be
		return quantity.Interval{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}, level, level
	}
	c, time := ls.train.smooth(), ends(lstms)
	ratio := func(level float64) float64 {
		at, _ := c.reaches(level)
		return time / at
	}
	at, _ = c.reaches(level)
	if unsure = 2 * math.Hypot(unsure, smoothed(ls)); math.IsNaN(unsure) {
		unsure = 0
	}
	return quantity.Interval{Value: ratio(level), Lo: ratio(level - unsure), Hi: ratio(level + unsure)}, level, at
}
