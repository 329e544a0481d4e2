package onnx

import (
	"errors"
	"iter"
	"math"
)

// Tags of the fields that are read: the field's number and its form on the wire.
const (
	modelGraph    = 7<<3 | bytes
	modelFunction = 25<<3 | bytes

	graphNode        = 1<<3 | bytes
	graphInitializer = 5<<3 | bytes
	graphInput       = 11<<3 | bytes
	graphOutput      = 12<<3 | bytes
	graphValue       = 13<<3 | bytes
	graphSparse      = 15<<3 | bytes

	functionName      = 1<<3 | bytes
	functionInput     = 4<<3 | bytes
	functionNode      = 7<<3 | bytes
	functionDomain    = 10<<3 | bytes
	functionAttribute = 11<<3 | bytes // with a default
	functionValue     = 12<<3 | bytes
	functionOverload  = 13<<3 | bytes

	nodeInput     = 1<<3 | bytes
	nodeOutput    = 2<<3 | bytes
	nodeName      = 3<<3 | bytes
	nodeOperator  = 4<<3 | bytes
	nodeAttribute = 5<<3 | bytes
	nodeDomain    = 7<<3 | bytes
	nodeOverload  = 8<<3 | bytes

	attributeName    = 1<<3 | bytes
	attributeFloat   = 2<<3 | fixed32
	attributeInt     = 3<<3 | varint
	attributeString  = 4<<3 | bytes
	attributeTensor  = 5<<3 | bytes
	attributeGraph   = 6<<3 | bytes
	attributeFloats  = 7<<3 | bytes
	attributeFloat1  = 7<<3 | fixed32
	attributeInts    = 8<<3 | bytes
	attributeInt1    = 8<<3 | varint
	attributeStrings = 9<<3 | bytes
	attributeGraphs  = 11<<3 | bytes
	attributeRef     = 21<<3 | bytes

	tensorDims     = 1<<3 | bytes
	tensorDim      = 1<<3 | varint
	tensorType     = 2<<3 | varint
	tensorFloats   = 4<<3 | bytes
	tensorFloat    = 4<<3 | fixed32
	tensorInt32s   = 5<<3 | bytes
	tensorInt32    = 5<<3 | varint
	tensorInt64s   = 7<<3 | bytes
	tensorInt64    = 7<<3 | varint
	tensorName     = 8<<3 | bytes
	tensorRaw      = 9<<3 | bytes
	tensorDoubles  = 10<<3 | bytes
	tensorDouble   = 10<<3 | fixed64
	tensorUint64s  = 11<<3 | bytes
	tensorUint64   = 11<<3 | varint
	tensorExternal = 13<<3 | bytes
	tensorLocation = 14<<3 | varint
	sparseValues   = 1<<3 | bytes
	entryKey       = 1<<3 | bytes
	entryValue     = 2<<3 | bytes
	valueName      = 1<<3 | bytes
	valueType      = 2<<3 | bytes
	typeTensor     = 1<<3 | bytes
	typeShape      = 2<<3 | bytes
	shapeDim       = 1<<3 | bytes
	dimValue       = 1<<3 | varint
)

// A tag is the number of a field times 8, and its form on the wire.
type tag uint64

// A field of a message. A field of another form than its tag says counts as unknown, as everywhere.
type field struct {
	tag   tag
	bits  uint64 // of a number
	bytes []byte // of a message, a text or a packed list
}

func (f field) text() string { return string(f.bytes) }

// errWire says that bytes are no message.
var errWire = errors.New("it is no ONNX model, or it was cut short")

// fields visits the fields of a message, and an error where they end in nonsense, or where the model
// had more visits than its size allows.
func (m *Model) fields(message []byte) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for len(message) > 0 {
			if err := m.visit(1); err != nil {
				yield(field{}, err)
				return
			}
			t, n := scanTag(message)
			if n < 0 {
				yield(field{}, errWire)
				return
			}
			message = message[n:]
			f, n := scanField(t, message)
			if n < 0 {
				yield(field{}, errWire)
				return
			}
			message = message[n:]
			if err := m.visit(len(f.bytes) / 64); err != nil { // whoever copies them
				yield(field{}, err)
				return
			}
			if !yield(f, nil) {
				return
			}
		}
	}
}

// first returns the bytes of the first field of that tag; nil: there is none.
func (m *Model) first(message []byte, t tag) ([]byte, error) {
	for f, err := range m.fields(message) {
		if err != nil {
			return nil, err
		}
		if f.tag == t {
			return f.bytes, nil
		}
	}
	return nil, nil
}

// Starts reports whether a file that begins with head is an ONNX model, as far as can be seen: it
// begins with the version of the format, and the fields that follow are those of a model.
func Starts(head []byte) bool {
	const version = 1<<3 | varint
	for i := 0; ; i++ {
		t, n := scanTag(head)
		if n < 0 {
			return false
		}
		head = head[n:]
		switch {
		case i == 0 && t != version:
			return false
		case t == modelGraph || t == modelFunction:
			return true
		case t>>3 > 26 || t&7 != bytes && t&7 != varint:
			return false
		}
		if _, n = scanField(t, head); n < 0 {
			return false
		}
		head = head[n:]
	}
}

// varints appends the numbers of a packed list to to, or the one number of f. It stops after most.
func (f field) varints(to []int64, most int) ([]int64, error) {
	if f.tag&7 == varint {
		if len(to) < most {
			to = append(to, int64(f.bits))
		}
		return to, nil
	}
	for b := f.bytes; len(b) > 0 && len(to) < most; {
		v, n := scanVarint(b)
		if n < 0 {
			return nil, errWire
		}
		to, b = append(to, int64(v)), b[n:]
	}
	return to, nil
}

// floats is varints for numbers of 32 bits, all of them.
func (f field) floats(to []float32) ([]float32, error) {
	if f.tag&7 == fixed32 {
		return append(to, math.Float32frombits(uint32(f.bits))), nil
	}
	for b := f.bytes; len(b) > 0; {
		v, n := scanFixed32(b)
		if n < 0 {
			return nil, errWire
		}
		to, b = append(to, math.Float32frombits(v)), b[n:]
	}
	return to, nil
}
