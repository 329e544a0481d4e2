package amx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"rnnbench/device/cpu/simd/amx/program"
)

// units returns the units that this machine can run.
func units() map[string]*Unit {
	u := map[string]*Unit{"model": Model()}
	if h := Hardware(); h != nil {
		u["hardware"] = h
	}
	return u
}

// pairs returns n words of two random BF16. With wild, they take any finite value.
func pairs(rng *rand.Rand, n int, wild bool) []float32 {
	words := make([]float32, n)
	for i := range words {
		half := func() uint32 {
			if wild { // every finite value, also denormal ones
				return uint32(rng.IntN(2)<<15 | rng.IntN(255)<<7 | rng.IntN(128))
			}
			return math.Float32bits(float32(rng.NormFloat64())) >> 16
		}
		words[i] = math.Float32frombits(half() | half()<<16)
	}
	return words
}

// A shape is the size of a panel to test.
type shape struct {
	rows, words, steps, blocks, groups int
	accumulate                         bool
	last                               int // columns of the last strip
}

// panel returns a panel of that shape with random operands.
func (s shape) panel(rng *rand.Rand, p *program.Program, wild bool) *Panel {
	const gap = 3
	q := &Panel{
		AStep: s.words, BStep: s.words * TileWords,
		ARow: s.steps*TileWords + gap, BStrip: s.steps*TileRows*TileWords + 5, CRow: s.groups*p.Strips*TileWords + gap,
		K: s.steps, Blocks: s.blocks, BlockRows: s.rows, Groups: s.groups, Accumulate: s.accumulate,
	}
	q.Config.Set(p, s.rows, s.words, s.last)
	all := s.rows * s.blocks
	q.A = pairs(rng, (all-1)*q.ARow+(s.steps-1)*TileWords+s.words, wild)
	q.B = pairs(rng, (s.groups*p.Strips-1)*q.BStrip+(s.steps-1)*TileRows*TileWords+s.words*TileWords, wild)
	q.C = make([]float32, (all-1)*q.CRow+s.groups*p.Strips*TileWords)
	for i := range q.C {
		q.C[i] = float32(rng.NormFloat64())
	}
	return q
}

// shapes returns the shapes to test: whole and partial tiles, and one or several of everything.
func shapes(p *program.Program) (all []shape) {
	for _, rows := range []int{1, 3, 15, 16} {
		rows += (p.Tiles - 1) * TileRows
		for _, words := range []int{1, 7, 16} {
			all = append(all, shape{rows, words, 1, 1, 1, false, 16}, shape{rows, words, 2, 2, 2, true, 16})
			if p.Strips < 4 {
				all = append(all, shape{rows, words, 3, 2, 1, words%2 == 0, words})
			}
		}
		all = append(all, shape{rows, 16, 3, 2, 1, false, 16}, shape{rows, 11, 5, 1, 3, true, 16})
	}
	return all
}

// TestPanelsAreRight compares every program with sums in double precision. It runs the model and,
// if there is one, the processor's unit.
//
// Products of BF16 are exact in single precision. A sum is rounded once for each term, in any
// order, and twice more when the sums of even and odd k are added: 2⁻²⁴ of the sum of magnitudes
// each time. Terms and sums below 2⁻¹²⁶ are lost.
func TestPanelsAreRight(t *testing.T) {
	for name, u := range units() {
		for _, p := range program.All() {
			rng := rand.New(rand.NewPCG(1, 2))
			for _, s := range shapes(&p) {
				panel := s.panel(rng, &p, false)
				what := fmt.Sprintf("%s: %d×%d of %+v", name, p.Tiles, p.Strips, s)
				old := append([]float32(nil), panel.C...)
				u.Run(panel, p.Tiles, p.Strips)
				s.check(t, what, &p, panel, old)
			}
		}
	}
}

func (s shape) check(t *testing.T, what string, p *program.Program, q *Panel, old []float32) {
	t.Helper()
	half := func(word float32, upper int) float64 {
		return float64(math.Float32frombits(math.Float32bits(word) >> (16 * upper) << 16))
	}
	depth := s.steps * s.words
	for i, got := range q.C {
		row, col := i/q.CRow, i%q.CRow
		if col >= (s.groups*p.Strips-1)*TileWords+s.last {
			if got != old[i] {
				t.Fatalf("%s: wrote between rows", what)
			}
			continue
		}
		sum, size := 0.0, 0.0
		if s.accumulate {
			sum = float64(old[i])
			size = math.Abs(sum)
		}
		for k := range depth {
			for upper := range 2 {
				x := half(q.A[row*q.ARow+k], upper) * half(q.B[col/TileWords*q.BStrip+k*TileWords+col%TileWords], upper)
				sum += x
				size += math.Abs(x)
			}
		}
		if d := math.Abs(float64(got) - sum); !(d <= 0x1p-24*float64(2*depth+2+2*s.steps)*size) {
			t.Fatalf("%s: C[%d,%d] = %v, want %v", what, row, col, got, sum)
		}
	}
}

// TestHardwareIsAsModelled: the processor's unit and the model give the same bits, for all finite
// factors.
func TestHardwareIsAsModelled(t *testing.T) {
	h := Hardware()
	if h == nil {
		t.Skip("this processor has no tiles of BF16, or the system does not let programs use them")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range program.All() {
		for _, s := range shapes(&p) {
			for _, wild := range []bool{false, true} {
				q := s.panel(rng, &p, wild)
				m := *q
				m.C = append([]float32(nil), q.C...)
				h.Run(q, p.Tiles, p.Strips)
				Model().Run(&m, p.Tiles, p.Strips)
				for i, got := range q.C {
					if want := m.C[i]; math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
						t.Fatalf("%d×%d of %+v: C[%d] = %x, the model has %x", p.Tiles, p.Strips, s, i, math.Float32bits(got), math.Float32bits(want))
					}
				}
			}
		}
	}
}

// TestFMARoundsOnce multiplies and adds values for which rounding to double precision first would
// be wrong.
func TestFMARoundsOnce(t *testing.T) {
	const one = 0x3f800000
	above := math.Float32bits(1 + 0x1p-7)
	for _, c := range []struct {
		x, y uint32
		sum  float32
		want float32
	}{
		{one, one, 2, 3},
		{above, above, 0, 1 + 0x1p-6 + 0x1p-14},
		{math.Float32bits(0x1p-24), one, 1, 1},                                   // a tie, to even
		{math.Float32bits(0x1p-24 + 0x1p-31), one, 1, 1 + 0x1p-23},               // just above it
		{math.Float32bits(0x1p-24), one, 1 + 0x1p-23, 1 + 0x1p-22},               // a tie, to even
		{math.Float32bits(-0x1p-60), one, 1, 1},                                  // lost in double precision
		{math.Float32bits(0x1p-100), math.Float32bits(0x1p-30), 0, 0},            // denormal
		{math.Float32bits(0x1p-127), math.Float32bits(0x1p+100), 0x1p-3, 0x1p-3}, // a denormal factor
	} {
		if got := fma(c.x, c.y, c.sum); got != c.want {
			t.Errorf("%x by %x and %v is %v, want %v", c.x, c.y, c.sum, got, c.want)
		}
	}
}

func BenchmarkPanel(b *testing.B) {
	h := Hardware()
	if h == nil {
		b.Skip("no hardware")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	b.Run("peak", func(b *testing.B) {
		var n int64
		for b.Loop() {
			n += h.Peak(1 << 22)
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e9, "GF/s")
	})
	for _, p := range program.All() {
		for _, rows := range []int{4, 8, 16} {
			for _, groups := range []int{1, 16} {
				s := shape{rows + (p.Tiles-1)*TileRows, 16, 16, 1, groups, false, 16}
				q := s.panel(rng, &p, false)
				q.ARow, q.BStrip = 17*16, 16*256
				q.CRow = groups * p.Strips * 16
				q.A = pairs(rng, 32*q.ARow, false)
				b.Run(fmt.Sprintf("%dx%d/%d/groups%d", p.Tiles, p.Strips, rows, groups), func(b *testing.B) {
					n := 0
					for b.Loop() {
						h.Run(q, p.Tiles, p.Strips)
						n++
					}
					flops := 2 * float64(s.rows) * float64(groups*p.Strips*16) * 512
					b.ReportMetric(float64(n)*flops/b.Elapsed().Seconds()/1e9, "GF/s")
				})
			}
		}
	}
}
