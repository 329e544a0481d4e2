package yardstick

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/form"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/show"
	"rnnbench/experiments/study"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// cuDNN multiplies and adds in single precision where fp32 is asked for. Some of rnnbench's kernels split
// fp32 into halves for tensor cores instead, within the same error bound. So fp32 is also measured
// by multiply-adds alone, to compare like with like.

// plainMark ends the label of a form without tensor cores.
const plainMark = ", plain FMA"

// plain is s without tensor cores.
func plain(s grid.Spec) grid.Spec {
	k := knob.Params{"narrow": 2, "split": 2}
	if s.Name == "persistent" {
		k["tensor"] = 2
	}
	maps.Copy(k, s.Knobs)
	return study.Spec(s.Label+plainMark, s.Name, k)
}

// withPlain returns parts with points by our forms and the vendor's, and in fp32 also by our forms
// without tensor cores.
func withPlain(all []record.Point, own, vendor []grid.Spec) []study.Part {
	var single, other []record.Point
	for _, p := range all {
		if p.Precision == "fp32" {
			single = append(single, p)
		} else {
			other = append(other, p)
		}
	}
	both := slices.Clone(own)
	for _, s := range own {
		both = append(both, plain(s))
	}
	parts := []study.Part{{Points: single, Specs: slices.Concat(both, vendor)}, {Points: other, Specs: slices.Concat(own, vendor)}}
	return slices.DeleteFunc(parts, func(p study.Part) bool { return p.Points == nil })
}

// plainTable compares the fastest form by multiply-adds alone with the fastest of all and with the
// vendor's fastest, where all were measured.
func plainTable(rep *study.Report, recs []record.Record, all []record.Point) {
	var with, without []string
	for _, l := range pick.Labels(recs) {
		switch {
		case quantity.Vendor(l):
		case strings.HasSuffix(l, plainMark):
			without = append(without, l)
		default:
			with = append(with, l)
		}
	}
	t := &table.Table{Title: "fp32: time of one step by default, with split halves on tensor cores where they are faster, and by multiply-adds alone", Columns: []table.Column{
		{Name: "Pass", Key: "pass"}, {Name: "Cell", Key: "cell"}, show.Column("H", "hidden"), show.Column("B", "batch"), show.Column("T", "steps"), show.Column("L", "layers"),
		show.Column("default", "default_s"), show.Column("multiply-adds", "plain_s"), {Name: "technique", Key: "plain_by"}, show.Column("cuDNN", "cudnn_s"),
		show.Column("cuDNN / default", "default_ratio"), show.Column("cuDNN / multiply-adds", "plain_ratio"),
	}}
	defaults, plains := map[string]estimate.Duel{}, map[string]estimate.Duel{}
	var passes []string
	for _, p := range all {
		here := func(q record.Point) bool { return q == p }
		a, b, v := pick.Fastest(recs, with, here), pick.Fastest(recs, without, here), pick.Fastest(recs, form.VendorLabels(), here)
		if p.Precision != "fp32" || a == nil || b == nil || v == nil {
			continue
		}
		if !slices.Contains(passes, p.Pass) {
			passes = append(passes, p.Pass)
		}
		x, y := estimate.TimesAsFast(v, a), estimate.TimesAsFast(v, b)
		defaults[p.Pass], plains[p.Pass] = append(defaults[p.Pass], x), append(plains[p.Pass], y)
		step := func(r *record.Record) table.Cell {
			s := r.Seconds() / float64(p.Steps)
			return table.Number(s, quantity.SI(s, "s")).Of(r)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Pass), table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps), table.Int(p.Layers),
			step(a), step(b), table.Text(strings.TrimSuffix(b.Impl.Label, plainMark)), step(v), show.Ratio(x.At), show.Ratio(y.At)})
	}
	if len(t.Rows) == 0 {
		return
	}
	rep.Tables = append(rep.Tables, t)
	for _, pass := range passes {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s, fp32 by multiply-adds alone, as cuDNN computes it: rnnbench's fastest technique is %s. By default, with split halves on tensor cores where they are faster, it is %s at these points.",
			pass, plains[pass].Full(cudnnsFastest, "point"), estimate.Mean(defaults[pass]).Times()))
		rep.Yardstick(fmt.Sprintf("%s, fp32 by multiply-adds alone: %s", pass, plains[pass].Brief(cudnnsFastest)))
	}
}

// cudnnsFastest is the rival where every form of cuDNN was measured.
const cudnnsFastest = "cuDNN's fastest algorithm"

// notMeasured says which forms of the vendor's library are not among labels.
func notMeasured(labels []string) (out []string) {
	lacks := func(forms []grid.Spec) (left []string) {
		for _, s := range forms {
			if !slices.Contains(labels, s.Label) {
				left = append(left, s.Label)
			}
		}
		return left
	}
	if left := lacks(form.Vendors()); left != nil {
		out = append(out, fmt.Sprintf("These cuDNN algorithms were not measured and may be faster where they apply: %s.", strings.Join(left, ", ")))
	}
	if n := len(form.Vendors()); len(lacks(form.Eager())) == n {
		out = append(out, "cuDNN was measured as graphs alone, not launched by the host.")
	}
	return out
}
