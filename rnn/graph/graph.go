// Package graph describes the generalized recurrent networks of Hwang and Sung
// (2015): layers are nodes and connections are edges, some of them delayed.
//
// It finds the strongly connected components of a graph, which must run frame
// after frame. It also finds the order in which everything else can run over all
// frames at once. It computes a network by the paper's equations in double
// precision; devices are checked against that answer.
//
// Frames are time steps; batch is the paper's streams. The package knows no
// schedule and no device.
//
// Reference: Hwang, Sung. Single stream parallelization of generalized LSTM-like
// RNNs on a GPU. ICASSP 2015. arXiv:1503.02852.
package graph

import (
	"fmt"
	"slices"

	"rnnbench/rnn/cell"
)

// A Graph is a network: layers and the connections between them (2.1).
type Graph struct {
	Name        string
	Layers      []Layer
	Connections []Connection

	into, outOf [][]int // by layer, once Index has run
}

// A Layer is a node.
type Layer struct {
	Name       string
	Size       int // units; symbols of a Symbols layer
	Input      Input
	Aggregate  Aggregate
	Activation Activation
	Bias       []Slot // vectors added to a sum; usually none or one

	// Given names the data that a layer takes: an input's values, a softmax's classes, and for any
	// other layer the gradient of its activation; "": none.
	Given string
	// Initial names the activations before the first frame; "": nothing reads them.
	Initial string
}

// An Input says what a layer without connections into it holds.
type Input uint8

// The inputs.
const (
	Hidden  Input = iota // no input layer
	Dense                // Size values a frame
	Symbols              // one symbol of Size a frame: a vector with a single one in it
)

// An Aggregate is how a layer combines its incoming vectors into one: g of (5).
type Aggregate uint8

// The aggregates.
const (
	Sum     Aggregate = iota // additive layer (2)
	Product                  // multiplicative layer (4)
	Max                      // the largest of each element; among equals the later connection counts
)

// Aggregates lists the aggregates by name.
func Aggregates() []string { return []string{"sum", "product", "max"} }

func (a Aggregate) String() string { return Aggregates()[a] }

// An Activation is f of (3).
type Activation uint8

// The activations. Softmax belongs to output layers, with the cross-entropy of
// the given classes as their error.
const (
	Linear Activation = iota
	Sigmoid
	Tanh
	ReLU
	OneMinus // 1 - s
	Neg      // -s
	Softmax
)

var activations = [...]struct {
	name     string
	op, grad cell.Op
}{
	Linear:   {"linear", cell.Copy, cell.Copy},
	Sigmoid:  {"sigmoid", cell.Sigmoid, cell.SigmoidGrad},
	Tanh:     {"tanh", cell.Tanh, cell.TanhGrad},
	ReLU:     {"relu", cell.ReLU, cell.ReLUGrad},
	OneMinus: {"oneminus", cell.OneMinus, cell.Neg},
	Neg:      {"neg", cell.Neg, cell.Neg},
	Softmax:  {"softmax", cell.Copy, cell.Copy},
}

// Activations lists the activations by name.
func Activations() []string {
	var names []string
	for _, a := range activations {
		names = append(names, a.name)
	}
	return names
}

func (a Activation) String() string { return activations[a].name }

// Op is the point-wise operation of a, and Grad that of its gradient, which
// takes the gradient of the activation and the activation.
func (a Activation) Op() cell.Op   { return activations[a].op }
func (a Activation) Grad() cell.Op { return activations[a].grad }

// A Weight is what a connection multiplies by: W of (1).
type Weight uint8

// The weights.
const (
	Full     Weight = iota // a matrix
	Identity               // nothing
	Diagonal               // a vector, element by element: a peephole
)

// Weights lists the weights by name.
func Weights() []string { return []string{"full", "identity", "diagonal"} }

func (w Weight) String() string { return Weights()[w] }

// A Connection is an edge: it brings the activation of layer From, Delay frames
// ago, to layer To.
type Connection struct {
	From, To int // layers
	Weight   Weight
	Delay    int // frames
	Param    Slot
}

// A Slot is where a connection's weights or a bias lie in a parameter: rows from Offset of a matrix
// Size(To) × Size(From), columns where From is Symbols, or elements of a vector. Connections that
// share a parameter can be one product.
type Slot struct {
	Param  string
	Offset int
}

// A Param is a matrix of weights; vectors are rows.
type Param struct {
	Name       string
	Rows, Cols int
}

// Params lists the parameters in order of appearance.
func (g *Graph) Params() []Param {
	var list []Param
	grow := func(name string, rows, cols int) {
		i := slices.IndexFunc(list, func(p Param) bool { return p.Name == name })
		if i < 0 {
			list = append(list, Param{name, rows, cols})
			return
		}
		list[i].Rows, list[i].Cols = max(list[i].Rows, rows), max(list[i].Cols, cols)
	}
	for _, c := range g.Connections {
		from, end := g.Layers[c.From], c.Param.Offset+g.Layers[c.To].Size
		switch {
		case c.Weight == Diagonal:
			grow(c.Param.Param, 1, end)
		case c.Weight == Full && from.Input == Symbols:
			grow(c.Param.Param, from.Size, end)
		case c.Weight == Full:
			grow(c.Param.Param, end, from.Size)
		}
	}
	for _, l := range g.Layers {
		for _, b := range l.Bias {
			grow(b.Param, 1, b.Offset+l.Size)
		}
	}
	return list
}

// Into and OutOf list the connections that end and begin at layer k.
func (g *Graph) Into(k int) []int {
	if g.into != nil {
		return g.into[k]
	}
	into, _ := g.ends()
	return into[k]
}

func (g *Graph) OutOf(k int) []int {
	if g.outOf != nil {
		return g.outOf[k]
	}
	_, outOf := g.ends()
	return outOf[k]
}

// ends lists, for each layer, the connections that end and that begin there.
func (g *Graph) ends() (into, outOf [][]int) {
	into, outOf = make([][]int, len(g.Layers)), make([][]int, len(g.Layers))
	for m, c := range g.Connections {
		into[c.To], outOf[c.From] = append(into[c.To], m), append(outOf[c.From], m)
	}
	return into, outOf
}

// Index stores the results of Into and OutOf. No layer or connection may be added or changed after
// it.
func (g *Graph) Index() { g.into, g.outOf = g.ends() }

// Delay is the longest delay of the connections out of layer k: the number of its frames that must
// be known before the first.
func (g *Graph) Delay(k int) int {
	d := 0
	for _, m := range g.OutOf(k) {
		d = max(d, g.Connections[m].Delay)
	}
	return d
}

// Check reports the first error in g, in one sentence that names the layers.
func (g *Graph) Check() error {
	seen := map[string]bool{}
	inputs := 0
	for k, l := range g.Layers {
		switch {
		case l.Name == "":
			return fmt.Errorf("graph: layer %d has no name", k+1)
		case seen[l.Name]:
			return fmt.Errorf("graph: two layers are called %q", l.Name)
		case l.Size < 1:
			return fmt.Errorf("graph: layer %q has %d units: it needs at least 1", l.Name, l.Size)
		case l.Size > maxUnits:
			return fmt.Errorf("graph: layer %q has %d units: use at most %d", l.Name, l.Size, maxUnits)
		}
		seen[l.Name] = true
		into, outOf := g.Into(k), g.OutOf(k)
		if l.Input != Hidden {
			inputs++
			switch {
			case len(into) > 0:
				return fmt.Errorf("graph: layer %q is an input, but %q connects to it", l.Name, g.Layers[g.Connections[into[0]].From].Name)
			case len(outOf) == 0:
				return fmt.Errorf("graph: input %q has no connection: connect it to a layer", l.Name)
			case len(l.Bias) > 0:
				return fmt.Errorf("graph: input %q cannot have a bias", l.Name)
			}
			continue
		}
		switch {
		case len(into) == 0:
			return fmt.Errorf("graph: nothing connects to layer %q: connect it or make it an input", l.Name)
		case len(l.Bias) > 0 && l.Aggregate != Sum:
			return fmt.Errorf("graph: layer %q is a %v and cannot have a bias: only sums can", l.Name, l.Aggregate)
		case l.Activation == Softmax && len(outOf) > 0:
			return fmt.Errorf("graph: layer %q is a softmax, so it must be an output, but it connects to %q", l.Name, g.Layers[g.Connections[outOf[0]].To].Name)
		case l.Activation == Softmax && l.Aggregate != Sum:
			return fmt.Errorf("graph: layer %q is a softmax of a %v: only one of a sum is supported", l.Name, l.Aggregate)
		}
	}
	if inputs == 0 {
		return fmt.Errorf("graph: the network has no input: mark a layer with input = \"dense\" or \"symbols\"")
	}
	for _, c := range g.Connections {
		from, to := g.Layers[c.From], g.Layers[c.To]
		switch {
		case c.Delay < 0:
			return fmt.Errorf("graph: the connection %s → %s has a delay of %d: it must not be negative", from.Name, to.Name, c.Delay)
		case c.Weight != Full && from.Input == Symbols:
			return fmt.Errorf("graph: %q holds symbols, so its connection to %q must have full weights, not %v", from.Name, to.Name, c.Weight)
		case c.Delay > 0 && from.Input == Symbols:
			return fmt.Errorf("graph: %q holds symbols, so its connection to %q cannot be delayed", from.Name, to.Name)
		case c.Weight != Full && from.Size != to.Size:
			return fmt.Errorf("graph: %q has %d units and %q has %d: a connection with %v weights needs equal numbers", from.Name, from.Size, to.Name, to.Size, c.Weight)
		}
	}
	if _, err := g.Analyze(); err != nil {
		return err
	}
	if !slices.ContainsFunc(g.Layers, func(l Layer) bool { return l.Input == Hidden && l.Given != "" }) {
		return fmt.Errorf("graph: the network has no output: add a layer that connects to no other")
	}
	return nil
}

// maxUnits bounds the units of a layer: symbols and classes travel as float32,
// which holds integers exactly up to here.
const maxUnits = 1 << 24
