package scc

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/graph"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A memory is where a network's named matrices lie.
type memory interface {
	// Input is the matrix of a parameter, of what is given, or of a layer with
	// initial activations: these in front, its own after them.
	Input(name string) *schedule.Matrix
	// Gradient is the matrix of the gradient of what Input names, nil if nobody
	// asks for it.
	Gradient(name string) *schedule.Matrix
	// Classes are the probabilities of a softmax layer and its losses. Where
	// training, the gradient of the logits takes the place of the probabilities.
	Classes(l graph.Layer) (prob, loss *schedule.Matrix)
}

// A network is a graph on its way to a schedule. Frames are steps, those of the
// history first.
type network struct {
	*schedule.Builder
	memory
	*graph.Graph
	size  graph.Size
	order *graph.Analysis
	intra bool
	fused bool
	ahead bool          // operations are run ahead of all runs
	maps  schedule.Maps // that wait for more

	y, dy    []place // per layer: activations and their gradients, which become those of its sum
	products []product
	biases   []bias
	temps    []*schedule.Matrix

	held    []bool                 // per layer: its sum at the frames at hand holds something
	reached []*marks               // per layer: the frames with a gradient
	begun   map[schedule.View]bool // weight gradients that hold something
}

// A place is where a layer's vectors lie, a row per frame and sequence. The
// first row belongs to frame -lead.
type place struct {
	m         *schedule.Matrix // nil: nowhere
	col, cols int
	lead      int
}

// A product is one or more full connections from one layer whose ends and
// weights lie side by side.
type product struct {
	from, delay int
	to          []int
	inside      bool // of a component
	table       bool // the layer holds symbols: the product is a look-up
	weights     schedule.View
	grad        schedule.View // empty where not training
	forward     schedule.View // weights as the right operand, packed where they are
	backward    schedule.View //
	out, dout   place         // of all ends
	packs       []schedule.Op
}

// A bias is a run of layers whose biases are added by one operation.
type bias struct {
	to    []int
	out   place
	row   schedule.View // the sum of each layer's biases
	after int           // the look-up that must come first, since it cannot add; -1: none
}

// marks says which frames from -lead on hold a gradient.
type marks struct {
	lead int
	at   []bool
}

// lay appends the work of g to b.
func lay(b *schedule.Builder, mem memory, g *graph.Graph, size graph.Size, k knob.Params) (*network, error) {
	if err := b.Room(size.Frames()); err != nil {
		return nil, err
	}
	g = plain(g)
	order, err := g.Analyze()
	if err != nil {
		return nil, err
	}
	n := &network{Builder: b, memory: mem, Graph: g, size: size, order: order, intra: k["intra"] == 1, fused: k["fused"] == 1, begun: map[schedule.View]bool{}}
	n.place()
	if size.Train {
		n.placeGradients()
	}
	n.findProducts()
	n.findBiases()
	n.pack(k["transposed"])
	if size.History > 0 { // the minibatch before
		n.ahead = true
		n.begin()
		n.forward(0, size.History)
		n.flush()
		n.ahead = false
	}
	n.begin()
	n.forward(size.History, size.Frames())
	if size.Train {
		n.backward()
	}
	n.flush()
	return n, nil
}

// plain gives each connection with weights into a product or a maximum a layer
// of its own, so that those have vectors alone to deal with.
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

// do appends op, a map to those that run in one go, of the same step or of several.
func (n *network) do(op schedule.Op) {
	const most = 32 // of a kernel
	m, ok := op.(schedule.Map)
	if ok = ok && n.fused; ok && len(n.maps.Steps) < most && n.maps.Append(m) {
		return
	}
	n.flush()
	if !ok || !n.maps.Append(m) {
		n.emit(op)
	}
}

// flush appends the maps that wait for more.
func (n *network) flush() {
	switch s := n.maps.Steps; len(s) {
	case 0:
	case 1:
		n.emit(s[0])
	default:
		n.emit(schedule.Maps{Steps: slices.Clone(s)})
	}
	n.maps.Steps = n.maps.Steps[:0]
}

func (n *network) emit(op schedule.Op) {
	if n.ahead {
		n.Prepare(op)
	} else {
		n.Do(0, op)
	}
}

// rows views c frames from t on.
func (n *network) rows(p place, t, c int) schedule.View {
	return p.m.Band((t+p.lead)*n.size.Batch, c*n.size.Batch).Columns(p.col, p.cols)
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

// place lays the activations out. Layers with a product from the same layer lie
// side by side in the order of their weights, so that one operation serves all
// of them.
func (n *network) place() {
	n.y = make([]place, len(n.Layers))
	wide := map[string][]int{}
	var groups []string
	rows := n.size.Frames() * n.size.Batch
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

// full is the first full connection into layer k; -1: none.
func (n *network) full(k int) int {
	for _, m := range n.Into(k) {
		if n.Connections[m].Weight == graph.Full {
			return m
		}
	}
	return -1
}

// sideBySide gives layers columns of a new matrix.
func (n *network) sideBySide(places []place, layers []int, prefix string) {
	name, cols := prefix, 0
	for _, k := range layers {
		name += n.Layers[k].Name + " "
		cols += n.Layers[k].Size
	}
	m := n.Matrix(name[:len(name)-1], n.size.Frames()*n.size.Batch, cols)
	cols = 0
	for _, k := range layers {
		places[k] = place{m, cols, n.Layers[k].Size, 0}
		cols += n.Layers[k].Size
	}
}

// placeGradients lays the gradients out as the activations are. The gradient of
// a layer that does nothing but be added to another is the other's.
func (n *network) placeGradients() {
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

// alias is the layer whose gradient is also that of k; -1: none.
func (n *network) alias(k int) int {
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

// view is where a slot's weights lie in m, the matrix of its parameter, for a
// connection between layers of these sizes.
func (n *network) view(m *schedule.Matrix, c graph.Connection) schedule.View {
	from, size := n.Layers[c.From], n.Layers[c.To].Size
	switch {
	case m == nil:
		return schedule.View{}
	case c.Weight == graph.Diagonal || from.Input == graph.Symbols:
		return m.All().Columns(c.Param.Offset, size)
	}
	return m.Band(c.Param.Offset, size)
}

func (n *network) gradient(c graph.Connection) schedule.View {
	if !n.size.Train {
		return schedule.View{}
	}
	return n.view(n.Gradient(c.Param.Param), c)
}

// findProducts joins full connections to as few products as possible.
func (n *network) findProducts() {
	for _, c := range n.Connections {
		if c.Weight != graph.Full {
			continue
		}
		p := product{
			from: c.From, delay: c.Delay, to: []int{c.To}, inside: n.order.Inside(c), table: n.Layers[c.From].Input == graph.Symbols,
			weights: n.view(n.Input(c.Param.Param), c), grad: n.gradient(c), out: n.y[c.To],
		}
		if n.size.Train {
			p.dout = n.dy[c.To]
		}
		n.products = append(n.products, p)
	}
	slices.SortStableFunc(n.products, func(a, b product) int {
		inside := func(p product) int { return map[bool]int{true: 1}[p.inside] }
		return cmp.Or(a.from-b.from, a.delay-b.delay, inside(a)-inside(b), a.out.m.ID-b.out.m.ID, a.out.col-b.out.col)
	})
	var joined []product
	for _, p := range n.products {
		if i := len(joined) - 1; i < 0 || !joined[i].join(p) {
			joined = append(joined, p)
		}
	}
	n.products = joined
	for i := range n.products {
		p := &n.products[i]
		p.forward, p.backward = p.weights, p.weights
	}
}

// join makes q a part of p if they can be one product.
func (p *product) join(q product) bool {
	if p.from != q.from || p.delay != q.delay || p.inside != q.inside || !p.out.beside(q.out) || !p.dout.beside(q.dout) ||
		p.weights.M != q.weights.M {
		return false
	}
	grow := func(v *schedule.View, w schedule.View) { v.Rows += w.Rows }
	if p.table {
		if p.weights.Col+p.weights.Cols != q.weights.Col {
			return false
		}
		grow = func(v *schedule.View, w schedule.View) { v.Cols += w.Cols }
	} else if p.weights.Row+p.weights.Rows != q.weights.Row {
		return false
	}
	grow(&p.weights, q.weights)
	grow(&p.grad, q.grad)
	p.out.cols += q.out.cols
	p.dout.cols += q.dout.cols
	p.to = append(p.to, q.to...)
	return true
}

// beside reports whether q's columns follow p's, or neither is anywhere.
func (p place) beside(q place) bool {
	return p.m == q.m && p.lead == q.lead && (p.m == nil || p.col+p.cols == q.col)
}

// findBiases joins the biases of layers that lie side by side.
func (n *network) findBiases() {
	var layers []int
	for k, l := range n.Layers {
		if len(l.Bias) > 0 {
			layers = append(layers, k)
		}
	}
	slices.SortFunc(layers, func(a, b int) int {
		return cmp.Or(n.y[a].m.ID-n.y[b].m.ID, n.y[a].col-n.y[b].col)
	})
	for _, k := range layers {
		after := slices.IndexFunc(n.products, func(p product) bool { return p.table && slices.Contains(p.to, k) })
		if i := len(n.biases) - 1; i >= 0 && n.biases[i].after == after && n.biases[i].out.beside(n.y[k]) {
			n.biases[i].to = append(n.biases[i].to, k)
			n.biases[i].out.cols += n.y[k].cols
			continue
		}
		n.biases = append(n.biases, bias{to: []int{k}, out: n.y[k], after: after})
	}
	for i := range n.biases {
		b := &n.biases[i]
		b.row = n.Matrix(fmt.Sprintf("bias%d", i), 1, b.out.cols).All()
	}
}

// pack has the weights of products packed in each pass (1) or ahead (2).
func (n *network) pack(when int) {
	if when == 0 {
		return
	}
	for i := range n.products {
		p := &n.products[i]
		if p.table {
			continue
		}
		w := p.weights
		p.forward = n.Packed(fmt.Sprintf("%v%s", w, "ᵀ"), w.Cols, w.Rows).All()
		p.packs = append(p.packs, schedule.Pack{Src: w, Dst: p.forward, Trans: true})
		if n.size.Train && n.dy[p.from].m != nil {
			p.backward = n.Packed(w.String(), w.Rows, w.Cols).All()
			p.packs = append(p.packs, schedule.Pack{Src: w, Dst: p.backward})
		}
		if when == 2 {
			for _, op := range p.packs {
				n.Prepare(op)
			}
			p.packs = nil
		}
	}
}

// begin does what a pass needs once: packed weights and the sums of biases.
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
