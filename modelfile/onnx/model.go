// Package onnx reads from an ONNX model what recurrent operators need: nodes with their attributes,
// wherever they stand, and the constants that they read. It runs nothing.
//
// A file is bytes that somebody else wrote. Whatever they are, reading takes time and memory in
// proportion to their number. Errors are one sentence, or the end of one.
package onnx

import (
	"errors"
	"fmt"
)

// Limits of a model. They are far above any that was published.
const (
	mostDepth   = 32  // of bodies and calls of functions within each other
	mostVisits  = 8   // of fields, for each byte of the model
	mostMade    = 8   // values of constants, for each byte of the model's files
	mostChain   = 256 // nodes that compute a constant one from the other
	mostRank    = 8   // of tensors
	smallVisits = 1 << 20
	smallMade   = 1 << 16
)

// A Model is a file's content.
type Model struct {
	graph     []byte
	functions map[identity]*function
	opener    Opener

	visits   int             // of fields that are left
	values   int             // that may still be made
	external map[string]bool // locations that count in values
}

// An identity is what a node's operator is called.
type identity struct{ domain, name, overload string }

// A function is an operator that the model itself defines.
type function struct {
	inputs   map[string]int // their numbers
	defaults []attribute
	nodes    [][]byte
	names    *names // of the body; nil: not called so far
	raw      []byte
}

// Parse reads a model. opener opens the files that hold its external tensors.
func Parse(data []byte, opener Opener) (*Model, error) {
	m := &Model{functions: map[identity]*function{}, opener: opener, visits: smallVisits + mostVisits*len(data), values: smallMade, external: map[string]bool{}}
	m.allow(len(data))
	for f, err := range m.fields(data) {
		if err != nil {
			return nil, err
		}
		switch f.tag {
		case modelGraph:
			if m.graph != nil {
				return nil, errors.New("it is no ONNX model: it has two graphs")
			}
			m.graph = f.bytes
		case modelFunction:
			if err := m.define(f.bytes); err != nil {
				return nil, err
			}
		}
	}
	if m.graph == nil {
		return nil, errors.New("it is no ONNX model, or it was cut short: it has no graph")
	}
	return m, nil
}

// define notes a function.
func (m *Model) define(raw []byte) error {
	var id identity
	fn := &function{raw: raw, inputs: map[string]int{}}
	count := 0
	for f, err := range m.fields(raw) {
		if err != nil {
			return err
		}
		switch f.tag {
		case functionName:
			id.name = f.text()
		case functionDomain:
			id.domain = f.text()
		case functionOverload:
			id.overload = f.text()
		case functionInput:
			fn.inputs[f.text()] = count
			count++
		case functionAttribute:
			a, err := m.parseAttribute(f.bytes)
			if err != nil {
				return err
			}
			fn.defaults = append(fn.defaults, a)
		}
	}
	id.domain = domain(id.domain)
	if m.functions[id] != nil {
		return fmt.Errorf("it defines the function %q twice", short(id.name))
	}
	m.functions[id] = fn
	return nil
}

// domain is the one name of ONNX's own domain, which has two.
func domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

// visit counts n fields or values that are read, those of functions at each call.
func (m *Model) visit(n int) error {
	if m.visits -= n; m.visits < 0 {
		return errors.New("the model takes far more work to read than its size allows, as where functions call each other over and over")
	}
	return nil
}

// allow lets a file of so many bytes count in what may be made.
func (m *Model) allow(bytes int) { m.values += mostMade * bytes }

// Spend counts n values that are made from constants of the model. The error says that they are more
// than a file of this size can ask for.
func (m *Model) Spend(n int) error {
	if n > m.values {
		return errors.New("the model asks for far more values than it holds")
	}
	m.values -= n
	return nil
}
