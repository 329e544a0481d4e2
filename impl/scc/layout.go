package scc

import (
	"fmt"

	"rnnbench/rnn"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A Network is a graph, such as one of a user's file, with the schedule of one pass.
type Network struct {
	*schedule.Schedule
	graph *graph.Graph
	size  graph.Size
	own   *own
	y     []place
}

// Layout lays out g for one pass of the given size; k sets knobs of Technique.
func Layout(g *graph.Graph, size graph.Size, k knob.Params) (*Network, error) {
	k, err := k.Complete(Technique{}.Knobs(rnn.Problem{}))
	if err != nil {
		return nil, fmt.Errorf("scc: %w", err)
	}
	b := schedule.NewBuilder(1)
	mem := allocate(b, g, size)
	n, err := layOut(b, mem, g, size, frames{batch: size.Batch}, k, false)
	if err != nil {
		return nil, fmt.Errorf("scc: %w", err)
	}
	s, err := b.Schedule()
	if err != nil {
		return nil, fmt.Errorf("scc: %w", err)
	}
	return &Network{s, g, size, mem, n.y}, nil
}

// own is the memory of a graph that stands alone.
type own struct {
	size              graph.Size
	inputs, gradients map[string]*schedule.Matrix
	prob, loss        map[string]*schedule.Matrix // by layer
}

func (o *own) Input(name string) *schedule.Matrix    { return o.inputs[name] }
func (o *own) Gradient(name string) *schedule.Matrix { return o.gradients[name] }
func (o *own) Classes(l graph.Layer) (prob, loss *schedule.Matrix) {
	return o.prob[l.Name], o.loss[l.Name]
}
func (o *own) Loss(l graph.Layer, t, n int) schedule.SoftmaxLoss {
	band := func(m *schedule.Matrix) schedule.View { return m.Band(t*o.size.Batch, n*o.size.Batch) }
	return schedule.SoftmaxLoss{
		Logits: band(o.prob[l.Name]), Prob: band(o.prob[l.Name]), Target: band(o.inputs[l.Given]), Loss: band(o.loss[l.Name]),
		Grad: o.size.Train, Scale: float32(1 / float64(o.size.Steps*o.size.Batch)),
	}
}

func allocate(b *schedule.Builder, g *graph.Graph, size graph.Size) *own {
	o := &own{size: size, inputs: map[string]*schedule.Matrix{}, gradients: map[string]*schedule.Matrix{}, prob: map[string]*schedule.Matrix{}, loss: map[string]*schedule.Matrix{}}
	gradient := func(name string, rows, cols int) {
		if size.Train {
			o.gradients[name] = b.Matrix("grad "+name, rows, cols)
		}
	}
	for _, p := range g.Params() {
		o.inputs[p.Name] = b.Matrix(p.Name, p.Rows, p.Cols)
		gradient(p.Name, p.Rows, p.Cols)
	}
	for k, l := range g.Layers {
		initial, all, fresh := size.Batch*g.Delay(k), size.Batch*size.Frames(), size.Batch*size.Steps
		if l.Initial != "" {
			initial = max(initial, size.Batch)
		}
		switch {
		case l.Input == graph.Symbols:
			o.inputs[l.Given] = b.Matrix(l.Given, all, 1)
		case l.Input == graph.Dense:
			o.inputs[l.Given] = b.Matrix(l.Given, initial+all, l.Size)
			gradient(l.Given, initial+all, l.Size)
			if l.Initial != "" {
				o.inputs[l.Initial], o.gradients[l.Initial] = o.inputs[l.Given], o.gradients[l.Given]
			}
			continue
		case l.Activation == graph.Softmax:
			o.inputs[l.Given] = b.Matrix(l.Given, fresh, 1)
			o.prob[l.Name], o.loss[l.Name] = b.Matrix(l.Name, fresh, l.Size), b.Matrix("loss "+l.Name, fresh, 1)
		case l.Given != "" && size.Train:
			o.inputs[l.Given] = b.Matrix(l.Given, fresh, l.Size)
		}
		if l.Initial != "" {
			o.inputs[l.Initial] = b.Matrix(l.Name, initial+all, l.Size)
			gradient(l.Initial, initial, l.Size)
		}
	}
	return o
}

// Write copies parameters, given values and initial activations to where the schedule reads them.
func (n *Network) Write(mem rnn.Memory, v graph.Values) error {
	write := func(m *schedule.Matrix, parts ...[]float64) error {
		values := make([]float32, 0, m.Elements())
		for _, part := range parts {
			for _, x := range part {
				values = append(values, float32(x))
			}
		}
		if len(values) > m.Elements() {
			return fmt.Errorf("scc: %d values for %s, which holds %d", len(values), m.Name, m.Elements())
		}
		return mem.Write(m, values[:m.Elements()])
	}
	for _, p := range n.graph.Params() {
		if err := write(n.own.Input(p.Name), v[p.Name]); err != nil {
			return err
		}
	}
	for _, l := range n.graph.Layers {
		given, initial := n.own.Input(l.Given), n.own.Input(l.Initial)
		var err error
		switch {
		case given != nil && given == initial:
			err = write(given, v[l.Initial], v[l.Given])
		case given != nil:
			err = write(given, v[l.Given])
		}
		if err == nil && initial != nil && initial != given {
			err = write(initial, v[l.Initial])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Read returns the answer of a run, by the names of graph.Reference. It leaves out the activations
// of a softmax, which training overwrites.
func (n *Network) Read(mem rnn.Memory) (graph.Values, error) {
	out := graph.Values{}
	var failed error
	read := func(name string, v schedule.View) {
		all := make([]float32, v.M.Elements())
		if err := mem.Read(v.M, all); err != nil && failed == nil {
			failed = err
		}
		var values []float64
		for r := range v.Rows {
			for _, x := range all[(v.Row+r)*v.M.Cols+v.Col:][:v.Cols] {
				values = append(values, float64(x))
			}
		}
		out[name] = values
	}
	for k, l := range n.graph.Layers {
		softmax := l.Activation == graph.Softmax
		if p := n.y[k]; l.Input == graph.Hidden && !softmax {
			read("y "+l.Name, p.m.Band(p.lead*n.size.Batch, n.size.Frames()*n.size.Batch).Columns(p.col, p.cols))
		}
		if softmax {
			read("loss "+l.Name, n.own.loss[l.Name].All())
		}
		if !n.size.Train {
			continue
		}
		lead := n.y[k].lead * n.size.Batch
		if l.Input == graph.Dense {
			m := n.own.Gradient(l.Given)
			read("grad "+l.Given, m.Band(lead, m.Rows-lead))
		}
		if l.Initial != "" && n.graph.Delay(k) > 0 {
			read("grad "+l.Initial, n.own.Gradient(l.Initial).Band(0, lead))
		}
	}
	if n.size.Train {
		for _, p := range n.graph.Params() {
			read("grad "+p.Name, n.own.Gradient(p.Name).All())
		}
	}
	return out, failed
}
