package scc

import (
	"fmt"
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A memory provides the named matrices of a network.
type memory interface {
	// Input returns the matrix of a parameter, of given values, or of a layer with initial
	// activations, which lie before its own.
	Input(name string) *schedule.Matrix
	// Gradient returns the matrix for the gradient of Input(name); nil if it is not wanted.
	Gradient(name string) *schedule.Matrix
	// Classes returns the probabilities of a softmax layer and its losses. In training, the gradient
	// of the logits replaces the probabilities.
	Classes(l graph.Layer) (prob, loss *schedule.Matrix)
	// Loss returns the operation that turns a softmax layer's logits into probabilities and losses,
	// at new steps [t, t+n).
	Loss(l graph.Layer, t, n int) schedule.SoftmaxLoss
}

// A network is a graph that is being laid out as a schedule. Its frames are steps, the history's
// first.
type network struct {
	arrangement
	emitter
	intra bool
	temps []*schedule.Matrix
	held  []bool // per layer: its sum at the current frames has been written
}

// layOut appends the operations of g to b. The steps of the history are computed once before all
// runs, unless historyKept says that they are in memory.
func layOut(b *schedule.Builder, mem memory, g *graph.Graph, size graph.Size, f frames, k knob.Params, historyKept bool) (*network, error) {
	if err := b.Room(size.Frames()); err != nil {
		return nil, err
	}
	g = plain(g)
	order, err := g.Analyze()
	if err != nil {
		return nil, err
	}
	n := &network{
		arrangement: arrangement{Builder: b, memory: mem, Graph: g, size: size, frames: f, order: order},
		emitter:     emitter{to: b, fused: k["fused"] == 1},
		intra:       k["intra"] == 1,
	}
	n.arrange(k["transposed"])
	if size.History > 0 && !historyKept { // steps of the previous minibatch
		n.ahead = true
		n.begin()
		n.forward(0, size.History)
		n.flush()
		n.ahead = false
	}
	n.begin()
	n.forward(size.History, size.Frames())
	if size.Train {
		n.flush()
		b.Cut()
		back := gradients{network: n, begun: map[schedule.View]bool{}}
		back.backward()
	}
	n.flush()
	return n, nil
}

// plain puts a layer on each weighted connection into a product or a maximum, so that these two only
// read plain vectors.
func plain(g *graph.Graph) *graph.Graph {
	out := &graph.Graph{Name: g.Name, Layers: slices.Clone(g.Layers)}
	for _, c := range g.Connections {
		if to := g.Layers[c.To]; c.Weight != graph.Identity && to.Aggregate != graph.Sum {
			name := fmt.Sprintf("%s → %s %d", g.Layers[c.From].Name, to.Name, len(out.Connections))
			out.Layers = append(out.Layers, graph.Layer{Name: name, Size: to.Size})
			via := len(out.Layers) - 1
			out.Connections = append(out.Connections, graph.Connection{From: via, To: c.To, Weight: graph.Identity})
			c.To = via
		}
		out.Connections = append(out.Connections, c)
	}
	out.Index()
	return out
}

// scratch views the ith temporary matrix.
func (n *network) scratch(i, rows, cols int) schedule.View {
	for len(n.temps) <= i {
		frames, widest := 1, 0
		if n.intra {
			frames = n.size.Frames()
		}
		for _, l := range n.Layers {
			if l.Input == graph.Hidden && l.Activation != graph.Softmax {
				widest = max(widest, l.Size)
			}
		}
		n.temps = append(n.temps, n.Matrix(fmt.Sprintf("temp%d", len(n.temps)), frames*n.size.Batch, widest))
	}
	return n.temps[i].Band(0, rows).Columns(0, cols)
}

// begin appends what a pass computes once: packed weights and the sums of biases.
func (n *network) begin() {
	for _, p := range n.products {
		for _, op := range p.packs {
			n.do(op)
		}
	}
	for _, b := range n.biases {
		for _, k := range b.to {
			row := b.row.Columns(n.y[k].col-b.out.col, n.y[k].cols)
			for j, slot := range n.Layers[k].Bias {
				v := n.Input(slot.Param).All().Columns(slot.Offset, n.y[k].cols)
				if j == 0 {
					n.do(schedule.Map{Op: cell.Copy, Out: row, A: v})
				} else {
					n.do(schedule.Map{Op: cell.Add, Out: row, A: row, B: v})
				}
			}
		}
	}
}
