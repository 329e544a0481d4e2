package simd

import "math"

// ToF16 rounds x to half precision.
func ToF16(x float32) uint16 {
	const (
		smallest = 0x38800000 // 2^-14, the least normal half
		infinite = 0x47800000 // 2^16
	)
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	switch bits &= 0x7fffffff; {
	case bits > 0x7f800000:
		return sign | 0x7e00 | uint16(bits>>13&0x3ff)
	case bits >= infinite:
		return sign | 0x7c00
	case bits < smallest: // the sum's last bit is worth 2^-24, the least half
		sum := math.Float32frombits(bits) + 0.5
		return sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5))
	}
	bits += 0xfff + bits>>13&1
	return sign | uint16((bits-(smallest-0x400<<13))>>13)
}

// FromF16 widens a half.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	switch e, m := uint32(h>>10&0x1f), uint32(h&0x3ff); e {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	default:
		return math.Float32frombits(sign | (e+112)<<23 | m<<13)
	}
}

// ToBF16 rounds x to the upper half of a float.
func ToBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	if bits&0x7fffffff > 0x7f800000 {
		return uint16(bits>>16) | 0x40
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// FromBF16 widens the upper half of a float.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func narrowF16Generic(dst, src []float32) { narrowGeneric(dst, src, ToF16) }

func narrowBF16Generic(dst, src []float32) {
	for ; len(src) >= 2*StripWidth; dst, src = dst[StripWidth:], src[2*StripWidth:] {
		for i := range StripWidth {
			dst[i] = math.Float32frombits(uint32(ToBF16(src[i])) | uint32(ToBF16(src[StripWidth+i]))<<16)
		}
	}
	narrowGeneric(dst, src, ToBF16)
}

func narrowGeneric(dst, src []float32, to func(float32) uint16) {
	for i := 0; i+1 < len(src); i += 2 {
		dst[i/2] = math.Float32frombits(uint32(to(src[i])) | uint32(to(src[i+1]))<<16)
	}
}

func widenF16Generic(dst, src []float32) { widenGeneric(dst, src, FromF16) }

func widenBF16Generic(dst, src []float32) {
	for ; len(dst) >= 2*StripWidth; dst, src = dst[2*StripWidth:], src[StripWidth:] {
		for i := range StripWidth {
			bits := math.Float32bits(src[i])
			dst[i], dst[StripWidth+i] = FromBF16(uint16(bits)), FromBF16(uint16(bits>>16))
		}
	}
	widenGeneric(dst, src, FromBF16)
}

func widenGeneric(dst, src []float32, from func(uint16) float32) {
	for i := 0; i+1 < len(dst); i += 2 {
		bits := math.Float32bits(src[i/2])
		dst[i], dst[i+1] = from(uint16(bits)), from(uint16(bits>>16))
	}
}

// tileHalvesGeneric widens a block of each strip and multiplies it with tileGeneric.
func tileHalvesGeneric(t *Tile) {
	const depth = 32
	widen := widenF16Generic
	if t.Format == BF16 {
		widen = widenBF16Generic
	}
	var block [depth * StripWidth]float32
	for s := range t.Strips {
		last := StripWidth
		if s == t.Strips-1 {
			last = t.Last
		}
		for k := 0; k < t.K; k += depth {
			n := min(depth, t.K-k)
			widen(block[:n*StripWidth], t.B[s*t.BStrip+k*t.BStep:])
			tileGeneric(&Tile{
				A: t.A[k*t.ACol:], ARow: t.ARow, ACol: t.ACol, B: block[:], BStrip: len(block), BStep: StripWidth,
				C: t.C[s*StripWidth:], CRow: t.CRow, K: n, Rows: t.Rows, Strips: 1, Last: last, Accumulate: t.Accumulate || k > 0,
			})
		}
	}
}
