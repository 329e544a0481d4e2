package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A ruleOf is an optimiser's step, with its number of moments and the wanted result in double
// precision.
type ruleOf struct {
	name    string
	moments int
	run     func(k *Kernels, param, grad []float32, moment [][]float32, by *Coefficients)
	want    func(param, grad float64, moment []float64, by [coefficients]float64) float64
}

func rules() []ruleOf {
	return []ruleOf{
		{"descend", 0, func(k *Kernels, p, g []float32, _ [][]float32, by *Coefficients) { k.Descend(p, g, by) },
			func(p, g float64, _ []float64, by [coefficients]float64) float64 {
				return p - by[byRate]*by[byScale]*g
			}},
		{"momentum", 1, func(k *Kernels, p, g []float32, m [][]float32, by *Coefficients) { k.Momentum(p, m[0], g, by) },
			func(p, g float64, m []float64, by [coefficients]float64) float64 {
				m[0] = by[byBeta1]*m[0] + by[byScale]*g
				return p - by[byRate]*m[0]
			}},
		{"nesterov", 1, func(k *Kernels, p, g []float32, m [][]float32, by *Coefficients) { k.Nesterov(p, m[0], g, by) },
			func(p, g float64, m []float64, by [coefficients]float64) float64 {
				m[0] = by[byBeta1]*m[0] + by[byScale]*g
				return p - by[byRate]*(by[byScale]*g+by[byBeta1]*m[0])
			}},
		{"adam", 2, func(k *Kernels, p, g []float32, m [][]float32, by *Coefficients) { k.Adam(p, m[0], m[1], g, by) },
			func(p, g float64, m []float64, by [coefficients]float64) float64 {
				g *= by[byScale]
				m[0] = by[byBeta1]*m[0] + by[byRest1]*g
				m[1] = by[byBeta2]*m[1] + by[byRest2]*g*g
				return p - by[byRate]*m[0]/(math.Sqrt(m[1])*by[byRoot]+by[byEpsilon])
			}},
	}
}

// TestSteps: each rule gives the results of double precision and writes nothing outside its slices,
// for every number of elements after the last whole vector.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var by Coefficients
	by.Set(0.5, 0.25, 0.9, 0.999, 1.5, 1e-3)
	var exact [coefficients]float64
	for i, v := range by.step {
		exact[i] = float64(v)
	}
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, r := range rules() {
			for n := range 70 {
				param, intact := guarded(t, rng, n, n%3)
				grad, unread := guarded(t, rng, n, n%5)
				checks := []func(){intact, unread}
				var moment [][]float32
				for i := range r.moments {
					m, intact := guarded(t, rng, n, i)
					for j := range m {
						m[j] *= m[j] // mean squares are never negative
					}
					moment, checks = append(moment, m), append(checks, intact)
				}
				before, was := slices.Clone(param), make([][]float32, r.moments)
				for i := range was {
					was[i] = slices.Clone(moment[i])
				}
				given := slices.Clone(grad)
				r.run(k, param, grad, moment, &by)
				for _, check := range checks {
					check()
				}
				if !slices.Equal(grad, given) {
					t.Fatalf("%s of %d: the gradient has changed", r.name, n)
				}
				for i := range n {
					m := make([]float64, r.moments)
					for j := range m {
						m[j] = float64(was[j][i])
					}
					want := r.want(float64(before[i]), float64(grad[i]), m, exact)
					if step := math.Abs(want - float64(before[i])); math.Abs(float64(param[i])-want) > 0x1p-20*(step+math.Abs(want)) {
						t.Fatalf("%s of %d: element %d is %g, not %g", r.name, n, i, param[i], want)
					}
					for j := range m {
						if math.Abs(float64(moment[j][i])-m[j]) > 0x1p-20*(math.Abs(m[j])+math.Abs(float64(grad[i]))) {
							t.Fatalf("%s of %d: moment %d of element %d is %g, not %g", r.name, n, j, i, moment[j][i], m[j])
						}
					}
				}
			}
		}
	})
}

// TestNesterovInPieces: every element of long parameters takes one step, though the kernel goes piece by
// piece.
func TestNesterovInPieces(t *testing.T) {
	var by Coefficients
	by.Set(0.5, 0.25, 0.9, 0, 0, 0)
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, n := range []int{inCache - 1, inCache, inCache + 1, 2*inCache + 77} {
			param, first, grad := make([]float32, n), make([]float32, n), make([]float32, n)
			for i := range n {
				param[i], first[i], grad[i] = 1, float32(i%7), float32(i%5)
			}
			k.Nesterov(param, first, grad, &by)
			for i := range n {
				g, m := 0.5*float64(i%5), 0.9*float64(i%7)+0.5*float64(i%5)
				if want := 1 - 0.25*(g+0.9*m); math.Abs(float64(param[i])-want) > 1e-6 || math.Abs(float64(first[i])-m) > 1e-6 {
					t.Fatalf("of %d, element %d is %g with a moment of %g, not %g and %g", n, i, param[i], first[i], want, m)
				}
			}
		}
	})
}

// TestStepsOfNothing: with zero gradients parameters stay, moments that have decayed to denormal
// numbers become 0, and the processor's mode is restored.
func TestStepsOfNothing(t *testing.T) {
	const n, tiny = 37, 1e-41
	eachLevel(t, func(t *testing.T, k *Kernels) {
		var by Coefficients
		by.Set(1, 0.1, 0.9, 0.999, 2, 1e-8)
		for _, r := range rules() {
			for _, left := range []float32{0, tiny} {
				param, grad := slices.Repeat([]float32{1.5}, n), make([]float32, n)
				moment := [][]float32{slices.Repeat([]float32{left}, n), slices.Repeat([]float32{left}, n)}
				r.run(k, param, grad, moment, &by)
				if first, second := moment[0][0], moment[1][0]; r.moments > 0 && first != 0 || r.moments > 1 && second != 0 {
					t.Errorf("%s: moments of %g stay %g and %g", r.name, left, first, second)
				}
				if !slices.Equal(param, slices.Repeat([]float32{1.5}, n)) {
					t.Errorf("%s: with moments of %g, parameters become %v", r.name, left, param)
				}
			}
		}
		denormal := []float32{tiny}
		if k.Add(denormal, denormal, denormal); denormal[0] < 1.5*tiny {
			t.Errorf("a step leaves the processor in a mode where %g + %g is %g", tiny, tiny, denormal[0])
		}
	})
}

// TestAdamExtremes: mean squares of zero, and from the smallest number to beyond the largest, give
// the steps of double precision.
func TestAdamExtremes(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *Kernels) {
		var by Coefficients
		by.Set(1, 0.5, 0.5, 0.5, 1, 1e-8)
		for _, g := range []float32{0, 1e-25, -1e-18, 1e-10, 1, -1e10, 1e18, 3e19} {
			const n = 19
			param, first, second, grad := make([]float32, n), make([]float32, n), make([]float32, n), slices.Repeat([]float32{g}, n)
			k.Adam(param, first, second, grad, &by)
			square := min(0.5*float64(g)*float64(g), math.MaxFloat32)
			if square < 0x1p-126 { // denormal numbers count as 0
				square = 0
			}
			want := -0.5 * 0.5 * float64(g) / (math.Sqrt(square) + 1e-8)
			for i, v := range param {
				if infinite := square == math.MaxFloat32 && v == 0; !infinite && !(math.Abs(float64(v)-want) <= 0x1p-20*math.Abs(want)) {
					t.Fatalf("gradient %g: element %d is %g, not %g", g, i, v, want)
				}
			}
		}
	})
}

// TestSquares: sums of squares of any number of elements are right, and infinite if too large.
func TestSquares(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	eachLevel(t, func(t *testing.T, k *Kernels) {
		for _, n := range []int{0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 100, 1000} {
			a, _ := guarded(t, rng, n, n%4)
			want := 0.0
			for _, v := range a {
				want += float64(v) * float64(v)
			}
			if got := float64(k.Squares(a)); math.Abs(got-want) > 0x1p-20*want {
				t.Errorf("of %d: %g, not %g", n, got, want)
			}
		}
		if got := k.Squares([]float32{1, 1e30}); !math.IsInf(float64(got), 1) {
			t.Errorf("of 1e30: %g", got)
		}
	})
}

// BenchmarkSteps measures steps over slices that caches hold, also with moments that have decayed
// to denormal numbers.
func BenchmarkSteps(b *testing.B) {
	const n = 4096
	for _, k := range levels(b) {
		for _, r := range rules() {
			for _, left := range []float32{0, 1e-41} {
				b.Run(fmt.Sprintf("%s/%v/moments=%g", r.name, k.Level(), left), func(b *testing.B) {
					var by Coefficients
					by.Set(1, 0.1, 0.9, 0.999, 2, 1e-8)
					param, grad := make([]float32, n), make([]float32, n)
					moment := [][]float32{slices.Repeat([]float32{left}, n), slices.Repeat([]float32{left}, n)}
					b.SetBytes(int64(4 * n * (2 + r.moments)))
					for b.Loop() {
						r.run(k, param, grad, moment, &by)
					}
				})
			}
		}
	}
}
