package diamos

import (
	"errors"
	"fmt"
	"math"
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

// reportDepth compares what networks have learnt with the paper's trends.
func reportDepth(recs []record.Record, on study.Target) (*study.Report, error) {
	d := depthReport{all: learnedOf(recs), on: on, rep: &study.Report{}}
	if len(d.all) == 0 {
		return nil, errors.New("experiments: no network has been trained")
	}
	if d.trained(study.Quick) > d.trained(study.Full) {
		d.size = study.Quick
	}
	d.base = baseline(d.size, on)
	d.spans()
	d.depths("Table 2: depth at constant weights", "table2", depthNetwork.thin, d.thinning)
	d.depths("Table 3: depth at constant units", "table3", depthNetwork.deep, d.growing)
	d.minibatches()
	d.rep.Findings = append(d.rep.Findings, fmt.Sprintf("All networks see as many utterances, %s. The numbers are of the best record of each seed, on %d held-out utterances of other speakers: their mean, least and greatest.", d.ratesWords(), heldOut))
	return d.rep, nil
}

// A depthReport is a report in the making.
type depthReport struct {
	all  map[depthNetwork]*learned
	size study.Size // of most networks
	base depthNetwork
	on   study.Target
	rep  *study.Report
}

// trained counts the networks of a size.
func (d *depthReport) trained(size study.Size) (count int) {
	for _, n := range depthNetworks(size, d.on) {
		if d.all[n] != nil {
			count++
		}
	}
	return count
}

// ratesWords says with which learning rates the networks were trained.
func (d *depthReport) ratesWords() string {
	if list := rates(d.size); len(list) > 1 {
		return fmt.Sprintf("with the best of %d learning rates for each: the one with the fewest failures, then the least mean cost", len(list))
	}
	return "with one learning rate"
}

// over is the mean, least and greatest of values; unknown: there is none.
func over(values []float64) estimate.Estimate {
	if len(values) == 0 {
		return estimate.Estimate{At: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return estimate.Estimate{At: sum / float64(len(values)), Lo: slices.Min(values), Hi: slices.Max(values)}
}

// errorsOf and costOf are what a network has learnt, over its seeds.
func (d *depthReport) errorsOf(n depthNetwork) estimate.Estimate { return over(d.of(n).errors) }
func (d *depthReport) costOf(n depthNetwork) estimate.Estimate   { return over(d.of(n).costs) }

func (d *depthReport) of(n depthNetwork) learned {
	if l := d.all[n]; l != nil {
		return *l
	}
	return learned{}
}

// less answers whether a is less than b in every seed.
func less(a, b estimate.Estimate) estimate.Answer {
	switch {
	case a.Hi < b.Lo:
		return estimate.Yes
	case a.Lo >= b.Hi:
		return estimate.No
	}
	return estimate.Open // or NaN: something is missing
}

// openness is why seeds leave a claim open.
const openness = "seeds differ by as much"

// columns of all tables begin with what varies and the paper's number.
func (d *depthReport) table(title string, varies table.Column, paper table.Column) *table.Table {
	return &table.Table{Title: title, Columns: []table.Column{varies, paper, show.Column("Weights", "weights"),
		show.Column("Rate", "learning_rate"), show.Column("Label errors", "label_errors"), show.Column("Cost (nats)", "cost"), {Name: "Status", Key: "status"}}}
}

// row adds a row for a network.
func (d *depthReport) row(t *table.Table, varies, paper table.Cell, n depthNetwork) {
	row := []table.Cell{varies, paper, table.Number(float64(n.weights()), fmt.Sprintf("%.0fk", float64(n.weights())/1000)), show.Missing(), show.Missing(), show.Missing(), table.Text("")}
	if e := d.errorsOf(n); e.Known() {
		row[4] = table.Number(e.At, spread(e.By(100), "%.1f", " %"))
	}
	if c := d.costOf(n); c.Known() {
		row[5] = table.Number(c.At, spread(c, "%.2f", ""))
	}
	switch l := d.all[n]; {
	case l == nil:
		row[6] = table.Text("not measured")
	default:
		row[3], row[6] = show.Number(l.rate(), "%g"), table.Text(l.failed)
	}
	t.Rows = append(t.Rows, row)
}

// spread spells a value with its range.
func spread(e estimate.Estimate, format, unit string) string {
	s := fmt.Sprintf(format, e.At) + unit
	if e.Lo < e.Hi {
		s += fmt.Sprintf(" ("+format+" to "+format+")", e.Lo, e.Hi)
	}
	return s
}

// spans reports Table 1.
func (d *depthReport) spans() {
	t := d.table(fmt.Sprintf("Table 1: skip connections in %d layers", d.base.layers), table.Column{Name: "Skip", Key: "skip"}, show.Column("Paper, WER %", "paper_wer_percent"))
	for _, span := range spans() {
		d.row(t, table.Cell{Text: spanWord(span), Value: span}, show.Number(skips()[span], "%.2f"), d.base.spanned(span))
	}
	t.Notes = []string{"Paper: word error rates of 48 layers of 1152 units, with a language model. Skip: layers that each skip connection spans."}
	d.rep.Tables = append(d.rep.Tables, t)

	plain, best := d.errorsOf(d.base.spanned(0)), d.errorsOf(d.base.spanned(4))
	for _, span := range spans()[1:] {
		if e := d.errorsOf(d.base.spanned(span)); e.At < best.At {
			best = e
		}
	}
	// A network that writes nothing has all labels wrong, and one that writes the commonest letter nearly all.
	const nothing = 0.8
	fails := estimate.Both(estimate.AtLeast(nothing).Holds(plain), less(best, plain))
	d.settle("models without skip connections fail to converge, with batch normalisation too (section 5.3.1)", fmt.Sprintf("without: %s of the labels wrong; the best with: %s", spread(plain.By(100), "%.0f", " %"), spread(best.By(100), "%.0f", " %")),
		fails, plain, best)
	one, three, four := d.errorsOf(d.base.spanned(1)), d.errorsOf(d.base.spanned(3)), d.errorsOf(d.base.spanned(4))
	d.settle("skipping three or four layers is substantially better than skipping one (section 5.3.1)", fmt.Sprintf("label errors: one %s, three %s, four %s", spread(one.By(100), "%.0f", " %"), spread(three.By(100), "%.0f", " %"), spread(four.By(100), "%.0f", " %")),
		estimate.Both(less(three, one), less(four, one)), one, three, four)
}

func spanWord(span int) string {
	if span == 0 {
		return "none"
	}
	return fmt.Sprint(span)
}

// settle adds a claim, unless the records lack some of what it compares.
func (d *depthReport) settle(paper, here string, a estimate.Answer, of ...estimate.Estimate) {
	if slices.ContainsFunc(of, func(e estimate.Estimate) bool { return !e.Known() }) {
		study.NotMeasured(d.rep, paper, "some of the networks")
		return
	}
	d.rep.Findings = append(d.rep.Findings, fmt.Sprintf("The paper: %s. Here: %s.%s", paper, here, d.on.Agree(a, "", openness)))
	study.Settle(d.rep, d.on, paper, here, a, "", openness)
}

// depths reports Table 2 or 3, with a figure. claim compares the networks, from the shallowest on.
func (d *depthReport) depths(title, name string, network func(depthNetwork, int) depthNetwork, claim func([]depthNetwork)) {
	t := d.table(title, show.Column("Layers", "layers"), show.Column("Units", "hidden"))
	number, _, _ := strings.Cut(title, ":")
	ch := &plots.Chart{Title: "Diamos " + number + ", on generated speech", Subtitle: d.on.Name,
		X: plots.Axis{Title: "Recurrent layers", Scale: plots.Linear, Format: quantity.Size}, Y: plots.Axis{Title: "Label errors (%)", Scale: plots.Linear, Format: quantity.Short, Zero: true}, Panels: make([]plots.Panel, 1)}
	s := plots.Series{Label: fmt.Sprintf("skip %d", d.base.skip)}
	var list []depthNetwork
	for _, layers := range depths(d.base) {
		n := network(d.base, layers)
		list = append(list, n)
		d.row(t, table.Int(layers), table.Int(n.hidden), n)
		if e := d.errorsOf(n).By(100); e.Known() {
			p := plots.Point{X: float64(layers), Y: e.At}
			if e.Lo < e.Hi {
				p.Lo, p.Hi = e.Lo, e.Hi
			}
			s.Points, ch.X.Places = append(s.Points, p), append(ch.X.Places, float64(layers))
		}
	}
	ch.Panels[0].Series = []plots.Series{s}
	t.Notes = []string{"The paper's word error rates of 8 to 88 layers are in the report of diamos-speech."}
	d.rep.Tables = append(d.rep.Tables, t)
	if len(s.Points) > 0 {
		d.rep.Add("diamos-depth-"+name, ch, nil)
	}
	claim(list)
}

// errorsWords spells the label errors of networks by their layers.
func (d *depthReport) errorsWords(list []depthNetwork) (words string, all []estimate.Estimate) {
	var parts []string
	for _, n := range list {
		e := d.errorsOf(n)
		all = append(all, e)
		parts = append(parts, fmt.Sprintf("%d layers %s", n.layers, spread(e.By(100), "%.0f", " %")))
	}
	return "label errors: " + strings.Join(parts, ", "), all
}

// thinning settles the claim of Table 2.
func (d *depthReport) thinning(list []depthNetwork) {
	words, all := d.errorsWords(list)
	best := slices.MinFunc(all, func(a, b estimate.Estimate) int { return compareAt(a, b) })
	d.settle("at constant weights depth helps up to about 50 layers, and less beyond (section 5.3.2)", words,
		estimate.Both(less(best, all[0]), less(best, all[len(all)-1])), all...)
}

// growing settles the claim of Table 3.
func (d *depthReport) growing(list []depthNetwork) {
	words, all := d.errorsWords(list)
	d.settle("at constant units more layers improve the network, out to the largest (section 5.3.3)", words, less(all[len(all)-1], all[0]), all...)
}

func compareAt(a, b estimate.Estimate) int {
	switch {
	case a.At < b.At:
		return -1
	case a.At > b.At:
		return 1
	}
	return 0
}

// minibatches reports Figure 8.
func (d *depthReport) minibatches() {
	t := d.table(fmt.Sprintf("Figure 8: cost after as many utterances, over minibatches, %s", d.base.name()), show.Column("Minibatch", "batch"), show.Column("Minibatches", "minibatches"))
	var parts []string
	var all []estimate.Estimate
	s := plots.Series{Label: "cost"}
	for _, batch := range batches(d.base) {
		n := d.base.fed(batch)
		d.row(t, table.Int(batch), table.Int(n.plan(d.size, usualRate, 0).Iterations), n)
		c := d.costOf(n)
		all = append(all, c)
		parts = append(parts, fmt.Sprintf("%d utterances %s", batch, spread(c, "%.2f", "")))
		if c.Known() {
			p := plots.Point{X: float64(batch), Y: c.At}
			if c.Lo < c.Hi {
				p.Lo, p.Hi = c.Lo, c.Hi
			}
			s.Points = append(s.Points, p)
		}
	}
	t.Notes = []string{"The paper draws costs after 10 epochs, of minibatches from 64 to 4096, with the best learning rate of each."}
	d.rep.Tables = append(d.rep.Tables, t)
	if len(s.Points) > 0 {
		ch := &plots.Chart{Title: "Diamos Figure 8, on generated speech", Subtitle: d.on.Name + " · " + d.base.name(),
			X: plots.Axis{Title: "Utterances in a minibatch", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Held-out cost (nats)", Scale: plots.Linear, Format: quantity.Short, Zero: true},
			Panels: []plots.Panel{{Series: []plots.Series{s}}}}
		for _, p := range s.Points {
			ch.X.Places = append(ch.X.Places, p.X)
		}
		d.rep.Add("diamos-depth-figure8", ch, nil)
	}
	best := slices.MinFunc(all, compareAt)
	d.settle("beyond a minibatch, the same number of utterances teaches clearly less (section 5.3.4)", "costs: "+strings.Join(parts, ", "), less(best, all[len(all)-1]), all...)
}
