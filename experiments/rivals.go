package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// A Rival is a program from elsewhere that runs on a target.
type Rival struct {
	Name  string
	Knobs []knob.Knob // names and values
}

// rivalsOf reads which rivals a run had from the facts of its device: "rival pytorch" is
// "2.11.0 graph=0,1".
func rivalsOf(facts map[string]string) []Rival {
	var out []Rival
	for fact, text := range facts {
		name, ok := strings.CutPrefix(fact, record.RivalFact)
		if !ok {
			continue
		}
		r := Rival{Name: name}
		for _, word := range strings.Fields(text) {
			k, values, ok := strings.Cut(word, "=")
			if !ok {
				continue
			}
			one := knob.Knob{Name: k}
			for v := range strings.SplitSeq(values, ",") {
				if n, err := strconv.Atoi(v); err == nil {
					one.Values = append(one.Values, n)
				}
			}
			if len(one.Values) > 0 {
				r.Knobs = append(r.Knobs, one)
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rival) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// specs returns a rival with its defaults, and with each other value of each knob.
func (r Rival) specs() []grid.Spec {
	var out []grid.Spec
	for _, k := range knob.OneAtATime(r.Knobs) {
		label := r.Name
		if len(k) > 0 {
			label += " " + k.String()
		}
		out = append(out, spec(label, r.Name, k))
	}
	return out
}

// labels returns the labels of its specs.
func (r Rival) labels() (list []string) {
	for _, s := range r.specs() {
		list = append(list, s.Label)
	}
	return list
}

// Declines says why e cannot run on a target, and what to do about it; "": it can.
func (e Experiment) Declines(on Target) (why, hint string) {
	switch {
	case e.Vendor && !on.GPU:
		return fmt.Sprintf("%s compares with the vendor library, which %s does not have", e.ID, on.Name), "use --device cuda:0 to measure on a GPU"
	case e.Host && on.GPU:
		return fmt.Sprintf("%s measures the threads of a processor, which %s is not", e.ID, on.Name), "use --device cpu"
	case e.Rivals == onGPU && !on.GPU:
		return fmt.Sprintf("%s compares with rivals on a GPU, which %s is not", e.ID, on.Name), "use --device cuda:0, or reproduce rivals-cpu"
	case e.Rivals == onCPU && on.GPU:
		return fmt.Sprintf("%s compares with rivals on a processor, which %s is not", e.ID, on.Name), "use --device cpu, or reproduce rivals-gpu"
	case e.Rivals != "" && len(on.Rivals) == 0:
		return fmt.Sprintf("%s compares with rivals, but none that runs on %s is named", e.ID, on.Name), "name one with --rival rivals/pytorch.toml; docs/rivals.md tells more"
	}
	return "", ""
}

// Kinds of devices that rivals are compared on.
const (
	onCPU = "cpu"
	onGPU = "gpu"
)

var rivalsCPU = Experiment{
	ID: "rivals-cpu", Title: "One layer on a processor against rivals over cell, size and minibatch", Source: "rnnbench",
	Rivals: onCPU,
	Parts: func(s Size, on Target) []Part {
		specs := usual(on)[1:]
		if on.GPU { // where it is declined
			specs = specs[:2]
		}
		return againstRivals(s, on, specs, []int{64, 256, 512, 1024}, "bf16")
	},
	Report: reportRivals,
}

var rivalsGPU = Experiment{
	ID: "rivals-gpu", Title: "One layer on a GPU against rivals over cell, size and minibatch", Source: "rnnbench",
	Rivals: onGPU,
	Parts: func(s Size, on Target) []Part {
		return againstRivals(s, on, []grid.Spec{ours()[0], ours()[3]}, []int{256, 512, 1024, 1536}, "bf16")
	},
	Report: reportRivals,
}

// againstRivals returns layers in fp32 and, forward or on a GPU, in the 16-bit precision half, by
// rnnbench's own techniques and by every rival.
func againstRivals(s Size, on Target, own []grid.Spec, hidden []int, half string) []Part {
	cells, batches, steps := []string{"rnn-tanh", "gru", "lstm"}, []int{1, 4, 16, 64}, 100
	if s == Quick {
		cells, batches, steps, hidden = cells[2:], []int{1, 16}, 20, hidden[:2]
	}
	specs := slices.Clone(own)
	for _, r := range on.Rivals {
		specs = append(specs, r.specs()...)
	}
	part := Part{Specs: specs}
	for _, pass := range []string{"forward", "train"} {
		for _, precision := range []string{"fp32", half} {
			if pass == "train" && precision != "fp32" && !on.GPU {
				continue
			}
			for _, cell := range cells {
				p := record.Point{Cell: cell, Pass: pass, Steps: steps, Layers: 1, Precision: precision}
				part.Points = append(part.Points, product(p, hidden, batches)...)
			}
		}
	}
	return []Part{part}
}

// reportRivals compares the fastest of rnnbench's techniques with the fastest form of each rival,
// point by point.
func reportRivals(recs []record.Record, on Target) (*Report, error) {
	rep := &Report{}
	var theirs []string
	for _, r := range on.Rivals {
		theirs = append(theirs, r.labels()...)
	}
	names := slices.DeleteFunc(labels(recs), func(l string) bool { return slices.Contains(theirs, l) })
	all := points(recs)
	slices.SortStableFunc(all, func(a, b record.Point) int {
		return cmp.Or(cmp.Compare(a.Pass, b.Pass), cmp.Compare(a.Precision, b.Precision), cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Hidden, b.Hidden), cmp.Compare(a.Batch, b.Batch))
	})
	for _, r := range on.Rivals {
		if t, ratios := rivalTable(recs, all, names, r); len(t.Rows) > 0 {
			rep.Tables = append(rep.Tables, t)
			rep.rivalry(recs, on, names, r, ratios)
		}
	}
	if len(rep.Tables) == 0 {
		return nil, fmt.Errorf("experiments: no point has records of both rnnbench's techniques and a rival")
	}
	return rep, nil
}

// A rivalry holds rnnbench's speed-ups at the points of a pass and precision.
type rivalry struct {
	pass, precision string
	ratios          duel
}

// rivalTable returns the table of one rival, and its rivalries.
func rivalTable(recs []record.Record, all []record.Point, names []string, r Rival) (*table.Table, []*rivalry) {
	t := &table.Table{Title: fmt.Sprintf("Time of one run: the fastest of rnnbench's techniques and of %s", r.Name), Columns: []table.Column{
		{Name: "Pass", Key: "pass"}, {Name: "Precision", Key: "precision"}, {Name: "Cell", Key: "cell"},
		{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
		{Name: "rnnbench", Key: "rnnbench_s", Right: true}, {Name: "technique", Key: "by"},
		{Name: r.Name, Key: "rival_s", Right: true}, {Name: "form", Key: "rival_by"}, {Name: "×", Key: "ratio", Right: true},
	}}
	var list []*rivalry
	for _, p := range all {
		here := func(q record.Point) bool { return q == p }
		own, yard := fastest(recs, names, here), fastest(recs, r.labels(), here)
		if own == nil || yard == nil {
			continue
		}
		up := timesAsFast(yard, own)
		i := slices.IndexFunc(list, func(g *rivalry) bool { return g.pass == p.Pass && g.precision == p.Precision })
		if i < 0 {
			i, list = len(list), append(list, &rivalry{pass: p.Pass, precision: p.Precision})
		}
		list[i].ratios = append(list[i].ratios, up)
		t.Rows = append(t.Rows, []table.Cell{table.Text(p.Pass), table.Text(p.Precision), table.Text(p.Cell), table.Int(p.Hidden), table.Int(p.Batch), table.Int(p.Steps),
			table.Number(own.Seconds(), quantity.SI(own.Seconds(), "s")), table.Text(own.Impl.Label),
			table.Number(yard.Seconds(), quantity.SI(yard.Seconds(), "s")), table.Text(yard.Impl.Label), number(up.at, "%.2f")})
	}
	return t, list
}

// rivalry adds findings and figures about one rival.
func (rep *Report) rivalry(recs []record.Record, on Target, names []string, r Rival, list []*rivalry) {
	called := r.Name
	if i := slices.IndexFunc(recs, func(x record.Record) bool { return x.Impl.Name == r.Name && x.Rival != nil }); i >= 0 {
		called = strings.TrimSpace(r.Name + " " + recs[i].Rival.Version)
	}
	for _, g := range list {
		rep.Findings = append(rep.Findings, fmt.Sprintf("%s, %s: rnnbench's fastest technique is %s.", g.pass, g.precision, g.ratios.full(called, "point")))
		rep.yardstick(fmt.Sprintf("%s, %s: %s", g.pass, g.precision, g.ratios.brief(called)))
		some := where(recs, func(p record.Point) bool { return p.Pass == g.pass && p.Precision == g.precision })
		v := versus{long: called, short: r.Name, labels: r.labels()}
		rep.add(fmt.Sprintf("%s-%s-%s", r.Name, g.pass, g.precision), ratioFigure(some, names, v, on, g.pass, g.precision), nil)
	}
}
