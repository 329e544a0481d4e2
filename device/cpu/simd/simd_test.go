package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// levels returns the kernels of every level of this machine up to AVX512. Levels above have the
// same kernels and a few more.
func levels(t testing.TB) []*Kernels {
	t.Helper()
	var ks []*Kernels
	for l := Generic; l <= Detect().Base(); l++ {
		k, err := For(l)
		if err != nil {
			t.Fatal(err)
		}
		ks = append(ks, k)
	}
	return ks
}

func eachLevel(t *testing.T, f func(t *testing.T, k *Kernels)) {
	for _, k := range levels(t) {
		t.Run(k.Level().String(), func(t *testing.T) { f(t, k) })
	}
}

func TestLevels(t *testing.T) {
	for l := Generic; l <= AMX; l++ {
		got, err := Parse(l.String())
		if err != nil || got != l {
			t.Errorf("Parse(%q) = %v, %v", l, got, err)
		}
	}
	if _, err := Parse("mmx"); err == nil {
		t.Error("Parse accepts an unknown name")
	}
	if _, err := For(detect() + 1); err == nil {
		t.Error("For accepts a level beyond the machine")
	}
	if Best().Level() != Detect() {
		t.Error("Best is not what was detected")
	}
}

// TestUsualLevel: pairs are not used if they are slow and there are no tiles.
func TestUsualLevel(t *testing.T) {
	for _, c := range []struct {
		machine Level
		slow    bool
		want    Level
	}{{AVX2, true, AVX2}, {AVX512, true, AVX512}, {AVX512BF16, true, AVX512}, {AVX512BF16, false, AVX512BF16}, {AMX, true, AMX}} {
		if got := usual(c.machine, c.slow); got != c.want {
			t.Errorf("%v with slow pairs %v: %v, want %v", c.machine, c.slow, got, c.want)
		}
	}
}

// TestNameCapsLevel: a name caps the machine's level, and an invalid name gives an error.
func TestNameCapsLevel(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine Level
		want    Level
		err     string
	}{
		{"", AVX512, AVX512, ""},
		{"avx2", AVX512, AVX2, ""},
		{"generic", AVX2, Generic, ""},
		{"avx2", AVX2, AVX2, ""},
		{"avx512", AVX2, AVX2, "RNNBENCH_SIMD=avx512: this machine supports avx2 at most"},
		{"mmx", AVX2, AVX2, "RNNBENCH_SIMD=mmx: choose among generic, avx2, avx512, avx512bf16, amx"},
	} {
		got, err := under(c.name, c.machine)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%q on %v: %v, %v", c.name, c.machine, got, err)
		}
	}
	if err := Check(); err != nil {
		t.Error(err)
	}
}

// guarded returns n random floats between guards, and a function that checks the guards. The first
// float is off floats after an aligned address.
func guarded(t *testing.T, rng *rand.Rand, n, off int) ([]float32, func()) {
	t.Helper()
	const guard = 40
	all := make([]float32, guard+off+n+guard)
	for i := range all {
		all[i] = -12345
	}
	s := all[guard+off:][:n:n]
	for i := range s {
		s[i] = float32(rng.NormFloat64())
	}
	return s, func() {
		t.Helper()
		for i, v := range all {
			if (i < guard+off || i >= guard+off+n) && v != -12345 {
				t.Fatalf("n %d: wrote outside, at %d", n, i-guard-off)
			}
		}
	}
}

// ulps returns the distance of got from want in units in the last place of want.
func ulps(got float32, want float64) float64 {
	if math.IsNaN(want) || math.IsNaN(float64(got)) {
		if math.IsNaN(want) && math.IsNaN(float64(got)) {
			return 0
		}
		return math.Inf(1)
	}
	g := float64(got)
	const top = 0x1p128
	g, want = min(max(g, -top), top), min(max(want, -top), top)
	e := max(-126, min(127, math.Ilogb(want)))
	return math.Abs(g-want) / math.Ldexp(1, e-23)
}

// The error bounds that the comments of Functions state.
const (
	expULPs     = 1
	sigmoidULPs = 2.5
	tanhULPs    = 2.6
)

// A pointwise is a kernel of one or two operands, and the function that it computes.
type pointwise struct {
	name   string
	unary  func(dst, a []float32)
	binary func(dst, a, b []float32)
	want1  func(x float64) float64
	want2  func(x, y float64) float64
	ulps   float64 // of the value, or of the greatest intermediate value
}

func TestPointwiseWithinBounds(t *testing.T) {
	relu := func(x float64) float64 { return max(x, 0) }
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	eachLevel(t, func(t *testing.T, k *Kernels) {
		exp := func(dst, a []float32) { k.ExpSum(dst, a, 0) }
		accumulate := func(dst, a, b []float32) {
			copy(dst, a)
			k.Accumulate(dst, b)
		}
		softplusGrad := func(dst, dy, y []float32) { // a softplus is never negative
			above := make([]float32, len(y))
			for i, v := range y {
				above[i] = float32(math.Abs(float64(v)))
			}
			k.SoftplusGrad(dst, dy, above)
		}
		for _, f := range []pointwise{
			{name: "Copy", unary: k.Copy, want1: func(x float64) float64 { return x }},
			{name: "OneMinus", unary: k.OneMinus, want1: func(x float64) float64 { return 1 - x }, ulps: .5},
			{name: "ReLU", unary: k.ReLU, want1: relu},
			{name: "ExpSum", unary: exp, want1: math.Exp, ulps: expULPs},
			{name: "Sigmoid", unary: k.Sigmoid, want1: sigmoid, ulps: sigmoidULPs},
			{name: "Tanh", unary: k.Tanh, want1: math.Tanh, ulps: tanhULPs},
			{name: "Exp", unary: k.Exp, want1: math.Exp, ulps: expULPs},
			{name: "Softplus", unary: k.Softplus, want1: func(x float64) float64 { return relu(x) + math.Log1p(math.Exp(-math.Abs(x))) }, ulps: 3},
			{name: "Sqrt", unary: k.Sqrt, want1: func(x float64) float64 { return math.Sqrt(relu(x)) }, ulps: .5},
			{name: "Scale", unary: func(dst, a []float32) { k.Scale(dst, a, 1.7) }, want1: func(x float64) float64 { return float64(float32(1.7)) * x }, ulps: .5},
			{name: "Add", binary: k.Add, want2: func(x, y float64) float64 { return x + y }, ulps: .5},
			{name: "Accumulate", binary: accumulate, want2: func(x, y float64) float64 { return x + y }, ulps: .5},
			{name: "Sub", binary: k.Sub, want2: func(x, y float64) float64 { return x - y }, ulps: .5},
			{name: "Mul", binary: k.Mul, want2: func(x, y float64) float64 { return x * y }, ulps: .5},
			{name: "Div", binary: k.Div, want2: func(x, y float64) float64 { return x / y }, ulps: .5},
			{name: "SigmoidGrad", binary: k.SigmoidGrad, want2: func(d, y float64) float64 { return d * y * float64(float32(1-y)) }, ulps: 2},
			{name: "SoftplusGrad", binary: softplusGrad, want2: func(d, y float64) float64 { return d * -math.Expm1(-math.Abs(y)) }, ulps: 6},
			{name: "SqrtGrad", binary: k.SqrtGrad, want2: func(d, y float64) float64 { return d / float64(max(2*float32(y), 0.001)) }, ulps: 1},
			{name: "ReLUGrad", binary: k.ReLUGrad, want2: func(d, y float64) float64 {
				if y > 0 {
					return d
				}
				return 0
			}},
		} {
			f.hold(t)
		}
	})
}

// hold compares f with its function, for vectors of many lengths, also in place.
func (f pointwise) hold(t *testing.T) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 130 {
		off := n % 17
		a, _ := guarded(t, rng, n, 3)
		b, _ := guarded(t, rng, n, 5)
		dst, check := guarded(t, rng, n, off)
		run := func(dst, a []float32) {
			if f.unary != nil {
				f.unary(dst, a)
			} else {
				f.binary(dst, a, b)
			}
		}
		run(dst, a)
		check()
		for i := range n {
			var want float64
			if f.unary != nil {
				want = f.want1(float64(a[i]))
			} else {
				want = f.want2(float64(a[i]), float64(b[i]))
			}
			if e := ulps(dst[i], want); e > f.ulps {
				t.Fatalf("%s n %d: [%d] = %v, want %v: %.2f ulp", f.name, n, i, dst[i], want, e)
			}
		}
		run(a, a) // in place
		if !slices.Equal(a, dst) {
			t.Fatalf("%s n %d: differs in place", f.name, n)
		}
	}
}

// TestTanhGradWithinBound: TanhGrad rounds once or twice, so its bound is relative to the operands.
func TestTanhGradWithinBound(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		rng := rand.New(rand.NewPCG(3, 4))
		for n := range 100 {
			a, _ := guarded(t, rng, n, 1)
			b, _ := guarded(t, rng, n, 2)
			dst, check := guarded(t, rng, n, n%16)
			k.TanhGrad(dst, a, b)
			for i := range dst {
				d, y := float64(a[i]), float64(b[i])
				want, bound := d*(1-y*y), 0x1p-22*math.Abs(d)*(1+y*y)
				if math.Abs(float64(dst[i])-want) > bound {
					t.Fatalf("n %d: [%d] = %v, want %v", n, i, dst[i], want)
				}
			}
			check()
		}
	})
}

func TestReductionsWithinBounds(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		rng := rand.New(rand.NewPCG(5, 6))
		for n := range 200 {
			a, _ := guarded(t, rng, n, n%7)
			dst, check := guarded(t, rng, n, 1)
			var sum, size, exps float64
			most := float32(math.Inf(-1))
			for i := range a {
				a[i] -= 3
				sum += float64(a[i])
				size += math.Abs(float64(a[i]))
				most = max(most, a[i])
			}
			eps := 0x1p-24 * float64(n+1)
			if got := k.Sum(a); math.Abs(float64(got)-sum) > eps*size {
				t.Fatalf("Sum n %d: %v, want %v", n, got, sum)
			}
			if got := k.Max(a); got != most {
				t.Fatalf("Max n %d: %v, want %v", n, got, most)
			}
			if n == 0 {
				most = 0
			}
			got := k.ExpSum(dst, a, most)
			check()
			for i := range a {
				exps += float64(dst[i])
				if e := ulps(dst[i], math.Exp(float64(a[i]-most))); e > expULPs {
					t.Fatalf("ExpSum n %d: [%d] %.2f ulp", n, i, e)
				}
			}
			if math.Abs(float64(got)-exps) > eps*exps {
				t.Fatalf("ExpSum n %d: %v, want %v", n, got, exps)
			}
		}
	})
}

// TestAccuracyOverAllExponents tests every exponent of both signs, infinities and NaN.
func TestAccuracyOverAllExponents(t *testing.T) {
	step := uint64(997) // a prime, so that all low bits occur
	if testing.Short() {
		step = 99991
	}
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, f := range []struct {
			name  string
			f     func(dst, a []float32)
			want  func(float64) float64
			bound float64
		}{
			{"ExpSum", func(dst, a []float32) { k.ExpSum(dst, a, 0) }, math.Exp, expULPs},
			{"Sigmoid", k.Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, sigmoidULPs},
			{"Tanh", k.Tanh, math.Tanh, tanhULPs},
		} {
			var worst float64
			var at float32
			x := make([]float32, 0, 4096)
			y := make([]float32, 4096)
			flush := func() {
				f.f(y[:len(x)], x)
				for i, v := range x {
					e := ulps(y[i], f.want(float64(v)))
					if e > worst {
						worst, at = e, v
					}
				}
				x = x[:0]
			}
			for u := uint64(0); u < 1<<32; u += step {
				if x = append(x, math.Float32frombits(uint32(u))); len(x) == cap(x) {
					flush()
				}
			}
			inf := float32(math.Inf(1))
			x = append(x, 0, float32(math.Copysign(0, -1)), inf, -inf, float32(math.NaN()), -float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32)
			flush()
			// More densely where the functions bend.
			for i := range 1 << 18 {
				if x = append(x, float32(i-1<<17)*0x1p-10); len(x) == cap(x) {
					flush()
				}
			}
			flush()
			t.Logf("%-8s %.3f ulp at %v", f.name, worst, at)
			if worst > f.bound {
				t.Errorf("%s: %.3f ulp at %v, want at most %v", f.name, worst, at, f.bound)
			}
		}
		zero := []float32{float32(math.Copysign(0, -1))}
		k.Tanh(zero, zero)
		if !math.Signbit(float64(zero[0])) {
			t.Error("tanh(-0) is not -0")
		}
	})
}

func TestTilesOfEveryShapeAreRight(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		rng := rand.New(rand.NewPCG(7, 8))
		for m := 1; m <= k.MaxRows(); m++ {
			for s := 1; s <= k.MaxStrips(m); s++ {
				for _, depth := range []int{1, 2, 3, 4, 5, 7, 8, 9, 31} {
					for _, last := range []int{1, 7, 8, 9, 16} {
						for form := range 8 {
							testTile(t, k, rng, m, s, depth, last, form, F32)
						}
						for form := range 4 {
							testTile(t, k, rng, m, s, depth, last, form, F16)
							testTile(t, k, rng, m, s, depth, last, form, BF16)
						}
					}
				}
			}
		}
	})
}

func testTile(t *testing.T, k *Kernels, rng *rand.Rand, m, s, depth, last, form int, format Format) {
	t.Helper()
	tile := &Tile{K: depth, Rows: m, Strips: s, Last: last, Accumulate: form&1 != 0, Format: format}
	tile.ARow, tile.ACol = depth+3, 1
	if form&2 != 0 {
		tile.ARow, tile.ACol = 1, m+1
	}
	tile.BStrip, tile.BStep = depth*StripWidth, StripWidth
	if form&4 != 0 {
		tile.BStrip, tile.BStep = StripWidth, s*StripWidth+1
	}
	bStrip, bStep := tile.BStrip, tile.BStep
	cols := (s-1)*StripWidth + last
	tile.CRow = cols + 5
	tile.A, _ = guarded(t, rng, (m-1)*tile.ARow+(depth-1)*tile.ACol+1, 0)
	tile.B, _ = guarded(t, rng, (s-1)*tile.BStrip+(depth-1)*tile.BStep+StripWidth, 1)
	for kk := range depth {
		for j := last; j < StripWidth; j++ {
			tile.B[(s-1)*tile.BStrip+kk*tile.BStep+j] = float32(math.NaN())
		}
	}
	b := tile.B
	if format != F32 {
		tile.BStrip, tile.BStep = tile.BStrip/2, tile.BStep/2
		tile.B, _ = guarded(t, rng, len(b)/2, 1)
		for i := range s {
			strip := b[i*bStrip:][:depth*StripWidth]
			k.Narrow(tile.B[i*tile.BStrip:], strip, format)
			k.Widen(strip, tile.B[i*tile.BStrip:], format)
		}
	}
	tile.Ahead = tile.B
	c, check := guarded(t, rng, (m-1)*tile.CRow+cols, 2)
	tile.C = c
	old := slices.Clone(c)
	k.Tile(tile)
	check()
	for i := range c {
		row, col := i/tile.CRow, i%tile.CRow
		if col >= cols {
			if c[i] != old[i] {
				t.Fatalf("%dx%d k %d last %d form %d: wrote between rows", m, s, depth, last, form)
			}
			continue
		}
		var sum, size float64
		if tile.Accumulate {
			sum = float64(old[i])
			size = math.Abs(sum)
		}
		for kk := range depth {
			p := float64(tile.A[row*tile.ARow+kk*tile.ACol]) * float64(b[bStrip*(col/StripWidth)+kk*bStep+col%StripWidth])
			sum += p
			size += math.Abs(p)
		}
		if d := math.Abs(float64(c[i]) - sum); !(d <= 0x1p-24*float64(depth+2)*size) {
			t.Fatalf("%dx%d k %d last %d form %d: C[%d,%d] = %v, want %v", m, s, depth, last, form, row, col, c[i], sum)
		}
	}
}

// TestHalvesAreExact multiplies every finite half by one and by powers of two. The half is the
// first or the second of a pair of rows, or in the last of an odd number of rows.
func TestHalvesAreExact(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		const rows = 3
		src, b, c := make([]float32, rows*StripWidth), make([]float32, rows*StripWidth/2), make([]float32, StripWidth)
		tile := &Tile{B: b, Ahead: b, C: c, ARow: rows, ACol: 1, BStrip: len(b), BStep: StripWidth / 2, CRow: StripWidth, K: rows, Rows: 1, Strips: 1, Last: StripWidth, Format: F16}
		for h := 0; h < 1<<16; h += len(src) {
			for i := range src {
				if src[i] = FromF16(uint16(h + i)); math.Abs(float64(src[i])) > 65504 || src[i] != src[i] {
					src[i] = 0
				}
			}
			k.Narrow(b, src, F16)
			for row := range rows {
				for _, x := range []float32{1, -0x1p-80, 0x1p47, 0x1p100} {
					tile.A = make([]float32, rows)
					tile.A[row] = x
					k.Tile(tile)
					for j, got := range c {
						if want := x * src[row*StripWidth+j]; got != want {
							t.Fatalf("row %d: %v by %v is %v, want %v", row, src[row*StripWidth+j], x, got, want)
						}
					}
				}
			}
		}
	})
}

// TestNarrowRoundsToEven compares Narrow, and then Widen, of every level with rounding in double
// precision. It tests every half and its neighbours, the midpoints between them, and larger values.
func TestNarrowRoundsToEven(t *testing.T) {
	var src []float32
	add := func(x float32) {
		src = append(src, x, math.Nextafter32(x, 100), math.Nextafter32(x, -100))
	}
	for h := range 1 << 16 {
		for _, x := range []float32{FromF16(uint16(h)), FromBF16(uint16(h))} {
			add(x)
		}
		for _, x := range []float64{float64(FromF16(uint16(h))) + float64(FromF16(uint16(h)+1)), float64(FromBF16(uint16(h))) + float64(FromBF16(uint16(h)+1))} {
			add(float32(x / 2))
		}
	}
	src = append(src, make([]float32, StripWidth-len(src)%StripWidth)...)
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, f := range []Format{F16, BF16} {
			dst, check := guarded(t, rand.New(rand.NewPCG(1, 1)), len(src)/2, 1)
			k.Narrow(dst, src, f)
			check()
			wide, check := guarded(t, rand.New(rand.NewPCG(1, 1)), len(src), 1)
			k.Widen(wide, dst, f)
			check()
			for i, got := range wide {
				want := rounded(float64(src[i]), f)
				if float64(got) != want && !(math.IsNaN(want) && math.IsNaN(float64(got))) || math.Signbit(float64(got)) != math.Signbit(float64(src[i])) {
					t.Fatalf("%v (%08x) as %v is %v, want %v", src[i], math.Float32bits(src[i]), f, got, want)
				}
			}
		}
	})
}

// rounded returns x rounded to the nearest value of a format, with ties to even.
func rounded(x float64, f Format) float64 {
	bits, least, most := 11, -24, 65504.0 // bits of mantissa with the leading one; exponent of the least value; largest value
	if f == BF16 {
		bits, least, most = 8, -133, 0x1.fep127
	}
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	_, e := math.Frexp(x)
	unit := math.Ldexp(1, max(e-bits, least))
	if y := math.RoundToEven(x/unit) * unit; math.Abs(y) <= most {
		return y
	}
	return math.Inf(int(math.Copysign(1, x)))
}

func TestDotsOfEveryShapeAreRight(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		rng := rand.New(rand.NewPCG(9, 10))
		for m := 1; m <= k.MaxDotRows(); m++ {
			for _, n := range []int{1, DotCols} {
				for depth := 1; depth < 140; depth++ {
					d := &Dot{K: depth, Rows: m, Cols: n, ARow: depth + 1, BRow: depth + 2, CRow: n + 3, Accumulate: depth%2 == 0}
					d.A, _ = guarded(t, rng, (m-1)*d.ARow+depth, 1)
					d.B, _ = guarded(t, rng, (n-1)*d.BRow+depth, 2)
					c, check := guarded(t, rng, (m-1)*d.CRow+n, 3)
					d.C = c
					old := slices.Clone(c)
					k.Dot(d)
					check()
					for i := range c {
						row, col := i/d.CRow, i%d.CRow
						if col >= n {
							if c[i] != old[i] {
								t.Fatalf("%dx%d k %d: wrote between rows", m, n, depth)
							}
							continue
						}
						var sum, size float64
						if d.Accumulate {
							sum = float64(old[i])
							size = math.Abs(sum)
						}
						for kk := range depth {
							p := float64(d.A[row*d.ARow+kk]) * float64(d.B[col*d.BRow+kk])
							sum += p
							size += math.Abs(p)
						}
						if diff := math.Abs(float64(c[i]) - sum); !(diff <= 0x1p-24*float64(depth+2)*size) {
							t.Fatalf("%dx%d k %d: C[%d,%d] = %v, want %v", m, n, depth, row, col, c[i], sum)
						}
					}
				}
			}
		}
	})
}

func TestMovesKeepEveryElement(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		rng := rand.New(rand.NewPCG(11, 12))
		for _, rows := range []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33} {
			for _, cols := range []int{1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 64, 65, 100, 130} {
				src, _ := guarded(t, rng, rows*(cols+3), 1)
				dst, check := guarded(t, rng, cols*(rows+2), 2)
				old := slices.Clone(dst)
				k.Transpose(dst, src, rows+2, cols+3, cols, rows)
				check()
				for i := range cols {
					for j := range rows + 2 {
						want := old[i*(rows+2)+j]
						if j < rows {
							want = src[j*(cols+3)+i]
						}
						if dst[i*(rows+2)+j] != want {
							t.Fatalf("Transpose %d×%d: [%d,%d] = %v, want %v", rows, cols, i, j, dst[i*(rows+2)+j], want)
						}
					}
				}

				strips := (cols + StripWidth - 1) / StripWidth
				packed, check := guarded(t, rng, strips*rows*StripWidth, 0)
				packs := func(name string, at func(i, j int) float32) {
					t.Helper()
					check()
					for i := range rows {
						for j := range strips * StripWidth {
							want := float32(0)
							if j < cols {
								want = at(i, j)
							}
							if got := packed[(j/StripWidth*rows+i)*StripWidth+j%StripWidth]; got != want {
								t.Fatalf("%s %d×%d: [%d,%d] = %v, want %v", name, rows, cols, i, j, got, want)
							}
						}
					}
				}
				k.Pack(packed, src[:(rows-1)*(cols+3)+cols], rows*StripWidth, cols+3, rows, cols)
				packs("Pack", func(i, j int) float32 { return src[i*(cols+3)+j] })
				src, _ = guarded(t, rng, cols*(rows+1), 1)
				k.PackTransposed(packed, src[:(cols-1)*(rows+1)+rows], rows*StripWidth, rows+1, rows, cols)
				packs("PackTransposed", func(i, j int) float32 { return src[j*(rows+1)+i] })
			}
		}
		for n := range 400 {
			src, _ := guarded(t, rng, n, 3)
			dst, check := guarded(t, rng, n, n%16)
			k.Stream(dst, src)
			check()
			if !slices.Equal(dst, src) {
				t.Fatalf("Stream of %d differs", n)
			}
		}
	})
}

func TestFMAPeak(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		if got := k.FMAPeak(1000); got < 1000 || got > 4000 {
			t.Errorf("FMAPeak(1000) did %d operations", got)
		}
	})
}

// FuzzPointwise compares the levels with each other on arbitrary bits.
func FuzzPointwise(f *testing.F) {
	f.Add(uint64(1), 7, uint32(0x7f800000), uint32(0x00000001))
	f.Add(uint64(2), 33, uint32(0xc2cff1b5), uint32(0x42b17218))
	f.Fuzz(func(t *testing.T, seed uint64, n int, x, y uint32) {
		n = int(uint(n) % 100)
		rng := rand.New(rand.NewPCG(seed, 0))
		a := make([]float32, n+2)
		for i := range n {
			a[i] = math.Float32frombits(rng.Uint32())
		}
		a[n], a[n+1] = math.Float32frombits(x), math.Float32frombits(y)
		dst := make([]float32, len(a))
		for _, k := range levels(t) {
			for name, f := range map[string]struct {
				f     func(dst, a []float32)
				want  func(float32) float32
				bound float64
			}{
				"ExpSum":  {func(dst, a []float32) { k.ExpSum(dst, a, 0) }, Exp, expULPs + .5},
				"Sigmoid": {k.Sigmoid, Sigmoid, sigmoidULPs + .5},
				"Tanh":    {k.Tanh, Tanh, tanhULPs + .5},
				"ReLU":    {k.ReLU, ReLU, 0},
			} {
				f.f(dst, a)
				for i := range a {
					if e := ulps(dst[i], float64(f.want(a[i]))); e > f.bound {
						t.Errorf("%v %s(%v) = %v: %.2f ulp", k.Level(), name, a[i], dst[i], e)
					}
				}
			}
		}
	})
}

func BenchmarkPointwise(b *testing.B) {
	const n = 4096
	x, y := make([]float32, n), make([]float32, n)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	for _, k := range levels(b) {
		for _, f := range []struct {
			name string
			f    func(dst, a []float32)
		}{
			{"Accumulate", k.Accumulate}, {"ExpSum", func(dst, a []float32) { k.ExpSum(dst, a, 0) }}, {"Sigmoid", k.Sigmoid}, {"Tanh", k.Tanh},
			{"Sum", func(_, a []float32) { k.Sum(a) }},
		} {
			b.Run(fmt.Sprintf("%s/%v", f.name, k.Level()), func(b *testing.B) {
				b.SetBytes(4 * n)
				for b.Loop() {
					f.f(y, x)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
			})
		}
	}
}

// TestSumRowsOfEqualTermsIsExactEnough sums rows of equal terms. Added one by one, all would be
// rounded the same way. It takes few rows and many, and fewer columns than part holds and more,
// with others beside them.
func TestSumRowsOfEqualTermsIsExactEnough(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, size := range [][2]int{{1, 1}, {3, 7}, {16, 40}, {17, 33}, {256, 9}, {257, 20}, {60001, 5}} {
			rows, cols := size[0], size[1]
			const beside, term, before = 2, 0.1, 3
			stride := cols + beside
			a, dst := make([]float32, rows*stride), make([]float32, cols)
			for i := range a {
				if a[i] = 1e30; i%stride < cols {
					a[i] = term
				}
			}
			for i := range dst {
				dst[i] = before
			}
			k.SumRows(dst, a, stride, rows, make([]float32, 16))
			want := before + float64(float32(term))*float64(rows)
			for i, v := range dst {
				// Half a unit in the last place for each of 256 terms, and for each of at most as
				// many sums.
				if off := math.Abs(float64(v)-want) / want; off > 256*0x1p-24 {
					t.Fatalf("%d rows of %d: sum %d is off by %.2g", rows, cols, i, off)
				}
			}
		}
	})
}
