package experiments

import (
	"fmt"
	"math"

	"rnnbench/impl"
	"rnnbench/plots"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// titanMemory is the DRAM of the paper's GPUs.
const titanMemory = 12e9

// A utterance is a layer size with a minibatch and a length that the paper
// states the memory of.
type utterance struct {
	hidden, batch, steps int
	activations          float64 // bytes as the paper prints them; 0: not printed
	weights              float64
	layers               string // deepest stack in 12 GB, as the paper says
	source               string
}

func utterances() []utterance {
	return []utterance{
		{1200, 64, 700, 215e6, 5.7e6, "", "blog, 2.1"},
		{1200, 4, 700, 0, 0, "", ""},
		{1760, 64, 3000, 1.3e9, 12.3e6, "about 9", "4.4"},
		{1760, 4, 3000, 0, 0, "over 100; 110 in the blog", "6; blog, 3.1"},
	}
}

// arithmetic is the paper's: one state per unit, step and sequence, and the
// recurrent weights.
func (u utterance) arithmetic() (activations, weights float64) {
	return 4 * float64(u.hidden) * float64(u.batch) * float64(u.steps), 4 * float64(u.hidden) * float64(u.hidden)
}

// A footprint is what training with a technique allocates: so many bytes, and so
// many more for each layer.
type footprint struct{ fixed, layer float64 }

// footprintOf lays stacks of one and of two layers out, as the technique would
// run them, and adds their matrices up.
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

// deepest is the number of layers that fit into so many bytes.
func (f footprint) deepest(bytes float64) int { return max(0, int((bytes-f.fixed)/f.layer)) }

var diamosMemory = Experiment{
	ID: "diamos-memory", Title: "Memory of activations, and the deepest stack that fits",
	Source: "Diamos et al. 2016, sections 4.4 and 6, and the blog of the same, 2.1 and 3.1",
	Parts:  func(Size) []Part { return nil }, // counted, not measured
	Report: func([]results.Record, string) (*Report, error) {
		rep := &Report{}
		t := &table.Table{
			Title: "Training one-gate layers in 12 GB, single precision",
			Columns: []table.Column{
				{Name: "H", Key: "hidden", Right: true}, {Name: "B", Key: "batch", Right: true}, {Name: "T", Key: "steps", Right: true},
				{Name: "Technique", Key: "technique"},
				{Name: "Layer, printed", Key: "printed_bytes", Right: true}, {Name: "Layer", Key: "layer_bytes", Right: true},
				{Name: "Weights, printed", Key: "printed_weight_bytes", Right: true}, {Name: "Weights", Key: "weight_bytes", Right: true},
				{Name: "Deepest, printed", Key: "printed_layers"}, {Name: "Deepest", Key: "layers", Right: true},
			},
			Notes: []string{
				"the paper's arithmetic: one state per unit, step and sequence, and the recurrent weights",
				"techniques: every matrix of the schedule that trains the layer: states, products of inputs, what the backward pass needs, gradients, weights",
			},
		}
		printed := func(v float64) table.Cell {
			if v == 0 {
				return table.Cell{}
			}
			return table.Number(v, quantity.SI(v, "B"))
		}
		sized := func(v float64) table.Cell { return table.Number(v, quantity.SI(v, "B")) }
		depths := map[string][]int{} // by technique, in the order of utterances
		for _, u := range utterances() {
			a, w := u.arithmetic()
			paper := footprint{0, a + 2*w} // W and R
			t.Rows = append(t.Rows, []table.Cell{table.Int(u.hidden), table.Int(u.batch), table.Int(u.steps), table.Text("the paper's arithmetic"),
				printed(u.activations), sized(a), printed(u.weights), sized(w), table.Text(u.layers), table.Int(paper.deepest(titanMemory))})
			depths["the paper's arithmetic"] = append(depths["the paper's arithmetic"], paper.deepest(titanMemory))
			for _, tech := range impl.All() {
				f, err := footprintOf(tech, u)
				if err != nil {
					continue // it declines the layer
				}
				depths[tech.Name()] = append(depths[tech.Name()], f.deepest(titanMemory))
				t.Rows = append(t.Rows, []table.Cell{table.Int(u.hidden), table.Int(u.batch), table.Int(u.steps), table.Text(tech.Name()),
					{}, sized(f.layer), {}, sized(2 * w), {}, table.Int(f.deepest(titanMemory))})
			}
		}
		rep.Tables = append(rep.Tables, t)
		fig, err := memoryFigure()
		rep.add("diamos-memory", fig, err)
		us := utterances()
		a0, w0 := us[0].arithmetic()
		a2, _ := us[2].arithmetic()
		rep.Findings = append(rep.Findings,
			fmt.Sprintf("1200 units, minibatch 64, 700 steps: %s of states against %s of weights, ×%.0f; the paper prints 215 MB and 5.7 MB. 1760 units, 64, 3000 steps: %s a layer; the paper prints 1.3 GB.",
				quantity.SI(a0, "B"), quantity.SI(w0, "B"), a0/w0, quantity.SI(a2, "B")))
		for _, name := range append([]string{"the paper's arithmetic"}, techniqueNames()...) {
			if d := depths[name]; len(d) == len(us) {
				rep.Findings = append(rep.Findings, fmt.Sprintf("Deepest stack of 1760 units and 3000 steps in 12 GB, %s: %d layers at minibatch 64, %d at minibatch 4, ×%.1f; the paper: about 9, and over 100.",
					name, d[2], d[3], float64(d[3])/math.Max(1, float64(d[2]))))
			}
		}
		rep.Findings = append(rep.Findings, "The techniques keep more than one state per unit and step: the input's product and the gradients of all steps live as long as the weight gradients, which are one product over all of them, need them.")
		return rep, nil
	},
}

func techniqueNames() []string {
	var names []string
	for _, t := range impl.All() {
		names = append(names, t.Name())
	}
	return names
}

// memoryFigure draws what stacks of the longest utterances take.
func memoryFigure() (plots.Figure, error) {
	ch := &plots.Chart{Title: "Memory of training stacks of 1760 units on utterances of 3000 steps", Subtitle: "one-gate layers, single precision",
		X: plots.Axis{Title: "Layers", Scale: plots.Log, Format: quantity.Size}, Y: plots.Axis{Title: "Memory (B)", Scale: plots.Log}}
	layers := []int{1, 2, 4, 8, 16, 32, 64, 128, 256}
	for _, n := range layers {
		ch.X.Places = append(ch.X.Places, float64(n))
	}
	line := func(label string, f footprint) plots.Series {
		s := plots.Series{Label: label}
		for _, n := range layers {
			s.Points = append(s.Points, plots.Point{X: float64(n), Y: f.fixed + f.layer*float64(n)})
		}
		return s
	}
	for _, u := range utterances()[2:] {
		panel := plots.Panel{Title: fmt.Sprintf("Minibatch %d", u.batch),
			Guides: []plots.Guide{{Label: "12 GB", Y0: titanMemory, Y1: titanMemory}}}
		a, w := u.arithmetic()
		paper := line("the paper's arithmetic", footprint{0, a + 2*w})
		paper.Reference = true
		panel.Series = append(panel.Series, paper)
		for _, t := range impl.All() {
			if f, err := footprintOf(t, u); err == nil {
				panel.Series = append(panel.Series, line(t.Name(), f))
			}
		}
		ch.Panels = append(ch.Panels, panel)
	}
	return ch, nil
}
