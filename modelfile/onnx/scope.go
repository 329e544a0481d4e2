package onnx

// An origin is where the value of a name comes from.
type origin int

const (
	initializer origin = iota
	sparse
	input  // of the graph: given by the model's user, or by the node whose body the graph is
	made   // by a node
	passed // by the call of a function
)

// A value is what a name stands for.
type value struct {
	origin origin
	raw    []byte // the message of the initializer or the node
}

// names says what names stand for in a graph or in the body of a function.
type names struct {
	values map[string]value
	types  map[string][]byte // messages TypeProto of some
}

// A scope is a graph, or a call of a function.
type scope struct {
	*names
	model *Model
	outer *scope // the graph whose names a body sees; nil: none

	function *function // whose body it is; nil: it is a graph
	call     *Node     // of the function

	constants map[string]*constant // that were looked for
}

// open opens the scope of a graph, and returns its nodes.
func (m *Model) open(raw []byte, outer *scope) (*scope, [][]byte, error) {
	names, nodes, err := m.names(raw)
	return &scope{names: names, model: m, outer: outer, constants: map[string]*constant{}}, nodes, err
}

// enter opens the scope of a call of a function.
func (m *Model) enter(fn *function, call *Node) (*scope, [][]byte, error) {
	if fn.names == nil {
		names, nodes, err := m.bodyOf(fn)
		if err != nil {
			return nil, nil, err
		}
		fn.names, fn.nodes = names, nodes
	}
	return &scope{names: fn.names, model: m, function: fn, call: call, constants: map[string]*constant{}}, fn.nodes, nil
}

// names reads what the names of a graph stand for.
func (m *Model) names(raw []byte) (*names, [][]byte, error) {
	out := &names{map[string]value{}, map[string][]byte{}}
	var nodes [][]byte
	for f, err := range m.fields(raw) {
		if err != nil {
			return nil, nil, err
		}
		switch f.tag {
		case graphNode:
			nodes = append(nodes, f.bytes)
			err = m.node(out, f.bytes)
		case graphInitializer:
			err = m.tensor(out, f.bytes, initializer)
		case graphSparse:
			err = m.tensor(out, f.bytes, sparse)
		case graphInput:
			err = m.declare(out, f.bytes, true)
		case graphOutput, graphValue:
			err = m.declare(out, f.bytes, false)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out, nodes, nil
}

// bodyOf reads what the names of a function's body stand for.
func (m *Model) bodyOf(fn *function) (*names, [][]byte, error) {
	out := &names{map[string]value{}, map[string][]byte{}}
	var nodes [][]byte
	for f, err := range m.fields(fn.raw) {
		if err == nil && f.tag == functionNode {
			nodes = append(nodes, f.bytes)
			err = m.node(out, f.bytes)
		}
		if err == nil && f.tag == functionValue {
			err = m.declare(out, f.bytes, false)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for name := range fn.inputs {
		out.values[name] = value{origin: passed}
	}
	return out, nodes, nil
}

// node notes what a node makes.
func (m *Model) node(n *names, raw []byte) error {
	for f, err := range m.fields(raw) {
		if err != nil {
			return err
		}
		if name := f.text(); f.tag == nodeOutput && name != "" {
			n.values[name] = value{made, raw}
		}
	}
	return nil
}

// tensor notes an initializer. In old models the inputs list it, too.
func (m *Model) tensor(n *names, raw []byte, from origin) error {
	named, err := raw, error(nil)
	if from == sparse { // its values have the name
		if named, err = m.first(raw, sparseValues); err != nil {
			return err
		}
	}
	name, err := m.first(named, tensorName)
	n.values[string(name)] = value{from, raw}
	return err
}

// declare notes the type of a value, and that it is an input.
func (m *Model) declare(n *names, raw []byte, isInput bool) error {
	name, err := m.first(raw, valueName)
	if err != nil {
		return err
	}
	kind, err := m.first(raw, valueType)
	if err != nil {
		return err
	}
	n.types[string(name)] = kind
	if _, known := n.values[string(name)]; isInput && !known {
		n.values[string(name)] = value{origin: input}
	}
	return nil
}

// find returns what a name stands for, and the scope that says so, under its name there; false:
// nothing. Then the name is "" if a call leaves it out.
func (s *scope) find(name string) (*scope, string, value, bool) {
	for s != nil && name != "" {
		switch v, ok := s.values[name]; {
		case !ok:
			s = s.outer
		case v.origin == passed:
			name, s = s.call.input(s.function.inputs[name]), s.call.scope
		default:
			return s, name, v, true
		}
	}
	return nil, name, value{}, false
}
