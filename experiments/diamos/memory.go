package diamos

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"rnnbench/experiments/estimate"
	"rnnbench/experiments/pick"
	"rnnbench/experiments/study"
	"rnnbench/impl"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// titanMemory is the DRAM of the paper's GPUs.
const titanMemory = 12e9

// An utterance is a layer size with a minibatch and a length that the paper
// states the memory of.
type utterance struct {
	hidden, batch, steps int
	activations          float64 // bytes as the paper prints them; 0: not printed
	weights              float64
	layers               string // deepest stack in 12 GB, as the paper says
}

func utterances() []utterance {
	return []utterance{
		{1200, 64, 700, 215e6, 5.7e6, ""},
		{1200, 4, 700, 0, 0, ""},
		{1760, 64, 3000, 1.3e9, 12.3e6, "about 9"},
		{1760, 4, 3000, 0, 0, ""},
		{1152, 4, 3000, 0, 0, "over 100; 110 in the blog post"}, // the network of section 5.2
		{1152, 64, 3000, 0, 0, ""},                              // the same, for what the small minibatch gains
	}
}

// arithmetic returns the paper's counts in bytes: one state per unit, step and sequence, and the
// recurrent weights.
func (u utterance) arithmetic() (activations, weights float64) {
	return 4 * float64(u.hidden) * float64(u.batch) * float64(u.steps), 4 * float64(u.hidden) * float64(u.hidden)
}

// A footprint is what training with a technique allocates, in bytes: a fixed part, and a part for
// each layer.
type footprint struct{ fixed, layer float64 }

// footprintOf lays out stacks of one and of two layers, as the technique would run them, and adds up
// their matrices.
func footprintOf(t rnn.Technique, u utterance) (footprint, error) {
	var bytes [2]float64
	for i := range bytes {
		p := rnn.Problem{Cell: cell.RNNReLU, Input: u.hidden, Hidden: u.hidden, Layers: i + 1, Batch: u.batch, Steps: u.steps, Pass: rnn.Train}
		_, s, err := rnn.Layout(t, p, nil)
		if err != nil {
			return footprint{}, err
		}
		for _, m := range s.Matrices {
			bytes[i] += 4 * float64(m.Elements())
		}
	}
	return footprint{2*bytes[0] - bytes[1], bytes[1] - bytes[0]}, nil
}

// deepest returns the number of layers that fit into that many bytes.
func (f footprint) deepest(bytes float64) int { return max(0, int((bytes-f.fixed)/f.layer)) }

// Memory is the experiment diamos-memory.
var Memory = study.Experiment{
	ID: "diamos-memory", Title: "Activation memory, and the deepest stack that fits",
	Source: "Diamos et al. 2016, sections 4.4 and 6; the authors' blog post, 2.1 and 3.1",
	Unlike: "stacks of recurrent layers alone, which keep what this program's schedules keep",
	Parts:  memoryParts,
	Report: func(recs []record.Record, on study.Target) (*study.Report, error) {
		rep := &study.Report{}
		all := countings()
		rep.Tables = append(rep.Tables, memoryTable(all))
		rep.Add("diamos-memory", memoryFigure(all, recs), nil)
		rep.Exact.Tables, rep.Exact.Figures = len(rep.Tables), len(rep.Figures) // counted, not measured
		rep.Findings = memoryFindings(all)
		memoryClaims(rep, all, recs, on)
		reportAllocated(rep, recs, on)
		return rep, nil
	},
}

// A counting holds every utterance's footprint by one way of counting.
type counting struct {
	name  string
	sizes []footprint // as utterances
}

// arithmeticName stands for the paper's way of counting among techniques.
const arithmeticName = "the paper's arithmetic"

// countings counts by the paper's arithmetic, and by what every technique of rnnbench that trains
// such layers allocates. It leaves out vendors' libraries: only on its device does a library say
// what it keeps for the gradient. Laying out takes seconds, so it is done once.
var countings = sync.OnceValue(func() []counting {
	us := utterances()
	paper := counting{name: arithmeticName}
	for _, u := range us {
		a, w := u.arithmetic()
		paper.sizes = append(paper.sizes, footprint{0, a + 2*w}) // W and R
	}
	all := []counting{paper}
	for _, t := range impl.Own() {
		s := counting{name: t.Name()}
		for _, u := range us {
			if f, err := footprintOf(t, u); err == nil { // else it declines such a layer
				s.sizes = append(s.sizes, f)
			}
		}
		if len(s.sizes) == len(us) {
			all = append(all, s)
		}
	}
	return all
})

func memoryTable(all []counting) *table.Table {
	t := &table.Table{
		Title: "Training one-gate layers in 12 GB, single precision",
		Columns: []table.Column{
			{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
			{Name: "Counted by", Key: "technique"},
			{Name: "Activations, paper", Key: "printed_bytes", Right: true}, {Name: "Activations", Key: "activation_bytes", Right: true},
			{Name: "Recurrent weights, paper", Key: "printed_weight_bytes", Right: true}, {Name: "Recurrent weights", Key: "weight_bytes", Right: true},
			{Name: "Whole layer", Key: "layer_bytes", Right: true},
			{Name: "Deepest, paper", Key: "printed_layers"}, {Name: "Deepest", Key: "layers", Right: true},
		},
		Notes: []string{
			"the paper's arithmetic: one state per unit, step and sequence, and input and recurrent weights",
			"techniques: every matrix of the schedule that trains the layer, including weight gradients",
		},
	}
	sized := func(v float64) table.Cell {
		if v == 0 {
			return table.Cell{}
		}
		return table.Number(v, quantity.SI(v, "B"))
	}
	for i, u := range utterances() {
		a, w := u.arithmetic()
		for _, s := range all {
			row := []table.Cell{table.Int(u.hidden), table.Int(u.batch), table.Int(u.steps), table.Text(s.name)}
			if s.name == arithmeticName {
				row = append(row, sized(u.activations), sized(a), sized(u.weights), sized(w), sized(s.sizes[i].layer), table.Text(u.layers))
			} else {
				row = append(row, table.Cell{}, sized(s.sizes[i].layer-4*w), table.Cell{}, sized(w), sized(s.sizes[i].layer), table.Cell{})
			}
			t.Rows = append(t.Rows, append(row, table.Int(s.sizes[i].deepest(titanMemory))))
		}
	}
	return t
}

func memoryFindings(all []counting) []string {
	us := utterances()
	short, weights := us[0].arithmetic()
	long, _ := us[2].arithmetic()
	list := []string{fmt.Sprintf("1200 units, minibatch 64, 700 steps: %s of states and %s of weights, a ratio of %.0f; the paper prints 215 MB and 5.7 MB. 1760 units, minibatch 64, 3000 steps: %s per layer; the paper prints 1.3 GB.",
		quantity.SI(short, "B"), quantity.SI(weights, "B"), short/weights, quantity.SI(long, "B"))}
	var shares []string
	for _, s := range all {
		many, few := s.sizes[2], s.sizes[3]
		list = append(list, fmt.Sprintf("Deepest stack of 1760 units and 3000 steps in 12 GB by %s: %s at minibatch 64 and %d at minibatch 4. With 1152 units at minibatch 4: %d.",
			s.name, layersWord(many.deepest(titanMemory)), few.deepest(titanMemory), s.sizes[4].deepest(titanMemory)))
		shares = append(shares, fmt.Sprintf("%.1f× by %s", many.layer/few.layer, s.name))
	}
	return append(list,
		"Of these depths, the paper says about 9 with 1760 units at minibatch 64, and over 100 with 1152 units at minibatch 4. Its blog post says 110 of the latter.",
		"Techniques allocate more than the states. They also store the gradients of the states that pass between layers. Where the weight gradients are one product over all steps, they store the pre-activation gradients of all steps.",
		"Memory of a layer of 1760 units at minibatch 64, relative to minibatch 4: "+strings.Join(shares, ", ")+". The states alone shrink by 16.0×; weights and their gradients keep their size.")
}

// layersWord counts layers.
func layersWord(n int) string {
	if n == 1 {
		return "1 layer"
	}
	return fmt.Sprintf("%d layers", n)
}

// memoryClaims compares the paper's numbers with its own arithmetic, and with stacks that trained.
func memoryClaims(r *study.Report, all []counting, recs []record.Record, on study.Target) {
	us := utterances()
	a, _ := us[0].arithmetic()
	study.Computed(r, "215 MB of activations: 1200 units, minibatch 64, 700 steps (blog, section 2.1)", "by the paper's arithmetic, "+quantity.SI(a, "B"), !estimate.Differ(a, us[0].activations), "")
	const nine = "about 9 layers of 1760 units fit in 12 GB at minibatch 64 (section 4.4)"
	n := all[0].sizes[2].deepest(titanMemory)
	if !trainedDeepest(r, recs, on, nine, us[2], n, func(layers float64) bool { return layers >= 8 && layers <= 10 }) {
		study.Computed(r, nine, "by the paper's arithmetic, "+layersWord(n), n >= 8 && n <= 10, "")
	}
	const hundred = "over 100 layers of 1152 units train in 12 GB at minibatch 4 (section 4.4)"
	many := all[0].sizes[4].deepest(titanMemory)
	if !trainedDeepest(r, recs, on, hundred, us[4], many, func(layers float64) bool { return layers > 100 }) {
		least, most := math.MaxInt, 0
		for _, s := range all[1:] {
			n := s.sizes[4].deepest(titanMemory)
			least, most = min(least, n), max(most, n)
		}
		study.Computed(r, hundred, fmt.Sprintf("%d by the paper's arithmetic and %d to %d by the techniques", many, least, most), least > 100,
			"the paper's arithmetic counts one value of a state, unit and step, and techniques keep more")
	}
}

// trainedDeepest adds a claim on the deepest stack of u's layers that trained in the limit, by the technique
// that needs the fewest bytes; counted is what the paper's arithmetic gives. false: none trained.
func trainedDeepest(r *study.Report, recs []record.Record, on study.Target, paper string, u utterance, counted int, agrees func(layers float64) bool) bool {
	var best *record.Record
	perLayer := func(x *record.Record) float64 { return float64(x.Work.Memory) / float64(x.Point.Layers) }
	for i := range recs {
		x := &recs[i]
		same := x.Point.Hidden == u.hidden && x.Point.Batch == u.batch && x.Point.Steps == u.steps
		if same && x.Status == record.OK && x.Work.Memory > 0 && (best == nil || perLayer(x) < perLayer(best)) {
			best = x
		}
	}
	if best == nil {
		return false
	}
	took := float64(best.Work.Memory)
	states, _ := u.arithmetic()
	layers := titanMemory / perLayer(best)
	r.Claim(on, paper, fmt.Sprintf("%s trained in %s by %s, the least a layer: %.3g in 12 GB; computed by the paper's arithmetic, %d", layersWord(best.Point.Layers), quantity.SI(took, "B"), best.Impl.Label, layers, counted), agrees(layers),
		fmt.Sprintf("%.1f values were allocated for each state, weights and scratch included, where the paper's arithmetic counts one", perLayer(best)/states))
	return true
}

// memoryFigure draws what stacks of the longest utterances take: lines are computed, and marks of the
// techniques are what their device allocated.
func memoryFigure(all []counting, recs []record.Record) plots.Figure {
	ch := &plots.Chart{Title: "Training memory of stacks on utterances of 3000 steps", Subtitle: "one-gate layers, single precision",
		X: plots.Axis{Title: "Layers", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Memory (B)", Scale: plots.Log}}
	for n := 1; n <= 256; n *= 2 {
		ch.X.Places = append(ch.X.Places, float64(n))
	}
	us := utterances()
	for i := 2; i < len(us); i++ {
		panel := plots.Panel{Title: fmt.Sprintf("%d units, minibatch %d", us[i].hidden, us[i].batch),
			Guides: []plots.Guide{{Label: "12 GB", Y0: titanMemory, Y1: titanMemory}}}
		for _, s := range all {
			line := plots.Series{Label: s.name + ", computed", Like: s.name, Reference: true}
			if s.name == arithmeticName {
				line.Label = s.name
			}
			for _, n := range ch.X.Places {
				line.Points = append(line.Points, plots.Point{X: n, Y: s.sizes[i].fixed + s.sizes[i].layer*n})
			}
			panel.Series = append(panel.Series, line)
		}
		for _, label := range pick.Labels(recs) {
			marks := plots.Series{Label: label + ", allocated", Like: label, Scatter: true}
			for _, p := range pick.Points(recs) {
				x := pick.Find(recs, label, func(q record.Point) bool { return q == p })
				if x != nil && x.Work.Memory > 0 && p.Hidden == us[i].hidden && p.Batch == us[i].batch && p.Steps == us[i].steps {
					marks.Points = append(marks.Points, plots.Point{X: float64(p.Layers), Y: float64(x.Work.Memory)})
				}
			}
			if len(marks.Points) > 0 {
				panel.Series = append(panel.Series, marks)
			}
		}
		ch.Panels = append(ch.Panels, panel)
	}
	return ch
}
