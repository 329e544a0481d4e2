package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// A Component is a node of the acyclic graph that grouping makes (3.1): a single
// layer, or a recurrent node.
type Component struct {
	Layers    []int // in the order of activation within a frame
	Recurrent bool  // several layers, or one that connects to itself: frames must follow each other
	Level     int   // connections on the longest path from an input
}

// An Analysis is the order in which a graph runs.
type Analysis struct {
	Components []Component // in the order of activation
	Of         []int       // per layer, its component
}

// Inside reports whether both ends of c are in one component.
func (a *Analysis) Inside(c Connection) bool { return a.Of[c.From] == a.Of[c.To] }

// Analyze finds the strongly connected components by Tarjan's algorithm, and their topological
// order. Within each component it orders the layers, where delayed connections do not count. Of
// layers that could go first it takes those declared first. A loop without a delay is an error that
// names its layers.
func (g *Graph) Analyze() (*Analysis, error) {
	for _, c := range g.Connections {
		if c.From == c.To && c.Delay == 0 {
			return nil, fmt.Errorf("graph: layer %q connects to itself without a delay", g.Layers[c.From].Name)
		}
	}
	layers := make([]int, len(g.Layers))
	for k := range layers {
		layers[k] = k
	}
	all := g.digraph(layers, func(Connection) bool { return true })
	a := &Analysis{Of: make([]int, len(g.Layers))}
	group := make([]int, len(g.Layers)) // per layer, the first of its component
	members := map[int][]int{}
	for _, nodes := range topo.TarjanSCC(all) {
		var layers []int
		for _, n := range nodes {
			layers = append(layers, int(n.ID()))
		}
		slices.Sort(layers)
		for _, k := range layers {
			group[k] = layers[0]
		}
		members[layers[0]] = layers
	}
	condensed := simple.NewDirectedGraph()
	for first := range members {
		condensed.AddNode(simple.Node(first))
	}
	for _, c := range g.Connections {
		if from, to := group[c.From], group[c.To]; from != to {
			condensed.SetEdge(simple.Edge{F: simple.Node(from), T: simple.Node(to)})
		}
	}
	order, err := topo.SortStabilized(condensed, byID)
	if err != nil {
		return nil, fmt.Errorf("graph: components do not make an acyclic graph: %w", err) // impossible by definition
	}
	for _, n := range order {
		layers, err := g.inner(members[int(n.ID())])
		if err != nil {
			return nil, err
		}
		for _, k := range layers {
			a.Of[k] = len(a.Components)
		}
		a.Components = append(a.Components, Component{Layers: layers, Recurrent: len(layers) > 1})
	}
	into := make([][]int, len(a.Components)) // per component, those that it reads
	for _, c := range g.Connections {
		into[a.Of[c.To]] = append(into[a.Of[c.To]], a.Of[c.From])
	}
	for i := range a.Components { // in order, so that sources are done
		for _, from := range into[i] {
			if from == i {
				a.Components[i].Recurrent = true
			} else {
				a.Components[i].Level = max(a.Components[i].Level, a.Components[from].Level+1)
			}
		}
	}
	return a, nil
}

// inner sorts the layers of a component by the connections without delay.
func (g *Graph) inner(layers []int) ([]int, error) {
	if len(layers) == 1 {
		return layers, nil
	}
	d := g.digraph(layers, func(c Connection) bool { return c.Delay == 0 })
	order, err := topo.SortStabilized(d, byID)
	var loops topo.Unorderable
	if errors.As(err, &loops) {
		return nil, fmt.Errorf("graph: layers %s form a loop without a delay: delay one of these connections", g.loop(d, loops[0][0]))
	}
	if err != nil {
		return nil, fmt.Errorf("graph: %w", err)
	}
	var sorted []int
	for _, n := range order {
		sorted = append(sorted, int(n.ID()))
	}
	return sorted, nil
}

// loop names the layers of one loop in start's component of d, which must have one.
func (g *Graph) loop(d *simple.DirectedGraph, start gonum.Node) string {
	components := topo.TarjanSCC(d)
	i := slices.IndexFunc(components, func(c []gonum.Node) bool { return slices.Contains(c, start) })
	var path []int64
	for at := start.ID(); ; {
		if first := slices.Index(path, at); first >= 0 {
			path = append(path[first:], at)
			break
		}
		path = append(path, at)
		next := int64(-1)
		for _, n := range components[i] {
			if d.HasEdgeFromTo(at, n.ID()) && (next < 0 || n.ID() < next) {
				next = n.ID()
			}
		}
		at = next
	}
	var names []string
	for _, k := range path {
		names = append(names, g.Layers[k].Name)
	}
	return strings.Join(names, " → ")
}

// digraph is a gonum graph of some layers of g: a node for each layer, and an edge for each wanted
// connection between them. Self-loops are left out.
func (g *Graph) digraph(layers []int, wanted func(Connection) bool) *simple.DirectedGraph {
	d := simple.NewDirectedGraph()
	for _, k := range layers {
		d.AddNode(simple.Node(k))
	}
	has := func(k int) bool { return d.Node(int64(k)) != nil }
	for _, c := range g.Connections {
		if c.From != c.To && wanted(c) && has(c.From) && has(c.To) {
			d.SetEdge(simple.Edge{F: simple.Node(c.From), T: simple.Node(c.To)})
		}
	}
	return d
}

func byID(nodes []gonum.Node) {
	slices.SortFunc(nodes, func(a, b gonum.Node) int { return int(a.ID() - b.ID()) })
}
