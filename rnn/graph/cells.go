package graph

import (
	"fmt"
	"slices"
	"strings"

	"rnnbench/rnn/cell"
)

// A Stack is a network of equal recurrent layers with an optional softmax on
// top: what rnn.Problem describes.
type Stack struct {
	Cell                  *cell.Cell
	Layers, Input, Hidden int
	Output                int  // classes; 0: no output layer
	Symbols               bool // the input is one symbol a frame
}

// New makes the graph of s. A recurrent layer becomes one node per sum, product
// and activation of its cell's program, so that every cell has its graph.
// Parameters, inputs and states have the names of rnn.Data.
func New(s Stack) (*Graph, error) {
	if s.Cell.Window > 1 {
		return nil, fmt.Errorf("graph: %v reads %d steps of its input, but the graph keeps no frames before the first", s.Cell, s.Cell.Window)
	}
	g := &Graph{Name: s.Cell.Name}
	in := Layer{Name: "x", Size: s.Input, Input: Dense, Given: "x"}
	if s.Symbols {
		in.Input = Symbols
	}
	g.Layers = append(g.Layers, in)
	top := 0
	for l := range s.Layers {
		b := cellBuilder{graph: g, cell: s.Cell, size: s.Hidden, below: top, depth: l, stacked: s.Layers > 1}
		if err := b.build(); err != nil {
			return nil, err
		}
		top = b.state[0]
	}
	if s.Output == 0 {
		g.Layers[top].Given = "dy"
		g.Index()
		return g, g.Check()
	}
	g.Layers = append(g.Layers, Layer{Name: "out", Size: s.Output, Activation: Softmax, Bias: []Slot{{"bias_out", 0}}, Given: "target"})
	g.Connections = append(g.Connections, Connection{From: top, To: len(g.Layers) - 1, Param: Slot{"weight_out", 0}})
	g.Index()
	return g, g.Check()
}

// A cellBuilder turns one cell's program into layers.
type cellBuilder struct {
	graph   *Graph
	cell    *cell.Cell
	size    int
	below   int // layer that the cell reads
	depth   int
	stacked bool

	values []value
	inner  int         // the value that inner gates multiply
	layer  map[int]int // value → its layer
	state  []int       // layers of the states
}

// A value is one instruction of the program with its operands resolved.
type value struct {
	op   cell.Op
	args []operand
	uses int
	next int // state that it becomes; -1: none
}

// An operand is another value or, where value is negative, a vector from
// outside.
type operand struct {
	value int
	ref   cell.Ref
}

func (b *cellBuilder) build() error {
	b.resolve()
	b.layer = map[int]int{}
	b.state = make([]int, len(b.cell.States))
	// States come first, so that delayed connections have something to name.
	for s, name := range b.cell.States {
		b.state[s] = b.add(Layer{Name: name, Initial: fmt.Sprintf("%s0_l%d", name, b.depth)})
	}
	for i, v := range b.values {
		if v.next >= 0 {
			b.layer[i] = b.state[v.next]
		}
	}
	for i, v := range b.values {
		if v.next >= 0 {
			if err := b.fill(i); err != nil {
				return err
			}
		}
	}
	b.sort()
	return nil
}

// sort puts the cell's layers in the order of their weights, so that gates are in the order of
// package cell. Layers without weights come last.
func (b *cellBuilder) sort() {
	g, start := b.graph, b.state[0]
	into, _ := g.ends()
	rank := func(k int) int {
		for _, m := range into[k] { // the input's weights come first where there are both
			if c := g.Connections[m]; c.Weight == Full {
				if c.From == b.below {
					return c.Param.Offset
				}
				return len(b.cell.Gates)*b.size + c.Param.Offset
			}
		}
		return 2 * len(b.cell.Gates) * b.size
	}
	order := make([]int, len(g.Layers))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order[start:], func(x, y int) int { return rank(x) - rank(y) })
	place, layers := make([]int, len(order)), slices.Clone(g.Layers)
	for to, from := range order {
		place[from], g.Layers[to] = to, layers[from]
	}
	for m := range g.Connections {
		c := &g.Connections[m]
		c.From, c.To = place[c.From], place[c.To]
	}
	for s := range b.state {
		b.state[s] = place[b.state[s]]
	}
}

// Has reports whether a graph can express c: c reads one frame of its input, and needs no operation
// that layers lack.
func Has(c *cell.Cell) bool {
	_, err := New(Stack{Cell: c, Layers: 1, Input: 1, Hidden: 1})
	return err == nil
}

// resolve links the program's instructions, which reuse temporaries.
func (b *cellBuilder) resolve() {
	at := map[cell.Ref]int{}
	for _, in := range b.cell.Forward {
		v := value{op: in.Op, next: -1}
		for _, r := range in.Args() {
			o := operand{value: -1, ref: r}
			if i, ok := at[r]; ok {
				o.value = i
				b.values[i].uses++
			}
			v.args = append(v.args, o)
		}
		switch in.Out.Kind {
		case cell.Next:
			v.next = in.Out.Index
		case cell.Inner:
			b.inner, v.uses = len(b.values), b.cell.Inner+1 // never part of another sum
		}
		at[in.Out] = len(b.values)
		b.values = append(b.values, v)
	}
}

// add appends a layer of the cell under a free name.
func (b *cellBuilder) add(l Layer) int {
	l.Size = b.size
	if b.stacked {
		l.Name += fmt.Sprintf("_l%d", b.depth)
	}
	for base, n := l.Name, 2; slices.ContainsFunc(b.graph.Layers, func(o Layer) bool { return o.Name == l.Name }); n++ {
		l.Name = fmt.Sprintf("%s_%d", base, n)
	}
	b.graph.Layers = append(b.graph.Layers, l)
	return len(b.graph.Layers) - 1
}

func (b *cellBuilder) connect(from, to int, w Weight, delay int, p Slot) {
	b.graph.Connections = append(b.graph.Connections, Connection{from, to, w, delay, p})
}

// layerOf is the layer that computes value i, made on first use.
func (b *cellBuilder) layerOf(i int) (int, error) {
	if k, ok := b.layer[i]; ok {
		return k, nil
	}
	b.layer[i] = b.add(Layer{Name: b.name(i)})
	return b.layer[i], b.fill(i)
}

// fill gives the layer of value i its aggregate, activation and connections.
func (b *cellBuilder) fill(i int) error {
	k, v := b.layer[i], b.values[i]
	switch v.op {
	case cell.Sigmoid, cell.Tanh, cell.ReLU, cell.OneMinus, cell.Copy, cell.Neg:
		b.graph.Layers[k].Activation = activationOf(v.op)
		return b.term(k, v.args[0])
	case cell.Add:
		for _, o := range v.args {
			if err := b.term(k, o); err != nil {
				return err
			}
		}
		return nil
	case cell.Mul:
		if p := slices.IndexFunc(v.args, operand.peephole); p >= 0 {
			return b.diagonal(k, v.args[1-p], v.args[p])
		}
		b.graph.Layers[k].Aggregate = Product
		for _, o := range v.args {
			from, delay, err := b.source(o)
			if err != nil {
				return err
			}
			b.connect(from, k, Identity, delay, Slot{})
		}
		return nil
	}
	return fmt.Errorf("graph: cell %v: no layer computes %v", b.cell, v.op)
}

func activationOf(op cell.Op) Activation {
	for a := Linear; a < Softmax; a++ {
		if a.Op() == op {
			return a
		}
	}
	panic(fmt.Sprintf("graph: %v is not an activation", op))
}

func (o operand) peephole() bool { return o.value < 0 && o.ref.Kind == cell.Peep }

// term adds operand o to the sum that layer k computes: products become
// connections of k, and sums that nobody else reads become part of it.
func (b *cellBuilder) term(k int, o operand) error {
	if o.value < 0 {
		return b.leaf(k, o.ref)
	}
	v := b.values[o.value]
	if v.uses == 1 && v.next < 0 {
		p := slices.IndexFunc(v.args, operand.peephole)
		switch {
		case v.op == cell.Add:
			for _, a := range v.args {
				if err := b.term(k, a); err != nil {
					return err
				}
			}
			return nil
		case v.op == cell.Mul && p >= 0:
			return b.diagonal(k, v.args[1-p], v.args[p])
		}
	}
	from, delay, err := b.source(o)
	if err != nil {
		return err
	}
	b.connect(from, k, Identity, delay, Slot{})
	return nil
}

func (b *cellBuilder) diagonal(k int, from, weights operand) error {
	source, delay, err := b.source(from)
	if err != nil {
		return err
	}
	b.connect(source, k, Diagonal, delay, b.slot("peephole", weights.ref.Index))
	return nil
}

// source is the layer that an operand comes from, and the delay.
func (b *cellBuilder) source(o operand) (k, delay int, err error) {
	switch {
	case o.value >= 0:
		k, err = b.layerOf(o.value)
		return k, 0, err
	case o.ref.Kind == cell.Prev:
		return b.state[o.ref.Index], 1, nil
	}
	k = b.add(Layer{Name: b.leafName(o.ref)})
	return k, 0, b.leaf(k, o.ref)
}

// leaf adds a vector from outside to the sum of layer k.
func (b *cellBuilder) leaf(k int, r cell.Ref) error {
	l := &b.graph.Layers[k]
	switch r.Kind {
	case cell.X:
		b.connect(b.below, k, Full, 0, b.slot("weight_ih", r.Index))
	case cell.R:
		if r.Index >= b.cell.Outer() {
			from, err := b.layerOf(b.inner)
			b.connect(from, k, Full, 0, b.slot("weight_hh", r.Index))
			return err
		}
		b.connect(b.state[b.cell.Through], k, Full, 1, b.slot("weight_hh", r.Index))
	case cell.BX:
		l.Bias = append(l.Bias, b.slot("bias_ih", r.Index))
	case cell.BR:
		l.Bias = append(l.Bias, b.slot("bias_hh", r.Index))
	case cell.Prev:
		b.connect(b.state[r.Index], k, Identity, 1, Slot{})
	default:
		return fmt.Errorf("graph: cell %v: %v cannot be added", b.cell, r)
	}
	return nil
}

// slot is the part of a layer's parameter that belongs to gate or peephole i.
func (b *cellBuilder) slot(param string, i int) Slot {
	return Slot{fmt.Sprintf("%s_l%d", param, b.depth), i * b.size}
}

// name spells value i: a gate by its name, other values by their operands.
func (b *cellBuilder) name(i int) string {
	v := b.values[i]
	x, r := b.gate(operand{value: i}, cell.X), b.gate(operand{value: i}, cell.R)
	switch {
	case x >= 0:
		return b.cell.Gates[x]
	case r >= 0:
		return b.cell.Gates[r] + "_r"
	}
	var parts []string
	for _, o := range v.args {
		switch {
		case o.value < 0:
			parts = append(parts, b.leafName(o.ref))
		case b.values[o.value].next >= 0:
			parts = append(parts, b.cell.States[b.values[o.value].next])
		default:
			parts = append(parts, b.name(o.value))
		}
	}
	switch v.op {
	case cell.Mul:
		for i, part := range parts {
			if strings.ContainsAny(part, "+-") && !strings.HasSuffix(part, ")") {
				parts[i] = "(" + part + ")"
			}
		}
		return parts[0] + "·" + parts[1]
	case cell.Add:
		return parts[0] + "+" + parts[1]
	case cell.OneMinus:
		return "1-" + parts[0]
	}
	return fmt.Sprintf("%v(%s)", v.op, strings.Join(parts, ", "))
}

func (b *cellBuilder) leafName(r cell.Ref) string {
	if r.Kind == cell.Prev {
		return b.cell.States[r.Index] + "'"
	}
	return r.String()
}

// gate is the gate whose product of that kind is part of the sum o; -1: none.
func (b *cellBuilder) gate(o operand, kind cell.Kind) int {
	if o.value < 0 {
		if o.ref.Kind == kind {
			return o.ref.Index
		}
		return -1
	}
	v := b.values[o.value]
	if v.op == cell.Mul || v.next >= 0 {
		return -1
	}
	for _, a := range v.args {
		if a.value >= 0 && b.values[a.value].uses > 1 {
			continue
		}
		if g := b.gate(a, kind); g >= 0 {
			return g
		}
	}
	return -1
}
