package scc

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/rnn/graph"
	"rnnbench/rnn/schedule"
)

// An arrangement says where a network's matrices lie. Layers that one operation can serve lie side
// by side.
type arrangement struct {
	*schedule.Builder
	memory
	*graph.Graph
	frames
	size  graph.Size
	order *graph.Analysis

	y, dy    []place  // per layer: activations and their gradients, which delta turns into those of its sum
	reached  []*marks // per layer: the frames with a gradient
	products []product
	biases   []bias
}

// arrange lays out all that a network computes. when is the value of the knob transposed.
func (n *arrangement) arrange(when int) {
	n.place()
	if n.size.Train {
		n.placeGradients()
	}
	n.findProducts()
	n.findBiases()
	n.pack(when)
}

// A place is where a layer's vectors lie, a row per frame and sequence. The
// first row belongs to frame -lead.
type place struct {
	m         *schedule.Matrix // nil: nowhere
	col, cols int
	lead      int
}

// marks says which frames from -lead on hold a gradient.
type marks struct {
	lead int
	at   []bool
}

// place lays out the activations. Layers with a product from the same layer lie side by side, in the
// order of their weights. So one operation serves all of them.
func (n *arrangement) place() {
	n.y = make([]place, len(n.Layers))
	wide := map[string][]int{}
	var groups []string
	rows := n.at(n.size.Frames())
	for k, l := range n.Layers {
		p := &n.y[k]
		p.cols, p.lead = l.Size, n.Delay(k)
		if l.Input == graph.Symbols {
			p.cols = 1
		}
		switch full := n.full(k); {
		case l.Initial != "":
			p.lead = max(1, p.lead)
			p.m = n.Input(l.Initial)
		case l.Input != graph.Hidden:
			p.m = n.Input(l.Given)
		case l.Activation == graph.Softmax:
			p.m, _ = n.Classes(l)
			p.lead = -n.size.History
		case full < 0:
			p.m = n.Matrix(l.Name, rows, l.Size)
		default:
			name := n.Connections[full].Param.Param
			if wide[name] == nil {
				groups = append(groups, name)
			}
			wide[name] = append(wide[name], k)
		}
	}
	for _, name := range groups {
		members := wide[name]
		slices.SortStableFunc(members, func(a, b int) int {
			return cmp.Compare(n.Connections[n.full(a)].Param.Offset, n.Connections[n.full(b)].Param.Offset)
		})
		n.sideBySide(n.y, members, "")
	}
}

// full returns the first full connection into layer k, or -1.
func (n *arrangement) full(k int) int {
	for _, m := range n.Into(k) {
		if n.Connections[m].Weight == graph.Full {
			return m
		}
	}
	return -1
}

// sideBySide places layers in adjacent columns of a new matrix.
func (n *arrangement) sideBySide(places []place, layers []int, prefix string) {
	name, cols := prefix, 0
	for _, k := range layers {
		name += n.Layers[k].Name + " "
		cols += n.Layers[k].Size
	}
	m := n.Matrix(name[:len(name)-1], n.at(n.size.Frames()), cols)
	cols = 0
	for _, k := range layers {
		places[k] = place{m, cols, n.Layers[k].Size, 0}
		cols += n.Layers[k].Size
	}
}

// placeGradients lays out gradients like the activations. A layer that is only added to another
// shares the other's gradient.
func (n *arrangement) placeGradients() {
	n.dy, n.reached = make([]place, len(n.Layers)), make([]*marks, len(n.Layers))
	done := map[*schedule.Matrix]bool{}
	for i := len(n.order.Components) - 1; i >= 0; i-- {
		for _, k := range slices.Backward(n.order.Components[i].Layers) {
			l, y := n.Layers[k], n.y[k]
			if to := n.alias(k); to >= 0 {
				n.dy[k], n.reached[k] = n.dy[to], n.reached[to]
				continue
			}
			if n.dy[k].m == nil {
				n.dy[k] = y
			}
			n.reached[k] = &marks{max(0, y.lead), make([]bool, max(0, y.lead)+n.size.Frames())}
			switch {
			case l.Activation == graph.Softmax:
			case l.Input == graph.Symbols:
				n.dy[k].m = nil
			case l.Input == graph.Dense:
				n.dy[k].m = n.Gradient(l.Given)
			case n.dy[k].m != y.m: // laid out with its neighbours
			case done[y.m]:
				panic(fmt.Sprintf("scc: %s has no place for its gradient", l.Name))
			case y.lead > 0 || y.cols == y.m.Cols:
				n.dy[k].m = n.Matrix("d"+l.Name, y.m.Rows, y.cols)
			default:
				done[y.m] = true
				var beside []int
				for j, other := range n.y {
					if other.m == y.m && n.alias(j) < 0 {
						beside = append(beside, j)
					}
				}
				slices.SortFunc(beside, func(a, b int) int { return n.y[a].col - n.y[b].col })
				n.sideBySide(n.dy, beside, "d")
			}
		}
	}
}

// alias returns the layer whose gradient layer k shares, or -1.
func (n *arrangement) alias(k int) int {
	l, out := n.Layers[k], n.OutOf(k)
	if l.Input != graph.Hidden || l.Activation != graph.Linear || l.Given != "" || n.y[k].lead > 0 || len(out) != 1 {
		return -1
	}
	c := n.Connections[out[0]]
	if c.Weight != graph.Identity || n.Layers[c.To].Aggregate != graph.Sum {
		return -1
	}
	return c.To
}

// view returns the weights of connection c in m, the matrix of their parameter; empty if m is nil.
func (n *arrangement) view(m *schedule.Matrix, c graph.Connection) schedule.View {
	from, size := n.Layers[c.From], n.Layers[c.To].Size
	switch {
	case m == nil:
		return schedule.View{}
	case c.Weight == graph.Diagonal || from.Input == graph.Symbols:
		return m.All().Columns(c.Param.Offset, size)
	}
	return m.Band(c.Param.Offset, size)
}

func (n *arrangement) gradient(c graph.Connection) schedule.View {
	if !n.size.Train {
		return schedule.View{}
	}
	return n.view(n.Gradient(c.Param.Param), c)
}

// adjoins reports whether q's columns follow p's, or neither has a matrix.
func (p place) adjoins(q place) bool {
	return p.m == q.m && p.lead == q.lead && (p.m == nil || p.col+p.cols == q.col)
}
