package onnx

import "math"

// An attribute of a node, or of a function with its default.
type attribute struct {
	name   string
	raw    []byte
	graphs [][]byte
}

func (m *Model) parseAttribute(raw []byte) (attribute, error) {
	a := attribute{raw: raw}
	for f, err := range m.fields(raw) {
		switch {
		case err != nil:
			return a, err
		case f.tag == attributeName:
			a.name = f.text()
		case f.tag == attributeGraph || f.tag == attributeGraphs:
			a.graphs = append(a.graphs, f.bytes)
		}
	}
	return a, nil
}

// An Attribute is the value of an attribute. Fields of other types than its own are zero.
type Attribute struct {
	Float   float32
	Int     int64
	String  string
	Floats  []float32
	Ints    []int64
	Strings []string

	tensor []byte
}

// Attribute returns the attribute of that name; nil: the node has none. In the body of a function it
// may be one of the call.
func (n *Node) Attribute(name string) (*Attribute, error) {
	for _, a := range n.attributes {
		if a.name == name {
			return n.scope.attribute(a)
		}
	}
	return nil, nil
}

// Integer is the integer of an attribute, or what it is where it is left out.
func (n *Node) Integer(name string, usual int64) (int64, error) {
	a, err := n.Attribute(name)
	if a == nil {
		return usual, err
	}
	return a.Int, err
}

// attribute reads an attribute of a node of s, or what it refers to.
func (s *scope) attribute(of attribute) (*Attribute, error) {
	a := &Attribute{}
	for f, err := range s.model.fields(of.raw) {
		if err != nil {
			return nil, err
		}
		switch f.tag {
		case attributeFloat:
			a.Float = math.Float32frombits(uint32(f.bits))
		case attributeInt:
			a.Int = int64(f.bits)
		case attributeString:
			a.String = f.text()
		case attributeTensor:
			a.tensor = f.bytes
		case attributeFloats, attributeFloat1:
			if err = s.model.visit(len(f.bytes)); err == nil {
				a.Floats, err = f.floats(a.Floats)
			}
		case attributeInts, attributeInt1:
			if err = s.model.visit(len(f.bytes)); err == nil {
				a.Ints, err = f.varints(a.Ints, math.MaxInt)
			}
		case attributeStrings:
			a.Strings = append(a.Strings, f.text())
		case attributeRef:
			if len(f.bytes) > 0 {
				return s.referred(f.text())
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return a, nil
}

// referred is the attribute of the call in whose function s is, or its default; nil: neither is there.
func (s *scope) referred(name string) (*Attribute, error) {
	for s.call == nil {
		if s = s.outer; s == nil {
			return nil, nil
		}
	}
	if a, err := s.call.Attribute(name); a != nil || err != nil {
		return a, err
	}
	for _, a := range s.function.defaults {
		if a.name == name {
			return s.call.scope.attribute(a)
		}
	}
	return nil, nil
}
