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
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/tuner"
)

// A kind is what records are of. Records of different kinds are never compared.
type kind struct {
	name  string
	thing string // one of them
	about string // a sentence; "": none
	holds func(record.Point) bool

	claims bool // the paper is about such
}

// kinds lists them.
func kinds() []kind {
	return []kind{
		{name: "Whole networks", thing: "network", claims: true, holds: func(p record.Point) bool { return whole(p) && p.Norm != "" }},
		{name: "Whole networks without batch normalisation", thing: "network", about: "Only without batch normalisation can cuDNN run a network, module by module, with rnnbench's operations between: it forms input products within its call, where nothing can normalise them over the minibatch. ReLU has no clip there.",
			holds: func(p record.Point) bool { return whole(p) && p.Norm == "" }},
		{name: "Stacks of recurrent layers", thing: "stack", about: "The stacks are the recurrent layers alone, 48 of the 61 layers in Figure 7: an earlier program measured no shortcuts, row convolutions, batch normalisation, convolutions, fully connected layer and loss.",
			holds: func(p record.Point) bool { return !whole(p) }},
	}
}

// reportSpeech compares the parameters with the paper's, and the techniques with one another.
func reportSpeech(recs []record.Record, on study.Target) (*study.Report, error) {
	rep := &study.Report{}
	reportNetworks(rep)
	rep.Exact.Tables = len(rep.Tables) // it is of the paper's sizes
	recs = form.FastestForms(recs)
	some := false
	for _, k := range kinds() {
		some = reportKind(rep, k, pick.Where(recs, k.holds), on) || some
	}
	if !some {
		rep.Findings = append(rep.Findings, "No network was measured.")
		return rep, nil
	}
	rep.Findings = append(rep.Findings, "The paper prints no throughput of single networks. It prints only 250 TFLOP/s for 48 layers on 128 GPUs, about 30 % of their peak.")
	return rep, nil
}

// reportNetworks lists the networks with their parameters, and the word error rates that cannot be measured.
func reportNetworks(rep *study.Report) {
	t := &table.Table{
		Title: "The paper's networks: parameters of whole networks, counted here and printed, and the word error rates on the paper's development set",
		Columns: []table.Column{{Name: "Source", Key: "of"}, show.Column("Recurrent layers", "layers"), show.Column("Units", "hidden"), {Name: "Shortcuts over", Key: "skip"}, show.Column("Steps of a row convolution", "lookahead"),
			show.Column("Parameters", "parameters"), show.Column("Paper", "printed_parameters"), show.Column("Paper, WER %", "paper_wer_percent")},
	}
	counts := map[int][]float64{} // by table
	var words []string
	agrees := true
	var here, there []float64 // millions outside of the recurrent matrices, counted here and printed
	for _, n := range networks() {
		count, printed := n.parameters(), show.Missing()
		counts[n.table] = append(counts[n.table], count)
		if n.millions > 0 {
			printed = table.Number(1e6*n.millions, fmt.Sprintf("%.0f M", n.millions))
			words = append(words, fmt.Sprintf("%.3g", count/1e6))
			agrees = agrees && math.Abs(count/1e6/n.millions-1) < 0.02
			here, there = append(here, (count-n.recurrent())/1e6), append(there, n.millions-n.recurrent()/1e6)
		}
		span := "none"
		if n.skip > 0 {
			span = layersWord(n.skip)
		}
		t.Rows = append(t.Rows, []table.Cell{table.Text(fmt.Sprintf("Table %d", n.table)), table.Int(n.layers), table.Int(n.hidden), table.Text(span), table.Int(n.lookahead()),
			table.Number(count, quantity.SI(count, "")), printed, show.Number(n.wer, "%.2f")})
	}
	rep.Tables = append(rep.Tables, t)
	study.Computed(rep, "networks of 22, 65, 107, 149, 192 and 234 million parameters (Table 3)", strings.Join(words, ", ")+" million parameters of whole networks", agrees, "")
	low, high := slices.Min(counts[2]), slices.Max(counts[2])
	study.Computed(rep, "the number of parameters is kept approximately constant (Table 2)", fmt.Sprintf("%.3g to %.3g million parameters of whole networks", low/1e6, high/1e6), high/low < estimate.Closeness, "")
	rep.Claims = append(rep.Claims, study.Claim{Paper: "word error rates from 27.23 % with 88 layers to 100 % (Tables 1 and 3)", Here: "only speed; diamos-depth has label errors on generated speech", Outcome: study.Irreproducible, Why: "500 hours of private speech"})
	rep.Findings = append(rep.Findings,
		fmt.Sprintf("Besides the two matrices of each recurrent layer, the networks of Table 3 have %.2g to %.2g million parameters here. The paper's numbers leave %.2g to %.2g million, give or take half a million. So its fully connected layer is taken for the one that gives characters: another of 1152 units would have 1.3 million.", slices.Min(here), slices.Max(here), slices.Min(there), slices.Max(there)),
		"The word error rates of Tables 1 to 3 and the costs of Figure 8 cannot be reproduced. The authors trained for 20 epochs on 500 hours of private English speech. They tested on an internal set of 2048 utterances with their own language model. What such networks learn is measured on generated speech: see diamos-depth.")
}

// recurrent is the number of weights of the recurrent layers, if all read as many values as they have units.
func (n network) recurrent() float64 {
	return 2 * float64(n.layers) * float64(n.hidden) * float64(n.hidden)
}

// parameters counts those of the whole network.
func (n network) parameters() float64 {
	p, err := tuner.Problem(n.point(study.Full, "train", least))
	if err != nil {
		return math.NaN()
	}
	return float64(rnn.Parameters(p))
}

// reportKind sets techniques side by side on records of one kind. It reports whether there were any.
func reportKind(rep *study.Report, k kind, recs []record.Record, on study.Target) bool {
	labels := pick.Labels(recs)
	base := baseOf(labels)
	t := speedTable(k.name, base)
	for _, p := range pick.Points(recs) {
		n, ok := rowOf(p)
		if !ok {
			continue
		}
		here := func(q record.Point) bool { return q == p }
		first := pick.Find(recs, base, here)
		for _, label := range labels {
			if r := pick.Find(recs, label, here); r != nil {
				t.Rows = append(t.Rows, n.row(r, estimate.TimesAsFast(first, r).At))
			}
		}
	}
	if len(t.Rows) == 0 {
		return false
	}
	rep.Tables = append(rep.Tables, t)
	if k.about != "" {
		rep.Findings = append(rep.Findings, k.about)
	}
	drawDepths(rep, k, recs, on)
	drawBatches(rep, recs, on)
	for _, pass := range rnn.Passes() {
		compareAll(rep, k, pick.Where(recs, func(p record.Point) bool { return p.Pass == pass }), pass, base)
	}
	if k.claims {
		narrow(rep, recs, base, on)
	}
	for _, s := range []string{sameSteps(k, recs), stepsChecked(recs)} {
		if s != "" {
			rep.Findings = append(rep.Findings, s)
		}
	}
	return true
}

// baseOf is the technique that others are compared with: the plainest that was measured.
func baseOf(labels []string) string {
	for _, label := range []string{"naive", "cudnnstyle", "cudnnstyle, graph"} {
		if slices.Contains(labels, label) {
			return label
		}
	}
	return ""
}

// speedTable is the table of times, without rows.
func speedTable(title, base string) *table.Table {
	if base == "" {
		base = "products"
	}
	return &table.Table{
		Title: title + ": time of a pass, throughput and memory as allocated",
		Columns: []table.Column{
			{Name: "Source", Key: "of"}, {Name: "Pass", Key: "pass"}, show.Column("L", "layers"), show.Column("H", "hidden"), {Name: "Shortcuts", Key: "skip"}, show.Column("B", "batch"), show.Column("T", "steps"), {Name: "Technique", Key: "technique"},
			show.Column("time", "time_s"), show.Column("FLOP/s", "flops_per_s"), show.Column("utterances/s", "utterances_per_s"), show.Column("memory", "memory_bytes"), show.Column("× "+base, "speedup"),
		},
	}
}

// row is a line of speedTable; up is the speed-up over the base.
func (n network) row(r *record.Record, up float64) []table.Cell {
	p := r.Point
	span, rate, memory := "none", float64(p.Batch)/r.Seconds(), float64(r.Work.Memory)
	if p.Skip > 0 {
		span = fmt.Sprint(p.Skip)
	}
	return []table.Cell{table.Text(fmt.Sprintf("Table %d", n.table)), table.Text(p.Pass), table.Int(p.Layers), table.Int(p.Hidden), table.Text(span), table.Int(p.Batch), table.Int(p.Steps), table.Text(r.Impl.Label),
		table.Time(r), table.Throughput(r), table.Number(rate, quantity.SI(rate, "")), table.Number(memory, quantity.Bytes(memory)), show.Ratio(up)}
}

// compareAll compares the techniques over the networks that all of them ran, so that each mean is of the same
// ones. recs are of one pass.
func compareAll(rep *study.Report, k kind, recs []record.Record, pass, base string) {
	labels, lists, common := pick.Labels(recs), map[string][]estimate.Estimate{}, 0
	if len(labels) < 2 {
		return
	}
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		first := pick.Find(recs, base, here)
		if first == nil || slices.ContainsFunc(labels, func(label string) bool { return pick.Find(recs, label, here) == nil }) {
			continue
		}
		common++
		for _, label := range labels {
			lists[label] = append(lists[label], estimate.TimesAsFast(first, pick.Find(recs, label, here)))
		}
	}
	if common == 0 {
		rep.Findings = append(rep.Findings, fmt.Sprintf("No %s has results of all techniques in the pass %s, so no mean is given.", k.thing, pass))
		return
	}
	does, did := "runs the %ss forward", "ran forward"
	if pass == rnn.Train.String() {
		does, did = "trains the %ss", "trained"
	}
	for _, label := range labels {
		if label != base {
			rep.Findings = append(rep.Findings, fmt.Sprintf("%s "+does+" %s as fast as %s (geometric mean over the %s that all techniques %s).", label, k.thing, estimate.Mean(lists[label]).Times(), base, quantity.Plural(common, k.thing), did))
		}
	}
}

// narrow claims what the paper says of very deep networks with narrow layers, of the deepest of Table 2.
func narrow(rep *study.Report, recs []record.Record, base string, on study.Target) {
	const (
		paper = "persistent kernels are much more efficient than matrix products for very deep networks with narrow layers (section 5.4)"
		much  = 1.5 // times as fast, at least
	)
	deepest := func(p record.Point) bool {
		n, ok := rowOf(p)
		return ok && n.table == 2 && n.layers == 88 && p.Pass == "train"
	}
	var ours *record.Record
	for _, label := range pick.Labels(recs) {
		if strings.HasPrefix(label, "persistent") {
			ours = pick.Find(recs, label, deepest)
		}
	}
	up := estimate.TimesAsFast(pick.Find(recs, base, deepest), ours)
	if !up.Known() {
		study.NotMeasured(rep, paper, "88 layers by both")
		return
	}
	study.ClaimOf(rep, on, paper, fmt.Sprintf("%s as fast with 88 layers of %d units at minibatch %d", up.Times(), ours.Point.Hidden, ours.Point.Batch), up, estimate.AtLeast(much), "")
}
