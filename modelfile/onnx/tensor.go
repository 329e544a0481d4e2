package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// A Tensor is a constant. Its values are row-major, whatever their type in the file: float32 holds
// numbers of 16 bits and integers to 2^24 exactly, and rounds others.
type Tensor struct {
	Dims   []int
	Values []float32
}

// A dtype is a type of numbers as files store them.
type dtype struct {
	name string
	size int // bytes in raw data
	list tag // the field that lists values where they are not raw
	of   func(bits uint64) float32
}

// dtypes are the types that constants of recurrent operators have, by their number in the format.
var dtypes = map[uint64]dtype{
	1:  {"FLOAT", 4, tensorFloats, func(b uint64) float32 { return math.Float32frombits(uint32(b)) }},
	2:  {"UINT8", 1, tensorInt32s, func(b uint64) float32 { return float32(uint8(b)) }},
	3:  {"INT8", 1, tensorInt32s, func(b uint64) float32 { return float32(int8(b)) }},
	4:  {"UINT16", 2, tensorInt32s, func(b uint64) float32 { return float32(uint16(b)) }},
	5:  {"INT16", 2, tensorInt32s, func(b uint64) float32 { return float32(int16(b)) }},
	6:  {"INT32", 4, tensorInt32s, func(b uint64) float32 { return float32(int32(b)) }},
	7:  {"INT64", 8, tensorInt64s, func(b uint64) float32 { return float32(int64(b)) }},
	10: {"FLOAT16", 2, tensorInt32s, func(b uint64) float32 { return float16.Frombits(uint16(b)).Float32() }},
	11: {"DOUBLE", 8, tensorDoubles, func(b uint64) float32 { return float32(math.Float64frombits(b)) }},
	12: {"UINT32", 4, tensorUint64s, func(b uint64) float32 { return float32(uint32(b)) }},
	13: {"UINT64", 8, tensorUint64s, func(b uint64) float32 { return float32(b) }},
	16: {"BFLOAT16", 2, tensorInt32s, func(b uint64) float32 { return math.Float32frombits(uint32(uint16(b)) << 16) }},
}

// A header is a tensor without its values.
type header struct {
	dims     []int64
	kind     uint64
	raw      []byte
	isRaw    bool
	outside  bool     // its values lie in another file
	external [][]byte // where
}

func (m *Model) parseHeader(raw []byte) (header, error) {
	var h header
	for f, err := range m.fields(raw) {
		switch {
		case err != nil:
			return h, err
		case f.tag == tensorDims || f.tag == tensorDim:
			if h.dims, err = f.varints(h.dims, mostRank+1); err != nil {
				return h, err
			}
		case f.tag == tensorType:
			h.kind = f.bits
		case f.tag == tensorRaw:
			h.raw, h.isRaw = f.bytes, true
		case f.tag == tensorLocation:
			h.outside = f.bits == 1
		case f.tag == tensorExternal:
			h.external = append(h.external, f.bytes)
		}
	}
	return h, nil
}

// sizes checks dimensions, and counts the values.
func sizes(dims []int64) ([]int, int, error) {
	if len(dims) > mostRank {
		return nil, 0, fmt.Errorf("a tensor has more than %d dimensions", mostRank)
	}
	out, n, zero := make([]int, len(dims)), 1, false
	for i, d := range dims {
		switch {
		case d < 0:
			return nil, 0, fmt.Errorf("a tensor has the dimension %d", d)
		case d == 0:
			zero = true
		case d > math.MaxInt32/int64(n):
			return nil, 0, fmt.Errorf("a tensor has the dimensions %v: more than 2^31 values", dims)
		default:
			n *= int(d)
		}
		out[i] = int(d)
	}
	if zero {
		n = 0
	}
	return out, n, nil
}

// decode reads a tensor.
func (m *Model) decode(raw []byte) (*Tensor, error) {
	h, err := m.parseHeader(raw)
	if err != nil {
		return nil, err
	}
	dims, n, err := sizes(h.dims)
	if err != nil {
		return nil, err
	}
	kind, ok := dtypes[h.kind]
	if !ok {
		return nil, fmt.Errorf("a tensor has values of the type %d: only numbers of 8 to 64 bits are read", h.kind)
	}
	if h.outside {
		if h.raw, err = m.readExternal(h.external, n, kind.size); err != nil {
			return nil, err
		}
		h.isRaw = true
	}
	values, count := []float32(nil), 0
	switch {
	case h.isRaw && len(h.raw) == n*kind.size:
		if err = m.Spend(n); err == nil {
			values, count = decodeRaw(h.raw, kind), n
		}
	case h.isRaw:
		return nil, fmt.Errorf("a tensor of the dimensions %v has %d bytes of values, not %d", dims, len(h.raw), n*kind.size)
	case n > len(raw): // a value in a list takes a byte or more
		count = -1
	default:
		if err = m.Spend(n); err == nil {
			values, count, err = m.decodeList(raw, kind, n)
		}
	}
	if err == nil && count != n {
		err = fmt.Errorf("a tensor of the dimensions %v has fewer or more values than %d", dims, n)
	}
	return &Tensor{dims, values}, err
}

// decodeRaw reads values that lie one after the other.
func decodeRaw(raw []byte, kind dtype) []float32 {
	out := make([]float32, len(raw)/kind.size)
	for i := range out {
		b := raw[i*kind.size:]
		switch kind.size {
		case 1:
			out[i] = kind.of(uint64(b[0]))
		case 2:
			out[i] = kind.of(uint64(binary.LittleEndian.Uint16(b)))
		case 4:
			out[i] = kind.of(uint64(binary.LittleEndian.Uint32(b)))
		default:
			out[i] = kind.of(binary.LittleEndian.Uint64(b))
		}
	}
	return out
}

// decodeList reads the values of a type's list. count is more than n where there are more.
func (m *Model) decodeList(raw []byte, kind dtype, n int) (values []float32, count int, err error) {
	values = make([]float32, 0, n)
	for f, err := range m.fields(raw) {
		if err != nil {
			return nil, 0, err
		}
		if f.tag>>3 != kind.list>>3 {
			continue
		}
		list := f.bytes
		if f.tag != kind.list { // one value
			list = nil
			values, count = append(values, kind.of(f.bits)), count+1
		}
		for len(list) > 0 && count <= n {
			var bits uint64
			used := 0
			switch kind.list {
			case tensorFloats:
				var b uint32
				b, used = scanFixed32(list)
				bits = uint64(b)
			case tensorDoubles:
				bits, used = scanFixed64(list)
			default:
				bits, used = scanVarint(list)
			}
			if used < 0 {
				return nil, 0, errWire
			}
			values, list, count = append(values, kind.of(bits)), list[used:], count+1
		}
		if count > n {
			break
		}
	}
	return values, count, nil
}

var errNumbers = errors.New("sizes in the model are no numbers that can be used")

// integers are the values of a tensor of sizes, axes or numbers of elements.
func (t *Tensor) integers() ([]int64, error) {
	out := make([]int64, len(t.Values))
	for i, v := range t.Values {
		switch {
		case v >= 1<<31: // the end, whatever it is
			out[i] = math.MaxInt32
		case v <= -(1 << 31):
			out[i] = -math.MaxInt32
		case v != float32(int64(v)) || v > 1<<24 || v < -(1<<24):
			return nil, errNumbers
		default:
			out[i] = int64(v)
		}
	}
	return out, nil
}
