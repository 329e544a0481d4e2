package driver

import (
	"encoding/binary"
	"math"
	"unsafe"

	"rnnbench/device"
)

// An Element is how a value is stored.
type Element int

const (
	Single Element = iota
	Brain          // bfloat16
	Half           // IEEE half
)

// Bytes is the size of an element.
func (e Element) Bytes() int {
	if e == Single {
		return 4
	}
	return 2
}

// String is the type's name in kernels.
func (e Element) String() string { return [...]string{"float", "bf16", "fp16"}[e] }

// Encode returns v as the GPU stores it.
func Encode(v []float32, e Element) []byte {
	if e == Single {
		return Bytes(v)
	}
	out := make([]byte, 2*len(v))
	EncodeTo(out, v, e)
	return out
}

// EncodeTo is Encode into out, which is large enough.
func EncodeTo(out []byte, v []float32, e Element) {
	if e == Single {
		device.Copy(out, Bytes(v))
		return
	}
	for i, x := range v {
		binary.LittleEndian.PutUint16(out[2*i:], e.Narrow(x))
	}
}

// Decode is the reverse of Encode.
func Decode(dst []float32, src []byte, e Element) {
	for i := range dst {
		dst[i] = e.Widen(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// Narrow rounds x to 16 bits: to nearest, ties to even.
func (e Element) Narrow(x float32) uint16 {
	bits := math.Float32bits(x)
	if e == Brain {
		if x != x {
			return 0x7fff
		}
		return uint16((bits + 0x7fff + bits>>16&1) >> 16)
	}
	sign := uint16(bits >> 16 & 0x8000)
	abs := math.Float32frombits(bits &^ (1 << 31))
	switch {
	case x != x:
		return 0x7fff
	case abs >= 65520:
		return sign | 0x7c00
	case abs < 0x1p-14: // a multiple of 2^-24
		return sign | uint16(math.RoundToEven(float64(abs)*0x1p24))
	}
	bits = math.Float32bits(abs)
	bits += 0xfff + bits>>13&1
	return sign | uint16(bits>>13-(127-15)<<10)
}

// Widen returns the value of 16 bits.
func (e Element) Widen(h uint16) float32 {
	if e == Brain {
		return math.Float32frombits(uint32(h) << 16)
	}
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}

// Bytes returns the memory of v, not a copy.
func Bytes(v []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v)) }
