package simd

import "math"

// Steps are the kernels of optimisers' steps. Denormal moments become zeros, and denormal
// parameters may.
type Steps struct {
	descend  func(param, grad []float32, by *[coefficients]float32)
	momentum func(param, first, grad []float32, by *[coefficients]float32)
	adam     func(param, first, second, grad []float32, by *[coefficients]float32)
	squares  func(a []float32) float32
}

// The coefficients of a step, in the order that the assembly uses.
const (
	byScale = iota
	byRate
	byBeta1
	byRest1
	byBeta2
	byRest2
	byRoot
	byEpsilon
	coefficients
)

// Coefficients are the factors of a step, and the same at beta1 times the rate, for Nesterov.
type Coefficients struct{ step, ahead [coefficients]float32 }

// Set sets them from the values of schedule.Update and its rates. SGD uses no beta2, root and
// epsilon.
func (c *Coefficients) Set(scale, rate, beta1, beta2, root, epsilon float32) {
	c.step = [coefficients]float32{
		byScale: scale, byRate: rate, byBeta1: beta1, byRest1: 1 - beta1, byBeta2: beta2, byRest2: 1 - beta2, byRoot: root, byEpsilon: epsilon,
	}
	c.ahead = c.step
	c.ahead[byRate] *= beta1
}

// Descend is param[i] -= rate·scale·grad[i].
func (s *Steps) Descend(param, grad []float32, by *Coefficients) {
	s.descend(param, grad[:len(param)], &by.step)
}

// Momentum is first[i] = beta1·first[i] + scale·grad[i]; param[i] -= rate·first[i].
func (s *Steps) Momentum(param, first, grad []float32, by *Coefficients) {
	s.momentum(param, first[:len(param)], grad[:len(param)], &by.step)
}

// inCache is how many elements of a parameter, its moment and its gradient the nearest cache holds.
const inCache = 2048

// Nesterov is first[i] = beta1·first[i] + scale·grad[i]; param[i] -= rate·(scale·grad[i] + beta1·first[i]).
// That is a step of Momentum at beta1 times the rate, and then one of Descend, which finds its
// elements in the cache.
func (s *Steps) Nesterov(param, first, grad []float32, by *Coefficients) {
	for len(param) > 0 {
		n := min(inCache, len(param))
		s.momentum(param[:n], first[:n], grad[:n], &by.ahead)
		s.descend(param[:n], grad[:n], &by.step)
		param, first, grad = param[n:], first[n:], grad[n:]
	}
}

// Adam is a step of schedule.Adam, with g = scale·grad[i]:
//
//	first[i] = beta1·first[i] + (1-beta1)·g
//	second[i] = beta2·second[i] + (1-beta2)·g²
//	param[i] -= rate·first[i] / (√second[i]·root + epsilon)
func (s *Steps) Adam(param, first, second, grad []float32, by *Coefficients) {
	s.adam(param, first[:len(param)], second[:len(param)], grad[:len(param)], &by.step)
}

// Squares returns the sum of the squares of a. The order of addition depends on the level alone.
func (s *Steps) Squares(a []float32) float32 { return s.squares(a) }

func stepsGeneric() Steps {
	return Steps{descend: descendGeneric, momentum: momentumGeneric, adam: adamGeneric, squares: squaresGeneric}
}

func descendGeneric(param, grad []float32, by *[coefficients]float32) {
	scale, rate := by[byScale], by[byRate]
	for i, g := range grad {
		param[i] -= rate * (scale * g)
	}
}

// normal returns v, or 0 if v is denormal. Moments that nothing adds to decay to such numbers and
// stay there, and arithmetic with them takes a hundred times as long.
func normal(v float32) float32 {
	const least = 0x1p-126
	if v < least && v > -least {
		return 0
	}
	return v
}

func momentumGeneric(param, first, grad []float32, by *[coefficients]float32) {
	scale, rate, beta := by[byScale], by[byRate], by[byBeta1]
	for i, g := range grad {
		m := normal(beta*first[i] + scale*g)
		first[i] = m
		param[i] -= rate * m
	}
}

func adamGeneric(param, first, second, grad []float32, by *[coefficients]float32) {
	for i, g := range grad {
		g *= by[byScale]
		m := normal(by[byBeta1]*first[i] + by[byRest1]*g)
		v := normal(by[byBeta2]*second[i] + by[byRest2]*g*g)
		first[i], second[i] = m, v
		param[i] -= by[byRate] * m / (float32(math.Sqrt(float64(v)))*by[byRoot] + by[byEpsilon])
	}
}

// squaresGeneric adds to four sums, so that additions overlap.
func squaresGeneric(a []float32) float32 {
	var s [4]float32
	for len(a) >= 4 {
		for i := range s {
			s[i] += a[i] * a[i]
		}
		a = a[4:]
	}
	for _, v := range a {
		s[0] += v * v
	}
	return s[0] + s[1] + s[2] + s[3]
}
