package simd

import "math"

const (
	// mostI8 is the largest 8-bit integer in use. Then |x|·|w| of two terms fit in 16 bits.
	mostI8 = 127
	// leastI8 is the largest value, by its bits, below which a row or column counts as zeros: 2⁻¹⁰⁰.
	leastI8 = (127 - 100) << 23
	// infinite is the bits of infinity. Those of NaN are more.
	infinite = 0x7f800000
	// quantized is how many values the kernels round at once.
	quantized = 32
)

// MaxI8Strips returns the most strips of a Tile of I8.
func (k *Products) MaxI8Strips() int { return k.maxI8Strips }

// QuantizeRow stores src as I8, four values to a float of dst, with zeros up to a multiple of four. It
// returns the scale by which the integers must be multiplied, the largest value over 127. Ties go to
// even. If a value is not finite, the scale is NaN.
func (k *Products) QuantizeRow(dst, src []float32) (scale float32) {
	words, n := (len(src)+3)/4, len(src)/quantized*quantized
	inverse, scale := scaleI8(max(k.mostBits(src[:n]), mostBitsGeneric(src[n:])))
	if inverse == 0 {
		clear(dst[:words])
		return scale
	}
	k.quantize(dst[:n/4], src[:n], inverse)
	quantizeGeneric(dst[n/4:words], src[n:], inverse)
	return scale
}

// scaleI8 returns the scale of a row or column whose largest value has these bits, and its inverse; 0:
// all integers are 0.
func scaleI8(most uint32) (inverse, scale float32) {
	switch x := math.Float32frombits(most); {
	case most >= infinite:
		return 0, float32(math.NaN())
	case most < leastI8:
		return 0, 0
	default:
		return mostI8 / x, x / mostI8
	}
}

func mostBitsGeneric(src []float32) (most uint32) {
	for _, x := range src {
		most = max(most, math.Float32bits(x)&^(1<<31))
	}
	return most
}

func quantizeGeneric(dst, src []float32, inverse float32) {
	for i := range dst {
		word := uint32(0)
		for j, x := range src[4*i : min(4*i+4, len(src))] {
			word |= uint32(uint8(toI8(x, inverse))) << (8 * j)
		}
		dst[i] = math.Float32frombits(word)
	}
}

func toI8(x, inverse float32) int8 { return int8(math.RoundToEven(float64(x * inverse))) }

// PackI8 packs a strip of so many rows as I8 into dst. get returns rows from … to-1, StripWidth values
// each.
func PackI8(dst []float32, rows, block int, get func(from, to int) []float32) {
	var most [StripWidth]uint32
	for from := 0; from < rows; from += block {
		for i, x := range get(from, min(from+block, rows)) {
			most[i%StripWidth] = max(most[i%StripWidth], math.Float32bits(x)&^(1<<31))
		}
	}
	var inverse [StripWidth]float32
	for j := range inverse {
		inverse[j], dst[j] = scaleI8(most[j])
	}
	var sums [StripWidth]int32
	words := dst[I8Header:I8.StripFloats(rows)]
	clear(words)
	for from := 0; from < rows; from += block {
		for i, x := range get(from, min(from+block, rows)) {
			j, k := i%StripWidth, from+i/StripWidth
			if inverse[j] == 0 {
				continue
			}
			v := toI8(x, inverse[j])
			sums[j] += int32(v)
			word := &words[k/4*StripWidth+j]
			*word = math.Float32frombits(math.Float32bits(*word) | uint32(uint8(v))<<(8*(k%4)))
		}
	}
	for j, sum := range sums {
		dst[StripWidth+j] = math.Float32frombits(uint32(-128 * sum))
	}
}

func tileI8Generic(t *Tile) {
	var sums [StripWidth]int32
	for s := range t.Strips {
		strip, last := t.B[s*t.BStrip:], StripWidth
		if s == t.Strips-1 {
			last = t.Last
		}
		clear(sums[:])
		for k := range t.K {
			x := math.Float32bits(t.A[k])
			for j := range last {
				w := math.Float32bits(strip[I8Header+k*StripWidth+j])
				for i := 0; i < 32; i += 8 {
					sums[j] += int32(int8(x>>i)) * int32(int8(w>>i))
				}
			}
		}
		for j := range last {
			y := float32(float32(sums[j]) * float32(t.Scale*strip[j])) // no sum is fused
			put(t.C[s*StripWidth+j:][:1], [4]float32{y}, t.Accumulate)
		}
	}
}
