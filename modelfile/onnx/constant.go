package onnx

import (
	"errors"
	"fmt"
	"slices"

	"rnnbench/internal/safe"
)

// A constant is what is known of a name: the tensor, or why there is none.
type constant struct {
	tensor *Tensor
	err    error
	busy   bool // being computed
}

// Varies is the error of a value that another run of the model may have otherwise, and says whence it is.
type Varies string

func (v Varies) Error() string { return string(v) }

// Constant returns the value of input i, which must be the same at each run of the model. Equal
// pointers are equal constants. The error says why there is none; it is about the input.
func (n *Node) Constant(i int) (*Tensor, error) {
	return n.constant(i, 0)
}

func (n *Node) constant(i, chain int) (*Tensor, error) {
	name := n.input(i)
	if name == "" {
		return nil, errors.New("it is missing")
	}
	s, name, v, ok := n.scope.find(name)
	if !ok {
		return nil, fmt.Errorf("the model does not say what %q is", short(n.input(i)))
	}
	c := s.constants[name]
	if c == nil {
		c = &constant{busy: true}
		s.constants[name] = c
		if c.tensor, c.err = s.compute(name, v, chain); c.err != nil {
			c.tensor = nil
		}
		c.busy = false
	} else if c.busy {
		return nil, errors.New("it is computed from itself")
	}
	return c.tensor, c.err
}

// compute is the tensor that v is, which a node may make under that name; chain counts the nodes that
// need it.
func (s *scope) compute(name string, v value, chain int) (*Tensor, error) {
	switch v.origin {
	case initializer:
		return s.model.decode(v.raw)
	case sparse:
		return nil, errors.New("it is sparse")
	case input:
		return nil, Varies("it is an input of the graph")
	}
	if chain > mostChain {
		return nil, Varies(fmt.Sprintf("it is computed by more than %d nodes, one after the other", mostChain))
	}
	n, err := s.model.parseNode(v.raw, s)
	if err != nil {
		return nil, err
	}
	compute := fold(n.Operator)
	if compute == nil || n.Domain != "" || s.model.functions[identity{n.Domain, n.Operator, n.overload}] != nil {
		return nil, Varies("it is computed by the operator " + short(n.Operator))
	}
	return compute(folding{n, slices.Index(n.outputs, name), chain})
}

// Shape returns the sizes of input i as far as the file gives them: -1 is one that it does not. nil:
// none.
func (n *Node) Shape(i int) []int {
	s, name, v, ok := n.scope.find(n.input(i))
	if !ok {
		return nil
	}
	if v.origin == initializer {
		h, err := s.model.parseHeader(v.raw)
		if err != nil {
			return nil
		}
		dims, _, _ := sizes(h.dims)
		return dims
	}
	if dims := s.model.declared(s.types[name]); dims != nil {
		return dims
	}
	if v.origin == made {
		if t, err := n.Constant(i); err == nil {
			return t.Dims
		}
	}
	return nil
}

// declared reads the sizes of a type; nil: it has none.
func (m *Model) declared(kind []byte) []int {
	tensor, err := m.first(kind, typeTensor)
	if err != nil {
		return nil
	}
	shape, err := m.first(tensor, typeShape)
	if err != nil {
		return nil
	}
	var dims []int
	for f, err := range m.fields(shape) {
		if err != nil || len(dims) > mostRank {
			return nil
		}
		if f.tag != shapeDim {
			continue
		}
		size := -1
		for d, err := range m.fields(f.bytes) {
			if err == nil && d.tag == dimValue && d.bits > 0 && d.bits <= 1<<30 {
				size = int(d.bits)
			}
		}
		dims = append(dims, size)
	}
	return dims
}

// Zero reports whether input i is 0 whatever its sizes, which may be known at run time alone.
func (n *Node) Zero(i int) bool { return n.zero(i, 0) }

func (n *Node) zero(i, chain int) bool {
	if t, err := n.Constant(i); err == nil {
		return n.scope.model.zero(t)
	}
	s, _, v, ok := n.scope.find(n.input(i))
	if !ok || v.origin != made || chain > mostChain {
		return false
	}
	from, err := s.model.parseNode(v.raw, s)
	if err != nil || from.Domain != "" {
		return false
	}
	switch from.Operator {
	case "ConstantOfShape":
		a, err := from.Attribute("value")
		if err != nil || a == nil || a.tensor == nil {
			return err == nil
		}
		t, err := s.model.decode(a.tensor)
		return err == nil && s.model.zero(t)
	case "Identity", "Cast", "Expand", "Tile", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather":
		return from.zero(0, chain+1)
	}
	return false
}

// zero reports whether all values of t are 0.
func (m *Model) zero(t *Tensor) bool {
	return m.visit(len(t.Values)) == nil && !slices.ContainsFunc(t.Values, func(v float32) bool { return v != 0 })
}

// short is text of the file, so that it fits into a sentence.
func short(text string) string {
	const most = 60
	if len(text) > most {
		text = text[:most] + "…"
	}
	return safe.Text(text)
}
