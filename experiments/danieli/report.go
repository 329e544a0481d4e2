package danieli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

func reportCrossover(recs []record.Record, on study.Target) (*study.Report, error) {
	all, stronger := races(recs, false), races(recs, true)
	if !slices.ContainsFunc(all, func(x race) bool { return x.newton != nil || x.unconverged != nil }) {
		return nil, errors.New("experiments: no records of Newton's method")
	}
	rep := &study.Report{Tables: []*table.Table{tableOfRaces(all), besidePapers(all)}}
	if len(stronger) > 0 {
		rep.Tables = append(rep.Tables, tableOfGains(stronger))
	}
	var over estimate.Duel
	for _, x := range all {
		over.Add(x.serial, x.newton)
	}
	if len(over) > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("Newton's method is %s.", over.Full("the serial kernel", "point")), crossing(all))
		rep.Yardstick("Newton's method for all steps is " + over.Brief("a serial kernel"))
	}
	rep.Findings = append(rep.Findings, costs(all, on)...)
	if s := unconverged(all); s != "" {
		rep.Findings = append(rep.Findings, s)
	}
	if s := grown(stronger); s != "" {
		rep.Findings = append(rep.Findings, s)
	}
	fig := figure(all, on)
	if m, known := predict(all, on); known {
		words := "Predicted crossover: channels = latency of a step × rate / (iterations × bytes of a channel and step). The latency is the serial kernel's least in this run, iterations and bytes are newton's medians. " + show.Upper(m.String())
		said := words
		if v := m.right(all); v.All() > 0 {
			said += fmt.Sprintf("; this names the faster at %d of %d points with a clear lead", v.Yes, v.All())
		}
		fig.Panels[0].Guides = append(fig.Panels[0].Guides, m.guides(all)...)
		rep.Findings, fig.Notes = append(rep.Findings, said+"."), append(fig.Notes, words+".")
	}
	rep.Add("newton-crossover", fig, nil)
	claimSpeedup(rep, all, on)
	return rep, nil
}

// crossing says up to how many channels Newton's method is clearly faster, for each number of steps.
func crossing(all []race) string {
	most, measured := map[int]int{}, map[int]int{} // channels by steps; 0: nowhere faster
	for _, x := range all {
		if !x.times.Known() {
			continue
		}
		if measured[x.Steps] = max(measured[x.Steps], x.channels()); x.lead() == estimate.Yes {
			most[x.Steps] = max(most[x.Steps], x.channels())
		}
	}
	var words []string
	some := false
	for _, n := range slices.Sorted(maps.Keys(measured)) {
		words = append(words, fmt.Sprintf("%d of %d at %d steps", most[n], measured[n], n))
		some = some || most[n] > 0
	}
	if !some {
		return "Newton's method is clearly faster at none of these sizes."
	}
	return fmt.Sprintf("The most channels at which Newton's method is clearly faster, of the most measured: %s.", strings.Join(words, ", "))
}

// costs says what an answer of Newton's method takes: iterations, scans, and bytes a second.
func costs(all []race, on study.Target) (said []string) {
	var took []int
	var whole, each estimate.Duel
	var fastest float64
	for _, x := range all {
		n := iterations(x.newton)
		if n == 0 {
			continue
		}
		took = append(took, n)
		fastest = max(fastest, float64(x.newton.Work.Bytes)/x.newton.Seconds())
		if e := estimate.TimesAsFast(x.newton, x.single); e.Known() {
			whole, each = append(whole, e), append(each, e.By(1/float64(n)))
		}
	}
	if len(took) == 0 {
		return nil
	}
	slices.Sort(took)
	said = append(said, fmt.Sprintf("The answers take %s.", span(took)))
	if len(whole) > 0 {
		said = append(said, fmt.Sprintf("Newton's method takes %.2f times as long as a single scan of %s, and %.2f times for each iteration (geometric means of %s).",
			estimate.Mean(whole).At, surrogate, estimate.Mean(each).At, quantity.Plural(len(whole), "point")))
	}
	if on.Copy > 0 {
		said = append(said, fmt.Sprintf("Newton's method moves up to %s, %s of a copy's rate.", quantity.SI(fastest, "B/s"), show.Share(fastest/on.Copy)))
	}
	return said
}

// grown says how many iterations answers take at each gain, and where the method does not converge.
func grown(all []race) string {
	took, tried, failed := map[int][]int{}, map[int]int{}, map[int]int{}
	for _, x := range all {
		switch n := iterations(x.newton); {
		case x.unconverged != nil:
			failed[x.Gain]++
		case n > 0:
			took[x.Gain] = append(took[x.Gain], n)
		default:
			continue
		}
		tried[x.Gain]++
	}
	var words []string
	for _, g := range slices.Sorted(maps.Keys(tried)) {
		var found []string
		if list := took[g]; len(list) > 0 {
			few, many := slices.Min(list), slices.Max(list)
			s := quantity.Plural(many, "iteration")
			if few < many {
				s = fmt.Sprintf("%d to %s", few, s)
			}
			found = append(found, s)
		}
		if n := failed[g]; n > 0 {
			found = append(found, fmt.Sprintf("not converged at %d of %s", n, quantity.Plural(tried[g], "point")))
		}
		words = append(words, fmt.Sprintf("%d %%: %s", g, strings.Join(found, ", ")))
	}
	if words == nil {
		return ""
	}
	return "By the gain of recurrent weights, at " + strings.Join(words, "; at ") + "."
}

// span spells a sorted list of iterations, such as "4 to 8 iterations".
func span(took []int) string {
	if first, last := took[0], took[len(took)-1]; first < last {
		return fmt.Sprintf("%d to %d iterations, %d in the median point", first, last, took[len(took)/2])
	}
	return quantity.Plural(took[0], "iteration")
}

// mostNamed is the most layers that a finding names.
const mostNamed = 6

// unconverged names the layers of which Newton's method has not found the answer; "": there is none.
func unconverged(all []race) string {
	var names []string
	for _, x := range all {
		if r := x.unconverged; r != nil {
			s := fmt.Sprintf("%d × %d × %d", x.Batch, x.Hidden, x.Steps)
			if r.Verify != nil {
				s += fmt.Sprintf(" (after %d iterations the states still change by %.2g of the largest)", r.Verify.Iterations, r.Verify.Residual)
			}
			names = append(names, s)
		}
	}
	n := len(names)
	switch {
	case n == 0:
		return ""
	case n > mostNamed:
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", n-mostNamed))
	}
	return fmt.Sprintf("Newton's method has not converged, and is not timed, at %d of %d points (sequences × units × steps): %s.", n, len(all), strings.Join(names, "; "))
}

// reported is the largest factor of ParaRNN's abstract.
const reported = 665

// besidePapers sets the largest factors beside those of the papers.
func besidePapers(all []race) *table.Table {
	t := &table.Table{Title: "How many times as fast as step after step", Columns: []table.Column{
		{Name: "By", Key: "by"}, {Name: "Cell", Key: "cell"}, {Name: "Rival", Key: "rival"}, show.Column("Up to", "most"), {Name: "Iterations end", Key: "iterations"}}}
	add := func(by, cell, rival string, most float64, end string) {
		t.Rows = append(t.Rows, []table.Cell{table.Text(by), table.Text(cell), table.Text(rival), factor(most), table.Text(end)})
	}
	add("ParaRNN, 2025", "GRU, diagonal", "a launch a step", reported, "after 3, unchecked")
	add("DEER, 2024", "GRU, dense", "a step a call", 1000, "at small changes")
	const checked = "when right"
	for _, rival := range []struct {
		name string
		of   func(race) *record.Record
	}{{"one serial kernel", func(x race) *record.Record { return x.serial }}, {"a launch a step", func(x race) *record.Record { return x.launched }}} {
		if _, best := most(all, rival.of); best.Known() {
			add("here", "GRU, diagonal", rival.name, best.At, checked)
		}
	}
	return t
}

// factor is a cell of a ratio.
func factor(v float64) table.Cell {
	c := show.Ratio(v)
	if c.Value != nil {
		c.Text += "×"
	}
	return c
}

// most is the layer at which Newton's method is the most times as fast as a rival, which it has of those.
func most(all []race, rival func(race) *record.Record) (at race, best estimate.Estimate) {
	best = estimate.TimesAsFast(nil, nil)
	for _, x := range all {
		if e := estimate.TimesAsFast(rival(x), x.newton); e.Known() && (!best.Known() || e.At > best.At) {
			at, best = x, e
		}
	}
	return at, best
}

// claimSpeedup compares the largest factors with ParaRNN's.
func claimSpeedup(rep *study.Report, all []race, on study.Target) {
	const claim = "Newton's method is up to 665 times as fast as step after step (ParaRNN, abstract)"
	rep.Findings = append(rep.Findings, "The papers' factors are those of their abstracts. ParaRNN's rival launches a kernel for each step, and its three iterations are not checked. DEER reports up to three orders of magnitude on a GPU.")
	x, best := most(all, func(x race) *record.Record { return x.serial })
	if best.Known() {
		rep.Findings = append(rep.Findings, fmt.Sprintf("The largest factor over the serial kernel is %s, at %s of %d units and %d steps.", best.Times(), quantity.Plural(x.Batch, "sequence"), x.Hidden, x.Steps))
	}
	slow, most := most(all, func(x race) *record.Record { return x.launched })
	if !most.Known() {
		study.NotMeasured(rep, claim, "a rival that launches a kernel for each step on a GPU")
		return
	}
	why := ""
	if best.Known() {
		why = fmt.Sprintf("launches make most of the factor: one serial kernel in their place leaves up to %s×", quantity.Ratio(best.At))
	}
	study.ClaimOf(rep, on, claim, fmt.Sprintf("up to %s over launched steps, at %d × %d × %d", most.Times(), slow.Batch, slow.Hidden, slow.Steps), most, estimate.Near(reported), why)
}

// figure is a map of who is the fastest, with steps and channels as axes.
func figure(all []race, on study.Target) *plots.Chart {
	ch := &plots.Chart{Title: "Newton's method or a serial kernel: the faster, by steps and channels", Subtitle: on.Name + " · GRU with a diagonal recurrence · forward · fp32",
		X: plots.Axis{Title: "Steps", Scale: plots.Log, Format: quantity.Size, FormatValue: quantity.Size},
		Y: plots.Axis{Title: "Channels (sequences × units)", Scale: plots.Log, Format: quantity.Size, FormatValue: quantity.Size}}
	wins := []plots.Series{{Label: "newton is faster"}, {Label: "the serial kernel is faster"}, {Label: "without a clear lead"}, {Label: "newton has not converged"}}
	for _, x := range all {
		i := map[estimate.Answer]int{estimate.Yes: 0, estimate.No: 1, estimate.Open: 2}[x.lead()]
		switch {
		case x.unconverged != nil:
			i = 3
		case !x.times.Known():
			continue
		}
		steps, channels := float64(x.Steps), float64(x.channels())
		wins[i].Points = append(wins[i].Points, plots.Point{X: steps, Y: channels})
		ch.X.Places, ch.Y.Places = append(ch.X.Places, steps), append(ch.Y.Places, channels)
	}
	panel := plots.Panel{}
	for _, s := range wins {
		if s.Scatter = true; len(s.Points) > 0 || len(panel.Series) < 2 { // the first two have the same colours in each figure
			panel.Series = append(panel.Series, s)
		}
	}
	ch.Panels = []plots.Panel{panel}
	return ch
}
