package yardstick

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/grid"
)

// The rivals that takehome compares: rivals/takehome.toml and rivals/pytorch.toml.
const (
	insideName = "rnnbench-torch"
	torchName  = "pytorch"
)

// arrives is the part of the table's factor that must arrive inside PyTorch, in the mean.
const arrives = 0.85

// goal says whether at least arrives does.
func goal(a estimate.Answer) string {
	words := map[estimate.Answer]string{estimate.Yes: "is met", estimate.No: "is missed", estimate.Open: "is within the interval"}
	return fmt.Sprintf("the goal of %.2f %s", arrives, words[a])
}

// TakeHome is the experiment takehome.
var TakeHome = study.Experiment{
	ID: "takehome", Title: "The winner inside PyTorch: how much of the factor arrives there", Source: "rnnbench",
	Rivals: study.OnAny, Needs: []string{insideName, torchName},
	Parts: func(s study.Size, on study.Target) []study.Part {
		cells, hidden, batches, steps := []string{"lstm", "gru"}, []int{256, 512, 1024}, []int{1, 16, 64}, 100
		if s == study.Quick {
			cells, hidden, batches, steps = cells[:1], []int{64, 256}, []int{1, 16}, 20
		}
		specs := []grid.Spec{study.Spec(autoName, autoName, nil)}
		for _, r := range on.Rivals {
			specs = append(specs, r.Specs()...)
		}
		part := study.Part{Specs: specs}
		precisions := []string{"fp32"}
		if on.GPU {
			precisions = append(precisions, "bf16")
		}
		for _, pass := range []string{"forward", "train"} {
			for _, precision := range precisions {
				for _, cell := range cells {
					part.Points = append(part.Points, study.Product(record.Point{Cell: cell, Pass: pass, Steps: steps, Layers: 1, Precision: precision}, hidden, batches)...)
				}
			}
		}
		return []study.Part{part}
	},
	Report: reportTakeHome,
}

// formsOf returns the labels of the rival of that name; nil: the target has none.
func formsOf(on study.Target, name string) []string {
	i := slices.IndexFunc(on.Rivals, func(r study.Rival) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return on.Rivals[i].Labels()
}

// reportTakeHome compares auto, measured by itself, with auto inside PyTorch and with PyTorch's own layer.
func reportTakeHome(recs []record.Record, on study.Target) (*study.Report, error) {
	inside, torch := formsOf(on, insideName), formsOf(on, torchName)
	t := &table.Table{Title: "Time of one run: auto by itself, auto inside PyTorch, and PyTorch's own layer", Columns: []table.Column{
		{Name: "Pass", Key: "pass"}, {Name: "Precision", Key: "precision"}, {Name: "Cell", Key: "cell"}, {Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true},
		{Name: "auto", Key: "auto_s", Right: true}, {Name: "inside", Key: "inside_s", Right: true}, {Name: "PyTorch", Key: "pytorch_s", Right: true},
		{Name: "factor", Key: "factor", Right: true}, {Name: "inside", Key: "factor_inside", Right: true}, {Name: "arrives", Key: "arrives", Right: true},
	}}
	all := pick.Points(recs)
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Precision, b.Precision), cmp.Compare(b.Cell, a.Cell), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Batch, b.Batch))
	})
	rep := &study.Report{Tables: []*table.Table{t}}
	shares := map[string][]estimate.Estimate{} // by pass
	for _, p := range all {
		here := func(q record.Point) bool { return q == p }
		own, within, theirs := pick.Find(recs, autoName, here), pick.Fastest(recs, inside, here), pick.Fastest(recs, torch, here)
		if own == nil || within == nil || theirs == nil {
			continue
		}
		share := estimate.TimesAsFast(own, within)
		shares[p.Pass] = append(shares[p.Pass], share)
		time := func(r *record.Record) table.Cell { return table.Time(r) }
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Pass), table.Text(p.Precision), table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), time(own), time(within), time(theirs),
			show.Ratio(estimate.TimesAsFast(theirs, own).At), show.Ratio(estimate.TimesAsFast(theirs, within).At), show.Ratio(share.At)})
	}
	if len(t.Rows) == 0 {
		return nil, errors.New("experiments: no layer has records of auto, of auto inside PyTorch and of PyTorch")
	}
	for _, pass := range []string{"forward", "train"} {
		if len(shares[pass]) == 0 {
			continue
		}
		mean := estimate.Mean(shares[pass])
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s: inside PyTorch a layer is %s as fast as by itself, in the geometric mean of %d layers.", pass, mean.Times(), len(shares[pass])))
		rep.Yardstick(fmt.Sprintf("%s: inside PyTorch %s of the factor over PyTorch arrives; %s", pass, mean.Text("%.2f", ""), goal(estimate.Above(arrives).Holds(mean))))
	}
	some := versus{long: "PyTorch, of auto inside it", short: "PyTorch", labels: torch}
	for _, pass := range []string{"forward", "train"} {
		for _, precision := range []string{"fp32", "bf16"} {
			here := pick.Where(recs, func(p record.Point) bool { return p.Pass == pass && p.Precision == precision })
			if len(here) > 0 {
				rep.Add(fmt.Sprintf("takehome-%s-%s", pass, precision), ratioFigure(here, inside, some, on, pass, precision), nil)
			}
		}
	}
	return rep, nil
}
