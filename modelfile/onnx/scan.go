package onnx

import "encoding/binary"

// Forms of a field on the wire of protocol buffers. The functions of this file return the number of
// bytes that they read, below 0 if a message is wrong. The module google.golang.org/protobuf reads the
// program's file whenever the program starts, so tests alone use it.
const (
	varint  tag = 0
	fixed64 tag = 1
	bytes   tag = 2
	fixed32 tag = 5
)

// scanTag reads the tag of a field.
func scanTag(b []byte) (tag, int) {
	const most = 1<<32 - 1 // of a number in 29 bits
	v, n := scanVarint(b)
	if v < 1<<3 || v > most {
		return 0, -1
	}
	return tag(v), n
}

func scanVarint(b []byte) (uint64, int) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, -1
	}
	return v, n
}

func scanFixed32(b []byte) (uint32, int) {
	if len(b) < 4 {
		return 0, -1
	}
	return binary.LittleEndian.Uint32(b), 4
}

func scanFixed64(b []byte) (uint64, int) {
	if len(b) < 8 {
		return 0, -1
	}
	return binary.LittleEndian.Uint64(b), 8
}

func scanBytes(b []byte) ([]byte, int) {
	size, n := scanVarint(b)
	if n < 0 || size > uint64(len(b)-n) {
		return nil, -1
	}
	return b[n : n+int(size)], n + int(size)
}

// scanField reads the value of a field. ONNX has no groups.
func scanField(t tag, b []byte) (f field, n int) {
	f.tag = t
	switch t & 7 {
	case varint:
		f.bits, n = scanVarint(b)
	case fixed32:
		var v uint32
		v, n = scanFixed32(b)
		f.bits = uint64(v)
	case fixed64:
		f.bits, n = scanFixed64(b)
	case bytes:
		f.bytes, n = scanBytes(b)
	default:
		n = -1
	}
	return f, n
}
