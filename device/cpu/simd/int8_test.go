package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// packedI8 packs a matrix of integers, row by row, whose columns have these scales.
func packedI8(values [][]int8, cols int, scale func(col int) float32) []float32 {
	depth := len(values)
	size := I8.StripFloats(depth)
	out := make([]float32, (cols+StripWidth-1)/StripWidth*size)
	for s := range len(out) / size {
		PackI8(out[s*size:], depth, 7, func(from, to int) []float32 {
			block := make([]float32, (to-from)*StripWidth)
			for i := range block {
				if col := s*StripWidth + i%StripWidth; col < cols {
					block[i] = scale(col) * float32(values[from+i/StripWidth][col])
				}
			}
			return block
		})
	}
	return out
}

// wordsI8 returns integers as rows of A have them.
func wordsI8(values []int8) []float32 {
	out := make([]float32, (len(values)+3)/4)
	for i, v := range values {
		out[i/4] = math.Float32frombits(math.Float32bits(out[i/4]) | uint32(uint8(v))<<(8*(i%4)))
	}
	return out
}

// TestTilesOfI8AreExact: every level has the sum of the products of all integers, also where each is
// the largest or the smallest, times both scales.
func TestTilesOfI8AreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	fills := map[string]func() int8{
		"any":   func() int8 { return int8(rng.IntN(255) - 127) },
		"most":  func() int8 { return 127 },
		"least": func() int8 { return -127 },
		"ends":  func() int8 { return []int8{-127, 127}[rng.IntN(2)] },
	}
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for s := 1; s <= k.MaxI8Strips(); s++ {
			for _, depth := range []int{1, 3, 4, 5, 31, 64, 257} {
				for _, last := range []int{1, 8, 11, 16} {
					for a, fillA := range fills {
						for b, fillB := range fills {
							if t.Run(fmt.Sprintf("%d %d %d %s %s", s, depth, last, a, b), func(t *testing.T) { exactI8(t, k, rng, [3]int{s, depth, last}, fillA, fillB) }); t.Failed() {
								return
							}
						}
					}
				}
			}
		}
	})
}

// exactI8 checks a tile of so many strips, so deep, with so many columns in the last strip.
func exactI8(t *testing.T, k *Kernels, rng *rand.Rand, size [3]int, fillA, fillB func() int8) {
	s, depth, last := size[0], size[1], size[2]
	cols := (s-1)*StripWidth + last
	scale := func(col int) float32 { return float32(col%5+1) / 4 }
	x, w := make([]int8, depth), make([][]int8, depth+1)
	for i := range depth {
		x[i] = fillA()
	}
	for i := range w {
		w[i] = make([]int8, cols)
		for j := range w[i] {
			w[i][j] = fillB()
		}
	}
	w[0] = slices.Repeat([]int8{127}, cols) // so that scales are what they are
	tile := &Tile{
		A: wordsI8(x), B: packedI8(w[:depth], cols, scale), BStrip: I8.StripFloats(depth), K: (depth + 3) / 4,
		Rows: 1, Strips: s, Last: last, Format: I8, Scale: 0.5, Accumulate: depth%2 == 0,
	}
	c, check := guarded(t, rng, cols, 2)
	tile.C = c
	old := slices.Clone(c)
	k.Tile(tile)
	check()
	for j, got := range c {
		sum := 0
		for i := range depth {
			sum += int(x[i]) * int(w[i][j])
		}
		want := float32(sum) * (0.5 * scale(j))
		if tile.Accumulate {
			want += old[j]
		}
		if got != want {
			t.Fatalf("column %d is %v, want %v", j, got, want)
		}
	}
}

// TestDeepestI8: the longest sum of the largest products fits.
func TestDeepestI8(t *testing.T) {
	const words = MostI8 / 4
	a := slices.Repeat(wordsI8([]int8{127, 127, 127, 127}), words)
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, w := range []int8{127, -127} {
			b := make([]float32, I8.StripFloats(MostI8))
			sum := math.Float32frombits(uint32(-128 * MostI8 * int32(w)))
			for j := range StripWidth {
				b[j], b[StripWidth+j] = 1, sum
			}
			word := wordsI8([]int8{w, w, w, w})[0]
			for i := range words * StripWidth {
				b[I8Header+i] = word
			}
			c := make([]float32, StripWidth)
			k.Tile(&Tile{A: a, B: b, BStrip: len(b), C: c, K: words, Rows: 1, Strips: 1, Last: StripWidth, Format: I8, Scale: 1})
			for j, got := range c {
				if want := float32(127 * int(w) * MostI8); got != want {
					t.Errorf("%d: column %d is %v, want %v", w, j, got, want)
				}
			}
		}
	})
}

// TestQuantizeRow: rows of every length are rounded to the nearest integer, with ties to even, and a
// value that is not finite makes the scale NaN.
func TestQuantizeRow(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for n := range 131 {
			src, factor := make([]float32, n), float32(math.Exp(80*rng.Float64()-40))
			for i := range src {
				src[i] = factor * float32(rng.NormFloat64())
			}
			if n > 2 { // halves, which are ties
				for i := range src {
					src[i] = float32(rng.IntN(255)-127) / 2
				}
				src[n-1] = -127
			}
			dst := slices.Repeat([]float32{float32(math.NaN())}, (n+3)/4)
			scale := k.QuantizeRow(dst, src)
			most := float32(0)
			for _, x := range src {
				most = max(most, float32(math.Abs(float64(x))))
			}
			if scale != most/127 {
				t.Fatalf("%d values: scale %v, want %v", n, scale, most/127)
			}
			for i := range 4 * len(dst) {
				got, want := int8(math.Float32bits(dst[i/4])>>(8*(i%4))), int8(0)
				if i < n && most > 0 {
					want = int8(math.RoundToEven(float64(src[i] * (127 / most))))
				}
				if got != want {
					t.Fatalf("value %d of %d, %v, is %d, want %d", i, n, src[i], got, want)
				}
			}
			for at := range src {
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
					old := src[at]
					src[at] = float32(bad)
					if s := k.QuantizeRow(dst, src); s == s {
						t.Fatalf("value %d of %d is %v: scale %v", at, n, bad, s)
					}
					src[at] = old
				}
			}
			clear(src)
			if n > 0 {
				src[n-1] = 0x1p-140
			}
			if s := k.QuantizeRow(dst, src); s != 0 || slices.ContainsFunc(dst, func(x float32) bool { return x != 0 }) {
				t.Fatalf("%d values of nearly 0: scale %v, %v", n, s, dst)
			}
		}
	})
}

// BenchmarkI8 multiplies a row by 4·H columns of H weights.
func BenchmarkI8(b *testing.B) {
	k := Best()
	for _, h := range []int{256, 512, 1024} {
		x := make([]int8, h)
		w := make([][]int8, h)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range w {
			x[i] = int8(rng.IntN(255) - 127)
			w[i] = make([]int8, 4*h)
			for j := range w[i] {
				w[i][j] = int8(rng.IntN(255) - 127)
			}
		}
		packed, strip := packedI8(w, 4*h, func(int) float32 { return 1 }), I8.StripFloats(h)
		c, a := make([]float32, 4*h), wordsI8(x)
		for s := 1; s <= k.MaxI8Strips(); s++ {
			b.Run(fmt.Sprintf("%d/%d", h, s), func(b *testing.B) {
				b.SetBytes(int64(4 * len(packed)))
				t := &Tile{A: a, BStrip: strip, K: h / 4, Rows: 1, Strips: s, Last: StripWidth, Format: I8, Scale: 1}
				for b.Loop() {
					for n := 0; n+s*StripWidth <= 4*h; n += s * StripWidth {
						t.B, t.C = packed[n/StripWidth*strip:], c[n:]
						k.Tile(t)
					}
				}
			})
		}
	}
}
