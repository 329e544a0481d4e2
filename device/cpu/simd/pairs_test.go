package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"rnnbench/device/cpu/simd/amx"
)

// rounding returns kernels that multiply BF16: this machine's, if it has any, and a model's.
func rounding(t *testing.T) map[string]*Kernels {
	ks := map[string]*Kernels{"model": Model(AVX512BF16)}
	if Detect() >= AVX512BF16 {
		k, err := For(AVX512BF16)
		if err != nil {
			t.Fatal(err)
		}
		ks["hardware"] = k
	}
	return ks
}

// TestTilesOfPairsAreRight compares tiles of every shape with sums in double precision, within
// single precision's rounding of each sum. Tiles with one set of sums must have the bits of the
// model.
func TestTilesOfPairsAreRight(t *testing.T) {
	for name, k := range rounding(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 8))
			for m := 1; m <= k.MaxRows(); m++ {
				for s := 1; s <= k.MaxStrips(m); s++ {
					for _, depth := range []int{1, 2, 3, 4, 5, 8, 19} {
						for _, last := range []int{1, 8, 16} {
							testPairs(t, k, rng, m, s, depth, last, depth%2 == 0)
						}
					}
				}
			}
		})
	}
}

// words returns n words of two BF16 each.
func words(rng *rand.Rand, n int) []float32 {
	w := make([]float32, n)
	for i := range w {
		x, y := ToBF16(float32(rng.NormFloat64())), ToBF16(float32(rng.NormFloat64()))
		w[i] = math.Float32frombits(uint32(x) | uint32(y)<<16)
	}
	return w
}

func testPairs(t *testing.T, k *Kernels, rng *rand.Rand, m, s, depth, last int, add bool) {
	t.Helper()
	cols := (s-1)*StripWidth + last
	tile := &Tile{
		K: depth, Rows: m, Strips: s, Last: last, Accumulate: add, Format: Pairs, ARow: depth + 3, ACol: 1,
		BStrip: depth * StripWidth, BStep: StripWidth, CRow: cols + 5,
	}
	tile.A = words(rng, (m-1)*tile.ARow+depth)
	tile.B = words(rng, s*depth*StripWidth)
	tile.Ahead = tile.B
	c, check := guarded(t, rng, (m-1)*tile.CRow+cols, 2)
	tile.C = c
	old := slices.Clone(c)
	k.Tile(tile)
	check()
	half := func(word float32, upper int) float64 {
		return float64(FromBF16(uint16(math.Float32bits(word) >> (16 * upper))))
	}
	for i, got := range c {
		row, col := i/tile.CRow, i%tile.CRow
		if col >= cols {
			if got != old[i] {
				t.Fatalf("%dx%d k %d last %d: wrote between rows", m, s, depth, last)
			}
			continue
		}
		var sum, size float64
		if add {
			sum, size = float64(old[i]), math.Abs(float64(old[i]))
		}
		for p := range depth {
			for upper := range 2 {
				x := half(tile.A[row*tile.ARow+p], upper) * half(tile.B[col/StripWidth*tile.BStrip+p*StripWidth+col%StripWidth], upper)
				sum += x
				size += math.Abs(x)
			}
		}
		if d := math.Abs(float64(got) - sum); !(d <= 0x1p-24*float64(2*depth+2)*size) {
			t.Fatalf("%dx%d k %d last %d: C[%d,%d] = %v, want %v", m, s, depth, last, row, col, got, sum)
		}
	}
}

// TestPairIsAsModelled: VDPBF16PS and the model give the same bits, for all finite factors.
func TestPairIsAsModelled(t *testing.T) {
	k := rounding(t)["hardware"]
	if k == nil {
		t.Skip("this processor has no AVX512-BF16")
	}
	rng := rand.New(rand.NewPCG(11, 12))
	any := func() float32 { // denormal values included
		half := func() uint32 { return uint32(rng.IntN(2)<<15 | rng.IntN(255)<<7 | rng.IntN(128)) }
		return math.Float32frombits(half() | half()<<16)
	}
	const m, s = 8, 3 // tiles of this shape have one set of sums
	tile := &Tile{K: 9, Rows: m, Strips: s, Last: StripWidth, Format: Pairs, ARow: 9, ACol: 1, BStrip: 9 * StripWidth, BStep: StripWidth, CRow: s * StripWidth}
	for range 200 {
		tile.A, tile.B = make([]float32, m*tile.K), make([]float32, s*tile.K*StripWidth)
		for _, of := range [][]float32{tile.A, tile.B} {
			for i := range of {
				of[i] = any()
			}
		}
		tile.Ahead, tile.C = tile.B, make([]float32, m*tile.CRow)
		k.Tile(tile)
		got := slices.Clone(tile.C)
		tilePairsGeneric(tile)
		for i, want := range tile.C {
			if math.Float32bits(got[i]) != math.Float32bits(want) && (got[i] == got[i] || want == want) {
				t.Fatalf("C[%d] = %x, the model has %x", i, math.Float32bits(got[i]), math.Float32bits(want))
			}
		}
	}
}

// TestRoundRowRoundsToEven rounds every BF16, its neighbours, the midpoints between them, and
// values that are not finite, in rows of every length.
func TestRoundRowRoundsToEven(t *testing.T) {
	var src []float32
	for h := range 1 << 16 {
		x := FromBF16(uint16(h))
		middle := float32((float64(x) + float64(FromBF16(uint16(h)+1))) / 2)
		src = append(src, x, math.Nextafter32(x, 1), middle, math.Nextafter32(middle, 1e38))
	}
	for name, k := range rounding(t) {
		for n := 0; n < len(src); {
			row := src[n:min(len(src), n+1+n%131)]
			n += len(row)
			dst := make([]float32, (len(row)+amx.StepK-1)/amx.StepK*amx.TileWords)
			for i := range dst {
				dst[i] = float32(math.NaN())
			}
			k.RoundRow(dst, row)
			for i := range 2 * len(dst) {
				got := float64(FromBF16(uint16(math.Float32bits(dst[i/2]) >> (16 * (i % 2)))))
				want := 0.0
				if i < len(row) {
					want = rounded(float64(row[i]), BF16)
				}
				lost := math.Abs(want) <= 0x1p-126 && got == 0
				if got != want && !lost && !(got != got && want != want) {
					t.Fatalf("%s: element %d of %d: %v, want %v", name, i, len(row), got, want)
				}
			}
		}
	}
}
