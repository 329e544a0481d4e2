package scc

import (
	"cmp"
	"fmt"
	"slices"

	"rnnbench/rnn/graph"
	"rnnbench/rnn/schedule"
)

// A product is one or more full connections from one layer, whose target layers and weights lie side
// by side.
type product struct {
	from, delay int
	to          []int
	inside      bool // within one component
	table       bool // the layer holds symbols: the product is a look-up
	weights     schedule.View
	grad        schedule.View // empty where not training
	forward     schedule.View // weights as the right operand, maybe packed
	backward    schedule.View // the same for the backward pass
	out, dout   place         // of all target layers
	packs       []schedule.Op
}

// A bias is a run of layers whose biases one operation adds.
type bias struct {
	to    []int
	out   place
	row   schedule.View // the sum of each layer's biases
	after int           // the look-up that must come first, since it cannot add; -1: none
}

// findProducts joins full connections into as few products as possible.
func (n *arrangement) findProducts() {
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

// join makes q a part of p, and reports whether they can be one product.
func (p *product) join(q product) bool {
	if p.from != q.from || p.delay != q.delay || p.inside != q.inside || !p.out.adjoins(q.out) || !p.dout.adjoins(q.dout) ||
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

// findBiases joins the biases of layers that lie side by side.
func (n *arrangement) findBiases() {
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
		if i := len(n.biases) - 1; i >= 0 && n.biases[i].after == after && n.biases[i].out.adjoins(n.y[k]) {
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

// pack packs the weights of products in each pass (when is 1) or once before all passes (2).
func (n *arrangement) pack(when int) {
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
