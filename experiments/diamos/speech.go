package diamos

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// A stack is a row of Table 2 or 3: a number of recurrent layers and of units.
type stack struct {
	table, layers, hidden int
	wer                   float64 // word error rate that the paper prints
	millions              float64 // of parameters, as the paper prints them; 0: it does not
}

// stacks returns the rows of both tables. Table 2 keeps the number of parameters. Table 3 keeps that
// of a layer, from which its units follow (2·1152² = 2.65 M).
func stacks() []stack {
	return []stack{
		{2, 8, 1632, 33.61, 0}, {2, 24, 928, 31.99, 0}, {2, 40, 704, 31.64, 0}, {2, 56, 608, 30.67, 0}, {2, 72, 544, 33.35, 0}, {2, 88, 480, 42.67, 0},
		{3, 8, 1152, 35.69, 22}, {3, 24, 1152, 31.32, 65}, {3, 40, 1152, 28.90, 107}, {3, 56, 1152, 28.12, 149}, {3, 72, 1152, 27.84, 192}, {3, 88, 1152, 27.23, 234},
	}
}

// skips returns the word error rates of Table 1, of 48 layers of 1152 units. The index is the number
// of layers that each skip connection spans; 0: there is none.
func skips() []float64 { return []float64{100, 38.77, 33.28, 30.32, 29.40, 29.82, 30.04, 29.87, 27.44} }

// parameters is the number of weights of the recurrent layers.
func (s stack) parameters() float64 {
	return 2 * float64(s.layers) * float64(s.hidden) * float64(s.hidden)
}

// printed returns the parameters that the paper prints, as a cell.
func (s stack) printed() table.Cell {
	if s.millions == 0 {
		return show.Missing()
	}
	return table.Number(1e6*s.millions, fmt.Sprintf("%.0f M", s.millions))
}

// point is the training of s: at minibatch 4, which the paper's kernels make
// efficient, and over its average utterance of 350 steps. The quick one has an
// eighth of the units.
func (s stack) point(size study.Size) record.Point {
	p := record.Point{Cell: "rnn-relu", Pass: "train", Hidden: s.hidden, Input: s.hidden, Layers: s.layers, Batch: 4, Steps: 350, Precision: "fp32"}
	if size == study.Quick {
		p.Hidden /= 8
		p.Input, p.Steps = p.Hidden, 20
	}
	return p
}

// Speech is the experiment diamos-speech.
var Speech = study.Experiment{
	ID: "diamos-speech", Title: "Very deep speech models: training throughput of the stacks, without word error rates",
	Source: "Diamos et al. 2016, Tables 1, 2 and 3 and Figure 8",
	Unlike: "throughput of the recurrent stacks alone, 48 of 61 layers in Figure 7: no skip connections, batch normalisation, convolutions, CTC or momentum; the data are private",
	Parts: func(size study.Size, on study.Target) []study.Part {
		var list []record.Point
		for _, s := range stacks() {
			list = append(list, s.point(size))
		}
		ladder := form.Ladder(1)
		specs := []grid.Spec{study.Spec("naive", "naive", nil), study.Spec("cudnnstyle", "cudnnstyle", ladder[len(ladder)-2].Knobs)}
		return []study.Part{{Points: list, Specs: on.WithGPU(append(specs, persistentSpecs()...), append([]grid.Spec{study.Graphed("cudnnstyle, graph", specs[1])}, form.GridForms(size)...)...)}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		reportWordErrors(rep)
		parameterClaim(rep)
		reportStacks(rep, recs, on)
		return rep, nil
	},
}

// reportWordErrors lists the word error rates, which cannot be measured, and says why.
func reportWordErrors(rep *study.Report) {
	const why = "not reproducible: 500 hours of private speech"
	t := &table.Table{
		Title: "Word error rates on the paper's development set",
		Columns: []table.Column{{Name: "Source", Key: "of"}, {Name: "Recurrent layers", Key: "layers", Right: true}, {Name: "Units", Key: "hidden", Right: true},
			{Name: "Paper, WER %", Key: "paper_wer_percent", Right: true}, {Name: "Here", Key: "here"}},
	}
	for _, s := range stacks() {
		t.Rows = append(t.Rows, []table.Cell{table.Text(fmt.Sprintf("Table %d", s.table)), table.Int(s.layers), table.Int(s.hidden), show.Number(s.wer, "%.2f"), table.Text(why)})
	}
	for n, wer := range skips() {
		of := "Table 1: no skip connection"
		if n > 0 {
			of = fmt.Sprintf("Table 1: skip connections over %s", layersWord(n))
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(of), table.Int(48), table.Int(1152), show.Number(wer, "%.2f"), table.Text(why)})
	}
	t.Rows = append(t.Rows, []table.Cell{table.Text("Figure 8: cost against minibatch"), table.Int(48), table.Int(1152), show.Missing(), table.Text(why)})
	rep.Tables = append(rep.Tables, t)
	rep.Findings = append(rep.Findings, "The word error rates of Tables 1 to 3 and the costs of Figure 8 cannot be reproduced. The authors trained for 20 epochs on 500 hours of private English speech. They tested on an internal set of 2048 utterances with their own language model. Only the training speed of the stacks can be measured.")
	rep.Claims = append(rep.Claims, study.Claim{Paper: "word error rates from 27.23 % (88 layers) to 100 %", Here: "only the throughput of the stacks", Outcome: study.Irreproducible, Why: "500 hours of private speech"})
}

// parameterClaim compares the stacks' parameters with those of Table 3.
func parameterClaim(r *study.Report) {
	var here []string
	agrees := true
	for _, s := range stacks() {
		if s.millions > 0 {
			here = append(here, fmt.Sprintf("%.3g", s.parameters()/1e6))
			agrees = agrees && math.Abs(s.parameters()/1e6/s.millions-1) < 0.05
		}
	}
	study.Computed(r, "Table 3: 22, 65, 107, 149, 192 and 234 million parameters", strings.Join(here, ", ")+" million weights of the recurrent layers", agrees, "")
}

// reportStacks sets the throughput of the stacks side by side.
func reportStacks(rep *study.Report, recs []record.Record, on study.Target) {
	t := stacksTable()
	recs = form.FastestForms(recs)
	ch := &plots.Chart{Title: "Diamos Tables 2 and 3: training throughput of deep stacks", Subtitle: on.Name,
		Notes: []string{"Marks are medians; bars are their confidence intervals."},
		X:     plots.Axis{Title: "Recurrent layers", Scale: plots.Linear, Format: quantity.Size}, Y: plots.Axis{Title: "Throughput (FLOP/s)", Zero: true}}
	if on.Reduced {
		ch.Notes[0] += " Quick runs have one eighth of the units."
	}
	var failed []*record.Record
	gains := map[record.Point]map[string]estimate.Estimate{} // of each technique over naive, by stack
	var names []string
	for _, n := range []int{2, 3} {
		panel := plots.Panel{Title: map[int]string{2: "Table 2: constant parameters, narrower layers", 3: "Table 3: constant units, more parameters"}[n]}
		lines := map[string]*plots.Series{}
		var order []string
		for _, s := range stacks() {
			if s.table != n {
				continue
			}
			ch.X.Places = append(ch.X.Places, float64(s.layers))
			for _, size := range []study.Size{study.Full, study.Quick} {
				p := s.point(size)
				here := func(q record.Point) bool { return q == p }
				base := pick.Find(recs, "naive", here)
				for _, label := range pick.Labels(recs) {
					r, bad := pick.Find(recs, label, here), pick.Broken(recs, label, here)
					if r == nil && bad == nil {
						continue
					}
					if lines[label] == nil {
						lines[label] = &plots.Series{Label: label}
						order = append(order, label)
					}
					if r == nil {
						failed = append(failed, bad)
						lines[label].Points = append(lines[label].Points, plots.Point{X: float64(s.layers), Missing: true})
						continue
					}
					up := estimate.TimesAsFast(base, r)
					if gains[p] == nil {
						gains[p] = map[string]estimate.Estimate{}
					}
					gains[p][label] = up
					lines[label].Points = append(lines[label].Points, show.RatePoint(float64(s.layers), r))
					ch.Subtitle = fmt.Sprintf("%s · %s · %s · B=%d · T=%d", on.Name, p.Cell, p.Pass, p.Batch, p.Steps)
					t.Rows = append(t.Rows, s.row(r, up.At))
				}
			}
		}
		for _, label := range order {
			panel.Series = append(panel.Series, *lines[label])
		}
		if order == nil {
			ch.Notes = append(ch.Notes, fmt.Sprintf("No stack of Table %d was measured.", n))
		} else {
			ch.Panels = append(ch.Panels, panel)
		}
		names = pick.Labels(recs)
	}
	if len(t.Rows) == 0 {
		rep.Findings = append(rep.Findings, "No stack was measured.")
		return
	}
	rep.Tables = append(rep.Tables, t)
	if failed != nil {
		ch.Notes = append(ch.Notes, "No result: "+quantity.Reasons(failed)+".")
	}
	rep.Add("diamos-speech", ch, nil)
	stackGains(rep, pick.Points(recs), names, gains)
	if s := stackChecks(recs); s != "" {
		rep.Findings = append(rep.Findings, s)
	}
	rep.Findings = append(rep.Findings, "The paper prints no throughput of single stacks. It prints only 250 TFLOP/s for 48 layers on 128 GPUs, about 30 % of their peak.")
}

// stackGains compares the techniques over the stacks that all of them trained, so that each mean is of
// the same stacks.
func stackGains(r *study.Report, stacks []record.Point, names []string, gains map[record.Point]map[string]estimate.Estimate) {
	lists := map[string][]estimate.Estimate{}
	common := 0
	for _, p := range stacks {
		g := gains[p]
		if base, ok := g["naive"]; !ok || !base.Known() || len(g) < len(names) {
			continue
		}
		common++
		for label, up := range g {
			lists[label] = append(lists[label], up)
		}
	}
	if common == 0 {
		r.Findings = append(r.Findings, "No stack has results of all techniques, so no mean is given.")
		return
	}
	for _, label := range names {
		if label != "naive" {
			r.Findings = append(r.Findings, fmt.Sprintf("%s trains the stacks %s as fast as naive (geometric mean over the %s that all techniques trained).", label, estimate.Mean(lists[label]).Times(), quantity.Plural(common, "stack")))
		}
	}
}

// stackChecks says over how many steps the states and the gradients of each technique were checked; ""
// if none was.
func stackChecks(recs []record.Record) string {
	type depth struct{ states, gradients []int }
	of := map[string]*depth{}
	every, also := true, 0
	for i := range recs {
		x := &recs[i]
		if x.Status != record.OK || x.Verify == nil {
			continue
		}
		d := of[x.Impl.Label]
		if d == nil {
			d = &depth{}
			of[x.Impl.Label] = d
		}
		v := x.Verify
		states := v.Steps
		if v.Method == record.VerifyShorter {
			states = v.States
		}
		d.states, d.gradients = append(d.states, states), append(d.gradients, v.Steps)
		every = every && states == x.Point.Steps
		if v.Shorter > 0 {
			also++
		}
	}
	span := func(list []int) string {
		switch least, most := slices.Min(list), slices.Max(list); {
		case most == 0:
			return "not recorded"
		case least < most:
			return fmt.Sprintf("%d to %d", least, most)
		default:
			return fmt.Sprint(most)
		}
	}
	var states, gradients []string
	for _, label := range pick.Labels(recs) {
		if d := of[label]; d != nil {
			states, gradients = append(states, label+" "+span(d.states)), append(gradients, label+" "+span(d.gradients))
		}
	}
	if states == nil {
		return ""
	}
	s := "Steps of the timed run at which states were checked: " + strings.Join(states, ", ")
	if every {
		s = "The states of every technique were checked at every step of the timed run"
	}
	s += ". Steps over which gradients were checked: " + strings.Join(gradients, ", ") + "."
	if also > 0 {
		s += fmt.Sprintf(" In %s with more steps, gradients were checked over the fewer steps too, as those of the others.", quantity.Plural(also, "record"))
	}
	return s + " A check over few steps may miss what a check over all would find."
}

// stacksTable is the table of the stacks, without rows.
func stacksTable() *table.Table {
	return &table.Table{
		Title: "Training throughput of the stacks: forward, backward and weight gradients",
		Columns: []table.Column{
			{Name: "Source", Key: "of"}, {Name: "L", Key: "layers", Right: true}, {Name: "H", Key: "hidden", Right: true},
			{Name: "Parameters, full size", Key: "paper_parameters", Right: true}, {Name: "Paper", Key: "printed_parameters", Right: true}, {Name: "Technique", Key: "technique"},
			{Name: "time", Key: "time_s", Right: true}, {Name: "FLOP/s", Key: "flops_per_s", Right: true}, {Name: "utterances/s", Key: "utterances_per_s", Right: true},
			{Name: "× naive", Key: "speedup", Right: true},
		},
	}
}

// row is a line of stacksTable; up is the speed-up over naive.
func (s stack) row(r *record.Record, up float64) []table.Cell {
	p := r.Point
	return []table.Cell{table.Text(fmt.Sprintf("Table %d", s.table)), table.Int(p.Layers), table.Int(p.Hidden),
		table.Number(s.parameters(), quantity.SI(s.parameters(), "")), s.printed(), table.Text(r.Impl.Label),
		table.Time(r), table.Throughput(r),
		table.Number(float64(p.Batch)/r.Seconds(), quantity.SI(float64(p.Batch)/r.Seconds(), "")), show.Number(up, "%.2f")}
}
