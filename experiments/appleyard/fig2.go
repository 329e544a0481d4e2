package appleyard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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

// stage6 is the label of the ladder's last stage in Figure 2.
const stage6 = "cudnnstyle"

// Fig2 is the experiment appleyard-fig2.
var Fig2 = study.Experiment{
	ID: "appleyard-fig2", Title: "Forward and backward passes of single-gate RNN, GRU and LSTM, four layers",
	Source: "Appleyard et al. 2016, Figure 2",
	Unlike: "cuDNN of today in place of cuDNN 5; " + medianOfRuns,
	Parts: func(s study.Size, on study.Target) []study.Part {
		hidden, batch, steps := appleyardGrid(s)
		rungs := form.Ladder(4)
		best := []grid.Spec{study.Spec(stage6, "cudnnstyle", rungs[len(rungs)-1].Knobs)}
		if on.GPU {
			best = append([]grid.Spec{study.Graphed(best[0].Label, best[0])}, form.GridForms(s)...)
		}
		var parts []study.Part
		for _, cell := range []string{"rnn-tanh", "gru", "lstm"} {
			for _, pass := range []string{"forward", "train"} {
				p := form.LSTM4()
				p.Cell, p.Pass, p.Steps = cell, pass, steps
				parts = append(parts, form.OnChip(study.Product(p, hidden, batch), best)...)
			}
		}
		return parts
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		all := passesOf(recs)
		rep.Tables = append(rep.Tables, passTable(all))
		passFigures(rep, all, on)
		backwardFindings(rep, all)
		rep.Findings = append(rep.Findings, "The paper measures cuDNN 5 here; stage 6 has its structure. "+
			on.Say("cuDNN itself runs only on NVIDIA GPUs.", form.VendorFinding(recs, stage6)))
		return rep, nil
	},
}

// backwardFindings compares the rates of the backward and the forward pass. The paper plots both and
// says nothing of their ratio, so this is a yardstick.
func backwardFindings(rep *study.Report, all []passPair) {
	var ratios, theirs []float64
	below := map[int]int{} // points where backward is slower, by minibatch
	slower := 0
	for _, p := range all {
		ratios, theirs = p.own.appendRatio(ratios), p.vendor.appendRatio(theirs)
		if r := p.own.ratio(); r > 0 && r < 1 {
			below[p.Batch]++
			slower++
		}
	}
	if len(ratios) == 0 {
		return
	}
	mean, also := estimate.Geomean(ratios), ""
	if len(theirs) > 0 {
		also = fmt.Sprintf(", %.2f× in cuDNN", estimate.Geomean(theirs))
	}
	s := fmt.Sprintf("The backward pass, weight gradients included, reaches %.2f× the FLOP/s of the forward pass%s (geometric mean).", mean, also)
	s += " About half of its FLOPs are weight gradients, one product over all steps and sequences. The forward pass has products of one or two steps."
	if slower > 0 {
		var where []string
		for _, b := range slices.Sorted(maps.Keys(below)) {
			where = append(where, fmt.Sprintf("%d at minibatch %d", below[b], b))
		}
		s += fmt.Sprintf(" At %d of %d points it is the slower one: %s.", slower, len(ratios), strings.Join(where, ", "))
	}
	s += " Records time both parts of the backward pass together, so they do not tell which one is faster."
	rep.Findings = append(rep.Findings, s+" The paper plots both passes and says nothing of their ratio.")
	rep.Yardstick(fmt.Sprintf("the backward pass has %.2f× the FLOP/s of the forward pass%s (geometric mean)", mean, also))
}

// passes are the records of the forward pass and of training of one technique at one point; nil: missing.
type passes struct{ forward, train *record.Record }

// backward returns the FLOP/s of the backward pass, weight gradients included: the FLOPs of training
// minus those of the forward pass, over the difference of their times. It is 0 if unknown.
func (p passes) backward() float64 {
	if p.forward == nil || p.train == nil || p.train.Seconds() <= p.forward.Seconds() {
		return 0
	}
	return float64(p.train.Work.Flops-p.forward.Work.Flops) / (p.train.Seconds() - p.forward.Seconds())
}

// ratio is the rate of the backward pass over that of the forward pass; 0: unknown.
func (p passes) ratio() float64 {
	if back := p.backward(); back > 0 {
		return back / p.forward.FLOPS()
	}
	return 0
}

func (p passes) appendRatio(list []float64) []float64 {
	if r := p.ratio(); r > 0 {
		return append(list, r)
	}
	return list
}

// A passPair is a point of Figure 2 with the passes of stage 6 and of the vendor's fastest forms.
type passPair struct {
	record.Point
	own, vendor passes
}

// passesOf pairs the records of forward passes and trainings, at points where stage 6 has both.
func passesOf(recs []record.Record) (all []passPair) {
	for _, p := range pick.Points(recs) {
		if p.Pass != "forward" {
			continue
		}
		q := p
		q.Pass = "train"
		at := func(p record.Point) func(record.Point) bool { return func(x record.Point) bool { return x == p } }
		pair := passPair{p,
			passes{pick.Find(recs, stage6, at(p)), pick.Find(recs, stage6, at(q))},
			passes{pick.Fastest(recs, form.VendorLabels(), at(p)), pick.Fastest(recs, form.VendorLabels(), at(q))}}
		if pair.own.forward != nil && pair.own.train != nil {
			all = append(all, pair)
		}
	}
	return all
}

func passTable(all []passPair) *table.Table {
	t := &table.Table{
		Title: "Throughput: forward, and backward with weight gradients, which is training minus forward",
		Columns: []table.Column{
			{Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
			{Name: "forward", Key: "forward_flops_per_s", Right: true}, {Name: "backward", Key: "backward_flops_per_s", Right: true},
			{Name: "backward / forward", Key: "ratio", Right: true},
		},
	}
	vendor := slices.ContainsFunc(all, func(p passPair) bool { return p.vendor.forward != nil })
	if vendor {
		t.Columns = append(t.Columns, show.Column("cuDNN forward", "cudnn_forward_flops_per_s"), show.Column("cuDNN backward", "cudnn_backward_flops_per_s"))
	}
	flops := func(v float64) table.Cell {
		if v == 0 {
			return show.Missing()
		}
		return table.Number(v, quantity.SI(v, "FLOP/s"))
	}
	for _, p := range all {
		f, back := p.own.forward, p.own.backward()
		row := []table.Cell{table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Throughput(f), flops(back), show.Missing()}
		if back > 0 {
			row[5] = show.Ratio(back / f.FLOPS())
		}
		if vendor {
			forward, _ := show.Rate(p.vendor.forward)
			row = append(row, forward, flops(p.vendor.backward()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// passFigures draws the paper's panels, forward and backward, with the vendor's curves.
func passFigures(rep *study.Report, all []passPair, on study.Target) {
	lines := map[string]func(passes, float64) plots.Point{
		"forward": func(p passes, x float64) plots.Point { return show.RatePoint(x, p.forward) },
		"backward": func(p passes, x float64) plots.Point {
			return plots.Point{X: x, Y: p.backward(), Missing: p.backward() == 0}
		},
	}
	for _, pass := range []string{"forward", "backward"} {
		ch := passChart(all, lines[pass])
		ch.Title = "Appleyard Figure 2: " + pass + ", four layers, stage 6"
		if on.GPU {
			ch.Title += " and cuDNN"
		}
		ch.Notes = []string{"Marks are medians; bars are their confidence intervals."}
		if pass == "backward" {
			ch.Notes = []string{"Backward includes weight gradients. Its FLOPs and its time are those of training minus those of the forward pass."}
		}
		if on.GPU {
			ch.Notes = append(ch.Notes, "The peak is for single-precision multiply-adds; tensor cores exceed it.")
		}
		var err error
		if len(all) == 0 {
			err = errors.New("no point has records of both passes")
		} else {
			ch.Subtitle = fmt.Sprintf("%s · T=%d · L=%d · %s", on.Name, all[0].Steps, all[0].Layers, all[0].Precision)
		}
		rep.Add("appleyard-fig2-"+pass, ch, err)
	}
}

// passChart has a panel for each minibatch, the smallest first, and in it two lines for each cell: of stage 6 and of
// the vendor's fastest form.
func passChart(all []passPair, of func(passes, float64) plots.Point) *plots.Chart {
	ch := &plots.Chart{
		X: plots.Axis{Title: "Hidden size", Scale: plots.Log, Format: quantity.Size},
		Y: plots.Axis{Title: "Throughput (FLOP/s)", Zero: true},
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b passPair) int { return cmp.Compare(a.Batch, b.Batch) })
	peak := 0.0
	for _, p := range all {
		peak = max(peak, p.own.forward.PeakFLOPS())
	}
	for _, p := range all {
		title := fmt.Sprintf("minibatch %d", p.Batch)
		i := slices.IndexFunc(ch.Panels, func(q plots.Panel) bool { return q.Title == title })
		if i < 0 {
			i = len(ch.Panels)
			panel := plots.Panel{Title: title}
			if peak > 0 {
				panel.Guides = []plots.Guide{{Label: "peak " + quantity.SI(peak, "FLOP/s"), Y0: peak, Y1: peak}}
			}
			ch.Panels = append(ch.Panels, panel)
		}
		x := float64(p.Hidden)
		ch.X.Places = append(ch.X.Places, x)
		for _, l := range []struct {
			label string
			of    passes
		}{{p.Cell, p.own}, {p.Cell + ", cuDNN", p.vendor}} {
			if l.of.forward == nil {
				continue
			}
			panel := &ch.Panels[i]
			k := slices.IndexFunc(panel.Series, func(s plots.Series) bool { return s.Label == l.label })
			if k < 0 {
				k = len(panel.Series)
				panel.Series = append(panel.Series, plots.Series{Label: l.label, Like: p.Cell})
			}
			panel.Series[k].Points = append(panel.Series[k].Points, of(l.of, x))
		}
	}
	slices.Sort(ch.X.Places)
	ch.X.Places = slices.Compact(ch.X.Places)
	for _, p := range ch.Panels {
		for _, s := range p.Series {
			slices.SortFunc(s.Points, func(a, b plots.Point) int { return cmp.Compare(a.X, b.X) })
		}
	}
	return ch
}
