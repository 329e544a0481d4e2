package yardstick

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
)

// resetsCost is what resets may cost: a part of the time of the layer without them.
const resetsCost = 0.03

// RL is the experiment rl.
var RL = study.Experiment{
	ID: "rl", Title: "Recurrent reinforcement learning: episodes that end within sequences", Source: "rnnbench's preset rl: layers of TorchRL, CleanRL, IMPALA and DreamerV3",
	TakesRivals: true,
	Parts: func(s study.Size, on study.Target) []study.Part {
		preset := "rl"
		if s == study.Quick {
			preset = "rl-quick"
		}
		points := presetPoints(preset)
		if on.GPU { // where TorchRL and PyTorch form products of fp32 in tf32, unless told otherwise
			for i := range points {
				points[i].Precision = "tf32"
			}
		}
		own := usual(on)[1:3] // without naive, and without the vendor's library, which has no resets
		return []study.Part{{Points: points, Specs: withRivals(own, on)}}
	},
	Report: reportRL,
}

// reportRL compares the fastest of rnnbench's techniques with each rival, and each technique with
// itself without resets.
func reportRL(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	theirs := map[string]bool{}
	var rivals []study.Rival // that were measured
	labels := pick.Labels(recs)
	for _, r := range on.Rivals {
		for _, l := range r.Labels() {
			theirs[l] = true
		}
		if slices.ContainsFunc(r.Labels(), func(l string) bool { return slices.Contains(labels, l) }) {
			rivals = append(rivals, r)
		}
	}
	names := slices.DeleteFunc(labels, func(l string) bool { return theirs[l] })
	layers := agents(recs)
	t := agentTable(recs, layers, names, rivals)
	if len(t.Rows) == 0 {
		return nil, errors.New("experiments: no records of the layers of agents")
	}
	rep.Tables = append(rep.Tables, t)
	for _, r := range rivals {
		agentsAgainst(rep, recs, on, layers, names, r)
	}
	priceResets(rep, recs, on, layers, names)
	if len(rivals) == 0 {
		rep.Findings = append(rep.Findings, "No rival was measured. Name one with --rival, such as rivals/pytorch.toml.")
	}
	return rep, nil
}

// agents returns the points in the order of passes, then layers, then resets.
func agents(recs []record.Record) []record.Point {
	all := pick.Points(recs)
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Heads, b.Heads), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Cell, b.Cell),
			cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Steps, b.Steps), cmp.Compare(a.Precision, b.Precision), cmp.Compare(a.Resets, b.Resets))
	})
	return all
}

// at matches a point.
func at(p record.Point) func(record.Point) bool { return func(q record.Point) bool { return q == p } }

// unreset is p without resets.
func unreset(p record.Point) record.Point {
	p.Resets = 0
	return p
}

// agentName spells p without its pass and resets.
func agentName(p record.Point) string {
	s := fmt.Sprintf("%s %d × %d × %d", p.Cell, p.Hidden, p.Batch, p.Steps)
	if p.Heads > 1 {
		s += fmt.Sprintf(", %d heads", p.Heads)
	}
	return s + " " + p.Precision
}

// agentTable returns the time of each layer, by the fastest of names and of each rival's forms.
func agentTable(recs []record.Record, layers []record.Point, names []string, rivals []study.Rival) *table.Table {
	t := &table.Table{Title: "Time of one run: units × sequences × steps", Columns: []table.Column{{Name: "Pass", Key: "pass"}, {Name: "Layer", Key: "layer"},
		{Name: "Resets", Key: "resets", Right: true}, {Name: "rnnbench", Key: "rnnbench_s", Right: true}, {Name: "technique", Key: "by"}, {Name: "× without resets", Key: "as_without", Right: true}}}
	for _, r := range rivals {
		key := strings.ReplaceAll(r.Name, " ", "_")
		t.Columns = append(t.Columns, table.Column{Name: r.Name, Key: key + "_s", Right: true}, table.Column{Name: "form", Key: key + "_by"}, table.Column{Name: "×", Key: key + "_ratio", Right: true})
	}
	for _, p := range layers {
		best := pick.Fastest(recs, names, at(p))
		if best == nil {
			continue
		}
		without := show.Missing()
		if plain := pick.Fastest(recs, names, at(unreset(p))); p.Resets > 0 && plain != nil {
			without = show.Ratio(plain.Seconds() / best.Seconds())
		}
		row := []table.Cell{table.Text(p.Pass), table.Text(agentName(p)), table.Number(float64(p.Resets), fmt.Sprintf("%d %%", p.Resets)), seconds(best), table.Text(best.Impl.Label), without}
		for _, r := range rivals {
			yard := pick.Fastest(recs, r.Labels(), at(p))
			if yard == nil {
				row = append(row, show.Missing(), show.Missing(), show.Missing())
				continue
			}
			row = append(row, seconds(yard), table.Text(yard.Impl.Label), show.Ratio(estimate.TimesAsFast(yard, best).At))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// agentsAgainst adds findings, verdicts and a figure about one rival: with resets, and without.
func agentsAgainst(rep *study.Report, recs []record.Record, on study.Target, layers []record.Point, names []string, r study.Rival) {
	called := versioned(recs, r)
	fig := agentBars(fmt.Sprintf("Layers of agents: rnnbench's fastest technique over %s", called), "Times as fast as "+r.Name, on)
	for _, pass := range []string{"forward", "train"} {
		for _, resets := range []bool{false, true} {
			var d estimate.Duel
			for _, p := range layers {
				if p.Pass != pass || p.Resets > 0 != resets {
					continue
				}
				own, yard := pick.Fastest(recs, names, at(p)), pick.Fastest(recs, r.Labels(), at(p))
				d.Add(yard, own)
				addBar(fig, p, fmt.Sprintf("resets %d %%", p.Resets), estimate.TimesAsFast(yard, own))
			}
			if len(d) == 0 {
				continue
			}
			words := map[bool]string{true: "with resets", false: "without resets"}[resets]
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: rnnbench's fastest technique is %s.", show.Upper(pass), words, d.Full(called, "layer")))
			rep.Yardstick(fmt.Sprintf("%s, %s: %s", pass, words, d.Brief(called)))
		}
	}
	if fig.Groups != nil {
		rep.Add("rl-"+strings.ReplaceAll(r.Name, " ", "-"), fig, nil)
	}
}

// priceResets adds what resets cost each technique: its speed with them over its speed without. The
// two are points of their own, not in turns, so their intervals are wider than what resets may cost.
func priceResets(rep *study.Report, recs []record.Record, on study.Target, layers []record.Point, names []string) {
	fig := agentBars("Layers of agents with resets over the same layers without", "Times as fast as without resets", on)
	for _, name := range names {
		for _, pass := range []string{"forward", "train"} {
			var d estimate.Duel
			within := 0
			for _, p := range layers {
				with, without := pick.Find(recs, name, at(p)), pick.Find(recs, name, at(unreset(p)))
				if p.Pass != pass || p.Resets == 0 || with == nil || without == nil {
					continue
				}
				e := estimate.TimesAsFast(without, with)
				d.Add(without, with)
				if e.At*(1+resetsCost) >= 1 {
					within++
				}
				addBar(fig, p, fmt.Sprintf("%s, resets %d %%", name, p.Resets), e)
			}
			if len(d) == 0 {
				continue
			}
			some := fmt.Sprintf("by medians, resets cost at most %.0f %% at %d of %s", 100*resetsCost, within, quantity.Plural(len(d), "layer"))
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: %s. With them it is %s.", show.Upper(pass), name, some, d.Full("without", "layer")))
			rep.Yardstick(fmt.Sprintf("%s, %s: %s", pass, name, some))
		}
	}
	if fig.Groups != nil {
		rep.Add("rl-resets", fig, nil)
	}
}

// agentBars is a figure with a group for each layer.
func agentBars(title, x string, on study.Target) *plots.Bars {
	return &plots.Bars{Title: title, Subtitle: on.Name,
		Notes:  []string{"Ratios of medians; above 1, the first is faster. Layers are units × sequences × steps."},
		X:      plots.Axis{Title: x, Format: show.Times},
		Guides: []plots.Guide{{X0: 1, X1: 1}},
		Value:  quantity.Factor}
}

// addBar adds a bar to the group of p's layer and pass.
func addBar(fig *plots.Bars, p record.Point, series string, e estimate.Estimate) {
	if !e.Known() {
		return
	}
	bar := plots.Bar{Series: series, Value: e.At}
	if e.Lo > 0 && !math.IsInf(e.Hi, 1) {
		bar.Lo, bar.Hi = e.Lo, e.Hi
	}
	label := agentName(p) + ", " + p.Pass
	i := slices.IndexFunc(fig.Groups, func(g plots.Group) bool { return g.Label == label })
	if i < 0 {
		i, fig.Groups = len(fig.Groups), append(fig.Groups, plots.Group{Label: label})
	}
	fig.Groups[i].Bars = append(fig.Groups[i].Bars, bar)
}
