package onnx

import (
	"fmt"
	"strings"
)

// A Node is an operator at its place in a model. The body of a function is at a place of its own for
// each call.
type Node struct {
	Name             string // "": it has none
	Operator, Domain string // Domain "" is ONNX's own

	inputs     []string
	outputs    []string
	attributes []attribute
	overload   string

	scope *scope
	place *place
}

// A place is the way to a node: the nodes in whose bodies it stands.
type place struct {
	outer *place
	label string
}

// inside is a place in p, which may be nil.
func (p *place) inside(label string) *place {
	const most = 200
	if len(label) > most {
		label = "…" + label[len(label)-most:]
	}
	return &place{p, label}
}

// Path names the node and those in whose bodies it stands, as in If_0/then_branch/LSTM_1. A node
// without a name has its operator and its number among the operators of its graph.
func (n *Node) Path() string {
	var labels []string
	for p := n.place; p != nil; p = p.outer {
		labels = append([]string{p.label}, labels...)
	}
	return strings.Join(labels, "/")
}

// Walk visits all nodes, those in bodies and functions before the node that has them.
func (m *Model) Walk(visit func(*Node) error) error {
	s, nodes, err := m.open(m.graph, nil)
	if err != nil {
		return err
	}
	return m.walk(s, nodes, nil, 0, visit)
}

// walk visits the nodes of a graph or a function at the place of its node.
func (m *Model) walk(s *scope, nodes [][]byte, at *place, depth int, visit func(*Node) error) error {
	if depth > mostDepth {
		return fmt.Errorf("bodies and functions stand more than %d deep within each other", mostDepth)
	}
	counts := map[string]int{}
	for _, raw := range nodes {
		n, err := m.parseNode(raw, s)
		if err != nil {
			return err
		}
		label := n.Name
		if label == "" {
			label = fmt.Sprintf("%s_%d", n.Operator, counts[n.Operator])
		}
		n.place = at.inside(label)
		counts[n.Operator]++
		if fn := m.functions[identity{n.Domain, n.Operator, n.overload}]; fn != nil {
			inner, nodes, err := m.enter(fn, n)
			if err == nil {
				err = m.walk(inner, nodes, n.place, depth+1, visit)
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := m.bodies(n, depth, visit); err != nil {
			return err
		}
		if err := visit(n); err != nil {
			return err
		}
	}
	return nil
}

// bodies visits the nodes of the graphs that are attributes of n.
func (m *Model) bodies(n *Node, depth int, visit func(*Node) error) error {
	for _, a := range n.attributes {
		for i, graph := range a.graphs {
			label := a.name
			if i > 0 {
				label = fmt.Sprintf("%s_%d", a.name, i)
			}
			s, nodes, err := m.open(graph, n.scope)
			if err != nil {
				return err
			}
			if err := m.walk(s, nodes, n.place.inside(label), depth+1, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseNode reads a node of a scope.
func (m *Model) parseNode(raw []byte, s *scope) (*Node, error) {
	n := &Node{scope: s}
	for f, err := range m.fields(raw) {
		if err != nil {
			return nil, err
		}
		switch f.tag {
		case nodeInput:
			n.inputs = append(n.inputs, f.text())
		case nodeOutput:
			n.outputs = append(n.outputs, f.text())
		case nodeName:
			n.Name = f.text()
		case nodeOperator:
			n.Operator = f.text()
		case nodeAttribute:
			a, err := m.parseAttribute(f.bytes)
			if err != nil {
				return nil, err
			}
			n.attributes = append(n.attributes, a)
		case nodeDomain:
			n.Domain = domain(f.text())
		case nodeOverload:
			n.overload = f.text()
		}
	}
	return n, nil
}

// input names input i; "": it is left out.
func (n *Node) input(i int) string {
	if i < 0 || i >= len(n.inputs) {
		return ""
	}
	return n.inputs[i]
}

// Has reports whether input i is there. An argument that a call of a function leaves out is not.
func (n *Node) Has(i int) bool {
	_, name, _, _ := n.scope.find(n.input(i))
	return name != ""
}

// As is n as if it were ONNX's own operator of that name.
func (n *Node) As(operator string) *Node {
	other := *n
	other.Operator, other.Domain = operator, ""
	return &other
}
