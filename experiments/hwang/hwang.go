// Package hwang reproduces Hwang and Sung (2015), "Single Stream Parallelization of Generalized
// LSTM-like RNNs on a GPU".
package hwang

import (
	"bytes"
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
	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/tuner/grid"
)

// enoughStreams is the number of streams with which the paper reaches almost the maximum speed.
const enoughStreams = 64

// What the curves of Hwang and Sung (2015) are called.
const (
	intra    = "scc"
	baseline = "baseline"
)

func hwangSpecs(on study.Target) []grid.Spec {
	specs := []grid.Spec{study.Spec(intra, "scc", knob.Params{"intra": 1}), study.Spec(baseline, "scc", knob.Params{"intra": 0})}
	return on.WithGPU(specs, study.Graphed(intra+", graph", specs[0]), study.Graphed(baseline+", graph", specs[1]))
}

// minibatches divides frames new steps among N sequences, the paper's streams. Each has h new steps
// and a history of h steps, through which errors flow back.
func minibatches(p record.Point, frames int, sequences []int) []record.Point {
	var list []record.Point
	for _, n := range sequences {
		q := p
		q.Batch, q.Steps, q.History = n, frames/n, frames/n
		list = append(list, q)
	}
	return list
}

// powers returns the powers of base below most, from 1 on, and then most.
func powers(base, most int) []int {
	var list []int
	for n := 1; n < most; n *= base {
		list = append(list, n)
	}
	return append(list, most)
}

// languageModel returns the network of section 4. At quick size, the output layer, which takes most
// of the time, is the paper's. The input has fewer words, whose look-up costs the same, and a
// minibatch has fewer frames.
func languageModel(cell string, s study.Size) (p record.Point, frames int) {
	p = record.Point{Cell: cell, Pass: "train", Hidden: 512, Input: 38000, Output: 20000, OneHot: true, Layers: 1, Precision: "fp32"}
	if s == study.Quick {
		p.Input = 4000
		return p, 128
	}
	return p, 1024
}

// Fig3 is the experiment hwang-fig3.
var Fig3 = study.Experiment{
	ID: "hwang-fig3", Title: "Training a language model over the number of streams, with and without parallelism across steps",
	Source: "Hwang & Sung 2015, Figure 3",
	Unlike: "random words, not the paper's text",
	Parts: func(s study.Size, on study.Target) []study.Part {
		var points []record.Point
		for _, cell := range []string{"rnn-tanh", "lstm-c"} {
			p, frames := languageModel(cell, s)
			base := 2
			if on.GPU {
				base = 4 // an LSTM's baseline takes most of a second a run
			}
			if s == study.Quick {
				base = 8
			}
			points = append(points, minibatches(p, frames, powers(base, frames))...)
		}
		return []study.Part{{Points: points, Specs: hwangSpecs(on)}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		for _, c := range languageModels() {
			some := pick.Where(recs, func(p record.Point) bool { return p.Cell == c.cell })
			one, from, share := streams(rep, some, "words/s", func(r *record.Record) float64 { return words(r) },
				fmt.Sprintf("Hwang & Sung Figure 3: words per second, %s", c.name))
			if !math.IsNaN(one) {
				why := ""
				over, overGraph := replayed(some)
				if over > 10 {
					why = fmt.Sprintf("launches limit it here: replayed as a graph, it is %.1f times as fast as the baseline and %.1f times as fast as the baseline as a graph", over, overGraph)
				}
				v := oneStream(some)
				said := estimate.AtLeast(10).Holds(estimate.Of(v)) == estimate.No && why != ""
				study.CompareAbove(rep, on, fmt.Sprintf("%s, one stream: parallelism across steps makes training %.1f× as fast. The paper says over 10 times.", c.name, one), c.name+": one stream trains over 10 times as fast with parallel steps (section 4)", estimate.WithInterval(v, "%.1f", "×"), v, 10, why)
				if over > 0 && !said {
					rep.Findings = append(rep.Findings, fmt.Sprintf("%s, one stream: parallelism across steps, replayed as a graph, is %.1f× as fast as the baseline and %.1f× as fast as the baseline as a graph.", c.name, over, overGraph))
				}
			}
			if from > 0 {
				study.CompareAbove(rep, on, fmt.Sprintf("%s: %d streams reach %.0f %% of the best speed; N = %d and more reach at least 95 %%. The paper says almost the maximum with %d and gives no share.", c.name, enoughStreams, 100*share, from, enoughStreams),
					fmt.Sprintf("%s: almost the maximum speed with %d streams (section 4)", c.name, enoughStreams), fmt.Sprintf("%.0f %% with %d streams, at least 95 %% from %d on", 100*share, enoughStreams, from), shareOfBest(some, share), estimate.Almost, serialSteps(some))
			}
		}
		if len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of the language model")
		}
		rep.Findings = append(rep.Findings, on.Say(
			"Step by step, each step of one stream reads the whole output layer. Over all steps at once, each weight that is read serves a whole minibatch. The share of the gain due to this was not measured.",
			"Step by step, each step of one stream launches a product with the whole output layer and reads the layer. Over all steps at once, each weight that is read serves a whole minibatch. Only the recurrence is then launched at each step."))
		fig, err := plots.Lines(recs, plots.Spec{X: "batch", Y: "events", Panel: "cell", Machine: on.Name, Scale: "log", Title: "Hwang & Sung Figure 3: training a language model, words per second"})
		inStreams(fig)
		if fig != nil {
			fig.Y.Title = "Throughput (words/s)"
		}
		rep.Add("hwang-fig3", fig, err)
		return rep, nil
	},
}

// A network is one of the paper's, by the cell that stands for it.
type network struct{ cell, name string }

// languageModels returns the networks of Figure 3.
func languageModels() []network {
	return []network{{"rnn-tanh", "Elman network"}, {"lstm-c", "LSTM"}}
}

// inStreams labels a figure over minibatches as the paper does: by streams and by its networks.
func inStreams(ch *plots.Chart) {
	if ch == nil {
		return
	}
	ch.X.Title = "Streams"
	for i, p := range ch.Panels {
		for _, n := range languageModels() {
			if p.Title == n.cell {
				ch.Panels[i].Title = n.name + " (" + n.cell + ")"
			}
		}
	}
}

// Fig4 is the experiment hwang-fig4.
var Fig4 = study.Experiment{
	ID: "hwang-fig4", Title: "Training LSTM layers of three sizes over the number of streams, against the peak",
	Source: "Hwang & Sung 2015, Figure 4",
	Unlike: "recurrence from the output is assumed, which the paper does not state for these layers",
	Parts: func(s study.Size, on study.Target) []study.Part {
		sizes, frames, base := []int{1024, 2048, 4096}, 1024, 2
		if on.GPU {
			base = 4
		}
		if s == study.Quick {
			sizes, frames, base = []int{128, 256, 512}, 128, 4
		}
		var points []record.Point
		for _, h := range sizes {
			p := record.Point{Cell: "lstm-peephole", Pass: "train", Hidden: h, Input: h, Output: h, Layers: 1, Precision: "fp32"}
			points = append(points, minibatches(p, frames, powers(base, frames))...)
		}
		return []study.Part{{Points: points, Specs: hwangSpecs(on)}}
	},
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		var sizes []int
		for _, p := range pick.Points(recs) {
			if !slices.Contains(sizes, p.Hidden) {
				sizes = append(sizes, p.Hidden)
			}
		}
		if fig4Claims(rep, recs, sizes, on); len(rep.Tables) == 0 {
			return nil, fmt.Errorf("experiments: no records of the LSTM layers")
		}
		rep.Findings = append(rep.Findings, "The LSTM here has recurrence from its output. The paper leaves that out of its language model, but does not say so for these layers.")
		spec := plots.Spec{X: "batch", Panel: "hidden", Machine: on.Name, Title: "Hwang & Sung Figure 4: training LSTM layers, input and output as wide as the layer"}
		if on.GPU { // its products are not bound by single precision
			spec.Peak = -1
		}
		fig, err := plots.Lines(recs, spec)
		inStreams(fig)
		splitPeak(on, fig)
		rep.Add("hwang-fig4", fig, err)
		return rep, nil
	},
}

// streams adds the table of one curve of a figure: a rate over the number of
// streams. It returns how much faster one stream is with parallelism between
// steps, NaN if unknown; the number of streams from which on all have 95 % of the
// best rate, 0 if unknown; and the share of the best rate that enoughStreams have,
// or the next larger number.
func streams(rep *study.Report, recs []record.Record, unit string, rate func(*record.Record) float64, title string) (one float64, from int, enough float64) {
	one = math.NaN()
	t := &table.Table{
		Title: title,
		Columns: []table.Column{
			{Name: "N", Key: "batch", Right: true}, {Name: "h", Key: "steps", Right: true},
			{Name: "baseline", Key: "baseline", Right: true}, {Name: "with parallel steps", Key: "intra", Right: true},
			{Name: "×", Key: "speedup", Right: true}, {Name: "of the best", Key: "of_best", Right: true},
		},
	}
	top := busiest(recs, intra)
	for _, p := range pick.Points(recs) {
		here := func(q record.Point) bool { return q == p }
		a, b := pick.Find(recs, baseline, here), pick.Find(recs, intra, here)
		if b == nil {
			from = 0 // a gap: what comes before it cannot be joined to what comes after
			continue
		}
		up, base := math.NaN(), show.Missing()
		if a != nil {
			up, base = a.Seconds()/b.Seconds(), table.Number(rate(a), quantity.SI(rate(a), unit)).Of(a)
		}
		if p.Batch == 1 {
			one = up
		}
		share := rate(b) / rate(top)
		if p.Batch >= enoughStreams && enough == 0 {
			enough = share
		}
		switch {
		case share < 0.95:
			from = 0
		case from == 0:
			from = p.Batch
		}
		t.Rows = append(t.Rows, []table.Cell{table.Int(p.Batch), table.Int(p.Steps), base,
			table.Number(rate(b), quantity.SI(rate(b), unit)).Of(b), show.Ratio(up), show.Number(100*share, "%.0f %%")})
	}
	if len(t.Rows) > 0 {
		rep.Tables = append(rep.Tables, t)
	}
	if top == nil || !slices.ContainsFunc(recs, func(r record.Record) bool { return r.Point.Batch >= enoughStreams && r.Seconds() > 0 }) {
		from = 0 // the best speed is not known
	}
	return one, from, enough
}

// replayed is how many times as fast parallelism across steps is with one stream, replayed as a
// graph: over the baseline, and over the baseline as a graph; 0: not measured.
func replayed(recs []record.Record) (over, overGraph float64) {
	one := func(p record.Point) bool { return p.Batch == 1 }
	a, b := pick.Find(recs, baseline, one), pick.Find(recs, baseline+", graph", one)
	c := pick.Find(recs, intra+", graph", one)
	if a == nil || b == nil || c == nil {
		return 0, 0
	}
	return a.Seconds() / c.Seconds(), b.Seconds() / c.Seconds()
}

// words returns the rate at which new steps of sequences are trained on, per second.
func words(r *record.Record) float64 {
	return float64(r.Point.Batch*r.Point.Steps) / r.Seconds()
}

// busiest returns the record of a label with the most steps of sequences per second, nil if none is
// ok.
func busiest(recs []record.Record, label string) (best *record.Record) {
	for i := range recs {
		r := &recs[i]
		if r.Impl.Label == label && r.Status == record.OK && (best == nil || words(r) > words(best)) {
			best = r
		}
	}
	return best
}

// Graph is the experiment hwang-graph.
var Graph = study.Experiment{
	ID: "hwang-graph", Title: "The LSTM as a graph, its recurrent node, and its acyclic form",
	Source: "Hwang & Sung 2015, Figures 1 and 2",
	Parts:  func(study.Size, study.Target) []study.Part { return nil },
	Report: func([]record.Record, study.Target) (*study.Report, error) {
		rep := &study.Report{}
		t := &table.Table{
			Title: "Networks with a softmax output as graphs: what must run step by step",
			Columns: []table.Column{
				{Name: "cell", Key: "cell"}, {Name: "layers", Key: "layers", Right: true}, {Name: "components", Key: "components", Right: true},
				{Name: "recurrent node", Key: "recurrent"}, {Name: "over all steps at once", Key: "at_once"},
			},
		}
		for _, c := range cell.BuiltIn() {
			if !graph.Has(c) {
				continue
			}
			g, err := graph.New(graph.Stack{Cell: c, Layers: 1, Input: 1024, Hidden: 1024, Output: 1024})
			if err != nil {
				return nil, err
			}
			a, err := g.Analyze()
			if err != nil {
				return nil, err
			}
			var loops, free []string
			for _, comp := range a.Components {
				var names []string
				for _, k := range comp.Layers {
					names = append(names, g.Layers[k].Name)
				}
				if comp.Recurrent {
					loops = append(loops, "{"+strings.Join(names, ", ")+"}")
				} else {
					free = append(free, names...)
				}
			}
			t.Rows = append(t.Rows, []table.Cell{table.Text(c.Name), table.Int(len(g.Layers)), table.Int(len(a.Components)),
				table.Text(strings.Join(loops, " ")), table.Text(strings.Join(free, ", "))})
			if c == cell.LSTMPeephole {
				study.Computed(rep, "the LSTM's loops are one recurrent node (section 3.1, Figure 2)", fmt.Sprintf("%d recurrent node, %d layers outside it", len(loops), len(free)), len(loops) == 1, "")
			}
			if c != cell.LSTMPeephole && c != cell.LSTMC {
				continue
			}
			for _, grouped := range []bool{false, true} {
				var svg, dot bytes.Buffer
				if err := g.SVG(&svg, grouped); err != nil {
					return nil, err
				}
				if err := g.DOT(&dot, grouped); err != nil {
					return nil, err
				}
				name := fmt.Sprintf("hwang-graph-%s-%s", c, map[bool]string{false: "fig1", true: "fig2"}[grouped])
				rep.Files = append(rep.Files, study.File{Name: name + ".svg", Content: svg.Bytes()}, study.File{Name: name + ".dot", Content: dot.Bytes()})
			}
		}
		rep.Tables = append(rep.Tables, t)
		rep.Findings = append(rep.Findings,
			"rnnbench draws Figures 1 and 2 of the paper for its LSTM with forget gates and peepholes (lstm-peephole). It draws them again without recurrence from the output (lstm-c). The output gate, the output and the candidate g then leave the loop.",
			"The paper draws peepholes with identity weights. Here they have one weight per unit, as first published, and end in a dot.",
			"rnnbench graph draws the same for any cell, and for a graph of your own.")
		return rep, nil
	},
}
