package yardstick

import (
	"errors"
	"fmt"
	"math"
	"slices"

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

// Labels of the experiment on energy.
const (
	onChip1 = "persistent, graph"
	onChip0 = "persistent"
	perStep = "products"
)

// A contrast is two techniques whose energy is compared, by their labels and points.
type contrast struct {
	what      string
	from, to  string
	base, own record.Point
	per       string // what the energy is divided by: "cell step", "sequence"
}

// energyStack returns Appleyard's network.
func energyStack(s study.Size) record.Point {
	p := form.LSTM4()
	if s == study.Quick {
		p.Hidden, p.Input, p.Batch, p.Steps, p.Layers = 64, 64, 8, 20, 2
	}
	return p
}

// energyLayer returns a layer whose weights fit on chip.
func energyLayer(s study.Size, on study.Target) record.Point {
	p := record.Point{Cell: "lstm", Pass: "forward", Hidden: 256, Input: 256, Batch: 1, Steps: 256, Layers: 1, Precision: "fp32"}
	if on.GPU {
		p.Hidden, p.Input, p.Batch, p.Precision = 1024, 1024, 16, "bf16"
	}
	if s == study.Quick {
		p.Steps = 64
	}
	return p
}

// energySequences returns the networks of Martin and Cundy, over one sequence.
func energySequences(s study.Size) (linear, lstm record.Point) {
	steps := 4096
	if s == study.Quick {
		steps = 128
	}
	return form.MartinPoint("ls-lstm", steps, 1), form.MartinPoint("lstm", steps, 1)
}

// Energy is the experiment energy.
var Energy = study.Experiment{
	ID: "energy", Title: "Joules of a step and of a sequence", Source: "rnnbench; the networks are those of Appleyard et al. 2016, Diamos et al. 2016 and Martin & Cundy 2017",
	Energy: true,
	Parts: func(s study.Size, on study.Target) []study.Part {
		stack := energyStack(s)
		stages := form.LadderSpecs(stack.Layers)
		ends := []grid.Spec{stages[0], stages[len(stages)-1]}
		layer := []grid.Spec{form.GemmSpec(perStep, 2), study.Spec(onChip0, "persistent", nil)}
		linear, lstm := energySequences(s)
		return []study.Part{
			{Points: []record.Point{stack}, Specs: on.WithGPU(ends, form.SincePaper(stack.Layers)...)},
			{Points: []record.Point{energyLayer(s, on)}, Specs: on.WithGPU(layer, append(form.Vendors(), study.Graphed(onChip1, layer[1]))...)},
			form.ScanParts([]record.Point{linear}, on)[0],
			{Points: []record.Point{lstm}, Specs: on.WithGPU([]grid.Spec{form.StepByStep(form.LSTMBest)}, form.SameForms()...)},
		}
	},
	Report: reportEnergy,
}

// contrasts returns the contrasts that recs have both sides of, at the full size or else the quick
// one. Where a side has several forms, the one that took the least energy counts.
func contrasts(recs []record.Record, on study.Target) (all []contrast) {
	for _, size := range []study.Size{study.Full, study.Quick} {
		all = slices.DeleteFunc(contrastsAt(recs, size, on), func(c contrast) bool {
			a, b := c.records(recs)
			return joules(a) == 0 || joules(b) == 0
		})
		if len(all) > 0 {
			break
		}
	}
	return all
}

func contrastsAt(recs []record.Record, size study.Size, on study.Target) []contrast {
	stack, layer := energyStack(size), energyLayer(size, on)
	linear, lstm := energySequences(size)
	rungs := form.Ladder(stack.Layers)
	persistent := contrast{"a persistent layer, over products at each step", perStep, onChip0, layer, layer, "cell step"}
	if on.GPU {
		persistent = contrast{"a persistent layer, over cuDNN", leastEnergy(recs, form.VendorLabels(), layer), leastEnergy(recs, []string{onChip0, onChip1}, layer), layer, layer, "cell step"}
	}
	return []contrast{
		{"the last stage of Appleyard's ladder, over the first", rungs[0].Label, rungs[len(rungs)-1].Label, stack, stack, "cell step"},
		persistent,
		{"an LS-LSTM by scan, over an LSTM", leastEnergy(recs, []string{form.LSTMBest, form.LSTMGraph, form.LSTMPersistentGraph}, lstm), form.LSScan, lstm, linear, "sequence"},
	}
}

// records returns the two sides of c; nil: not measured.
func (c contrast) records(recs []record.Record) (from, to *record.Record) {
	return pick.Find(recs, c.from, func(p record.Point) bool { return p == c.base }), pick.Find(recs, c.to, func(p record.Point) bool { return p == c.own })
}

// joules returns the energy of a run; 0: not counted.
func joules(r *record.Record) float64 {
	if r == nil || r.Energy == nil || r.Energy.Joules == nil {
		return 0
	}
	return *r.Energy.Joules
}

// lessEnergy estimates how many times the work of a joule b does, of a's. A window takes seconds, in
// which others do not run. So the interval spans those of both medians, widened by the moment. It is
// unknown with too few windows, as steady techniques have.
func lessEnergy(a, b *record.Record) estimate.Estimate {
	e := estimate.Estimate{At: joules(a) / joules(b), Lo: 0, Hi: estimate.Inf}
	x, _ := record.Summarize(a.Energy.Windows, 0)
	y, _ := record.Summarize(b.Energy.Windows, 0)
	if x.Lo != nil && y.Lo != nil {
		e.Lo, e.Hi = min(e.At, *x.Lo / *y.Hi)/(1+estimate.Moment), max(e.At, *x.Hi / *y.Lo)*(1+estimate.Moment)
	}
	return e
}

// leastEnergy returns the label that takes the least energy at a point; "": none was counted.
func leastEnergy(recs []record.Record, labels []string, p record.Point) (best string) {
	least := math.Inf(1)
	for _, label := range labels {
		if j := joules(pick.Find(recs, label, func(q record.Point) bool { return q == p })); j > 0 && j < least {
			best, least = label, j
		}
	}
	return best
}

func reportEnergy(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	t := energyTable(recs)
	if len(t.Rows) == 0 {
		return nil, errors.New("experiments: no technique of the comparison of energies succeeded")
	}
	rep.Tables = append(rep.Tables, t)
	if why := uncounted(recs); why != "" {
		rep.Findings = append(rep.Findings, "No energy was counted: "+why+".")
	}
	all := contrasts(recs, on)
	unknown, counted := false, []int(nil) // of ratios without an interval; windows of each side
	for _, c := range all {
		a, b := c.records(recs)
		perJoule, speed := lessEnergy(a, b), estimate.TimesAsFast(a, b)
		counted = append(counted, len(a.Energy.Windows), len(b.Energy.Windows))
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: %s the work per joule, %s as fast, at %.2f× the power. %s a %s, against %s.",
			show.Upper(c.what), perJoule.Times(), speed.Times(), speed.At/perJoule.At, quantity.SI(joules(b)/c.share(b.Point), "J"), c.per, quantity.SI(joules(a)/c.share(a.Point), "J")))
		rep.Yardstick(fmt.Sprintf("%s: %s the work per joule, %s as fast", c.what, perJoule.Times(), speed.Times()))
		unknown = unknown || perJoule.Hi == estimate.Inf
	}
	if unknown {
		rep.Findings = append(rep.Findings, fmt.Sprintf("Work per joule has no interval where a technique has too few windows for one of their median. These techniques have %d to %d windows; those whose first ones are close to each other get no more.",
			slices.Min(counted), slices.Max(counted)))
	}
	if len(all) > 0 {
		rep.Add("energy", energyBars(recs, all, on), nil)
	} else {
		rep.Yardstick("no energy was counted on both sides of a comparison")
	}
	if worst := largestOf(recs, windowRange); worst > 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("Windows of one technique differ by up to %.1f %% in energy, and the medians of their first and second half by up to %.1f %%.",
			100*worst, 100*largestOf(recs, halves)))
	}
	return rep, nil
}

// share returns how many of c.per, cell steps or sequences, a run at p has.
func (c contrast) share(p record.Point) float64 {
	if c.per == "sequence" {
		return float64(p.Batch)
	}
	return float64(p.Layers) * float64(p.Steps)
}

// energyTable has a row for each record that succeeded.
func energyTable(recs []record.Record) *table.Table {
	t := &table.Table{Title: "Energy of a run, counted over windows of three seconds", Columns: []table.Column{
		{Name: "Problem", Key: "problem"}, {Name: "Technique", Key: "technique"}, show.Column("Time", "time_s"), show.Column("Power, W", "power_w"), show.Column("Run", "run_j"),
		show.Column("Beyond rest", "net_j"), show.Column("Cell step", "cell_step_j"), show.Column("Sequence", "sequence_j"), show.Column("Windows differ, %", "windows_pct"), show.Column("Halves differ, %", "halves_pct"),
	}}
	for _, p := range pick.Points(recs) {
		for _, label := range pick.Labels(recs) {
			r := pick.Find(recs, label, func(q record.Point) bool { return q == p })
			if r == nil {
				continue
			}
			row := []table.Cell{table.Text(p.String()), table.Text(label), table.Time(r)}
			j := joules(r)
			if j == 0 {
				t.Rows = append(t.Rows, append(row, show.Missing(), show.Missing(), show.Missing(), show.Missing(), show.Missing(), show.Missing(), show.Missing()))
				continue
			}
			in := func(v float64) table.Cell { return table.Number(v, quantity.SI(v, "J")) }
			net := show.Missing()
			if n := r.Energy.Net; n != nil {
				net = in(*n)
			}
			t.Rows = append(t.Rows, append(row, show.Number(*r.Energy.Watts, "%.1f"), in(j), net,
				in(j/float64(p.Layers)/float64(p.Steps)), in(j/float64(p.Batch)), show.Number(100*windowRange(r), "%.1f"), show.Number(100*halves(r), "%.1f")))
		}
	}
	return t
}

// windowRange returns the largest difference between windows of r, over the median.
func windowRange(r *record.Record) float64 {
	if joules(r) == 0 || len(r.Energy.Windows) == 0 {
		return 0
	}
	return (slices.Max(r.Energy.Windows) - slices.Min(r.Energy.Windows)) / joules(r)
}

// halves returns the difference between the medians of the first and the second half of r's windows,
// over the median of all. It says how well the energy repeats.
func halves(r *record.Record) float64 {
	if joules(r) == 0 || len(r.Energy.Windows) < 2 {
		return 0
	}
	all := r.Energy.Windows
	n := len(all) / 2
	return math.Abs(estimate.Middle(slices.Clone(all[:n]))-estimate.Middle(slices.Clone(all[len(all)-n:]))) / joules(r)
}

// largestOf returns the largest value that of takes over recs.
func largestOf(recs []record.Record, of func(*record.Record) float64) (worst float64) {
	for i := range recs {
		worst = max(worst, of(&recs[i]))
	}
	return worst
}

// uncounted returns why records have no energy; "": they have, or nobody asked.
func uncounted(recs []record.Record) string {
	for _, r := range recs {
		if r.Energy != nil && r.Energy.Reason != nil {
			return *r.Energy.Reason
		}
	}
	return ""
}

// energyBars draws work per joule and speed of each contrast.
func energyBars(recs []record.Record, all []contrast, on study.Target) plots.Figure {
	b := &plots.Bars{Title: "Work per joule and speed of one technique over another", Subtitle: on.Name, Notes: []string{"Energy is counted by the device; above 1 is better."},
		X: plots.Axis{Title: "Ratio", Format: show.Times}, Guides: []plots.Guide{{X0: 1, X1: 1}}, Value: quantity.Factor}
	for _, c := range all {
		x, y := c.records(recs)
		b.Groups = append(b.Groups, plots.Group{Label: c.what, Bars: []plots.Bar{
			{Series: "work per joule", Value: joules(x) / joules(y)}, {Series: "speed", Value: x.Seconds() / y.Seconds()},
		}})
	}
	return b
}
