package modelfile

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// A proto is a message being written: a few fields of ONNX's format, for tests.
type proto []byte

func (p proto) bytes(number protowire.Number, b []byte) proto {
	return protowire.AppendBytes(protowire.AppendTag(p, number, protowire.BytesType), b)
}

func (p proto) text(number protowire.Number, s string) proto { return p.bytes(number, []byte(s)) }

func (p proto) int(number protowire.Number, v int) proto {
	return protowire.AppendVarint(protowire.AppendTag(p, number, protowire.VarintType), uint64(v))
}

func (p proto) float(number protowire.Number, v float32) proto {
	return protowire.AppendFixed32(protowire.AppendTag(p, number, protowire.Fixed32Type), math.Float32bits(v))
}

// Types of tensors.
const (
	onnxFloat    = 1
	onnxUint8    = 2
	onnxInt8     = 3
	onnxInt32    = 6
	onnxInt64    = 7
	onnxBool     = 9
	onnxHalf     = 10
	onnxDouble   = 11
	onnxBfloat16 = 16
)

// onnxBits are the bits of a value of a type, and how many bytes they are.
func onnxBits(kind int, v float32) (bits uint64, size int) {
	switch kind {
	case onnxFloat:
		return uint64(math.Float32bits(v)), 4
	case onnxDouble:
		return math.Float64bits(float64(v)), 8
	case onnxHalf: // of multiples of 1/64 below 16
		bits, _ = onnxBits(onnxFloat, v)
		if v == 0 {
			return 0, 2
		}
		return bits>>16&0x8000 | (bits>>23&255-112)<<10 | bits>>13&1023, 2
	case onnxBfloat16:
		return uint64(math.Float32bits(v)) >> 16, 2
	case onnxInt64:
		return uint64(int64(v)), 8
	case onnxInt32:
		return uint64(uint32(int32(v))), 4
	}
	return uint64(uint8(int(v))), 1
}

// onnxTensor writes a TensorProto with raw data.
func onnxTensor(name string, kind int, dims []int, values []float32) proto {
	var raw []byte
	for _, v := range values {
		bits, size := onnxBits(kind, v)
		raw = append(raw, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
	}
	return onnxHeader(name, kind, dims).bytes(9, raw)
}

func onnxHeader(name string, kind int, dims []int) proto {
	var p proto
	for _, d := range dims {
		p = p.int(1, d)
	}
	return p.int(2, kind).text(8, name)
}

// onnxListed is onnxTensor with values in the list of their type.
func onnxListed(name string, kind int, dims []int, values []float32) proto {
	number := map[int]protowire.Number{onnxFloat: 4, onnxDouble: 10, onnxInt64: 7}[kind]
	if number == 0 {
		number = 5
	}
	var list []byte
	for _, v := range values {
		switch bits, _ := onnxBits(kind, v); kind {
		case onnxFloat:
			list = binary.LittleEndian.AppendUint32(list, uint32(bits))
		case onnxDouble:
			list = binary.LittleEndian.AppendUint64(list, bits)
		case onnxInt8:
			list = protowire.AppendVarint(list, uint64(int64(int8(bits))))
		default:
			list = protowire.AppendVarint(list, bits)
		}
	}
	return onnxHeader(name, kind, dims).bytes(number, list)
}

// onnxInts is a tensor of integers of one dimension.
func onnxInts(name string, values ...float32) proto {
	return onnxTensor(name, onnxInt64, []int{len(values)}, values)
}

// onnxNode writes a NodeProto.
func onnxNode(op, name string, inputs, outputs []string, attributes ...proto) proto {
	var p proto
	for _, in := range inputs {
		p = p.text(1, in)
	}
	for _, out := range outputs {
		p = p.text(2, out)
	}
	if name != "" {
		p = p.text(3, name)
	}
	p = p.text(4, op)
	for _, a := range attributes {
		p = p.bytes(5, a)
	}
	return p
}

// Attributes.
func attrInt(name string, v int) proto      { return proto(nil).text(1, name).int(3, v).int(20, 2) }
func attrText(name, v string) proto         { return proto(nil).text(1, name).text(4, v).int(20, 3) }
func attrTensor(name string, t proto) proto { return proto(nil).text(1, name).bytes(5, t).int(20, 4) }
func attrGraph(name string, g proto) proto  { return proto(nil).text(1, name).bytes(6, g).int(20, 5) }
func attrRef(name, of string, kind int) proto {
	return proto(nil).text(1, name).text(21, of).int(20, kind)
}

func attrFloat(name string, v float32) proto {
	return proto(nil).text(1, name).float(2, v).int(20, 1)
}

func attrFloats(name string, values ...float32) proto {
	p := proto(nil).text(1, name).int(20, 6)
	for _, v := range values {
		p = p.float(7, v)
	}
	return p
}

func attrInts(name string, values ...int) proto {
	p := proto(nil).text(1, name).int(20, 7)
	for _, v := range values {
		p = p.int(8, v)
	}
	return p
}

func attrTexts(name string, values ...string) proto {
	p := proto(nil).text(1, name).int(20, 8)
	for _, v := range values {
		p = p.text(9, v)
	}
	return p
}

// A valueInfo is a typed input or output of a graph. nil dims: it says none.
type valueInfo struct {
	name string
	kind int
	dims []int
}

func (v valueInfo) write() proto {
	tensor := proto(nil).int(1, v.kind)
	if v.dims != nil {
		var shape proto
		for _, d := range v.dims {
			var dim proto
			if d >= 0 {
				dim = dim.int(1, d)
			}
			shape = shape.bytes(1, dim)
		}
		tensor = tensor.bytes(2, shape)
	}
	return proto(nil).text(1, v.name).bytes(2, proto(nil).bytes(1, tensor))
}

// An onnxGraph is a graph being written.
type onnxGraph struct {
	nodes, initializers []proto
	inputs, outputs     []valueInfo
}

func (g onnxGraph) write() proto {
	var p proto
	for _, n := range g.nodes {
		p = p.bytes(1, n)
	}
	p = p.text(2, "g")
	for _, t := range g.initializers {
		p = p.bytes(5, t)
	}
	for _, v := range g.inputs {
		p = p.bytes(11, v.write())
	}
	for _, v := range g.outputs {
		p = p.bytes(12, v.write())
	}
	return p
}

// onnxModel writes a ModelProto of that version of the operators.
func onnxModel(opset int, graph proto, functions ...proto) proto {
	p := proto(nil).int(1, 8).bytes(7, graph).bytes(8, proto(nil).text(1, "").int(2, opset))
	if len(functions) > 0 {
		p = p.bytes(8, proto(nil).text(1, "local").int(2, 1))
	}
	for _, f := range functions {
		p = p.bytes(25, f)
	}
	return p
}
