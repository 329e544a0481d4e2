package cell

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMinGRUInLogarithms compares mingru with its logarithmic form (Feng et al. 2024, appendix B):
// log h = A + log Σ exp(log z + log g - A'). The sum is over all steps so far, and A sums the
// logarithms of 1-z up to a step. That form is no recurrence, so it shares only the gates with the
// equations.
func TestMinGRUInLogarithms(t *testing.T) {
	const steps = 400
	rng := rand.New(rand.NewPCG(1, 5))
	h := []float64{rng.Float64() + 0.1}
	var terms []float64 // logarithms, less the sum so far
	sum := 0.0
	terms = append(terms, math.Log(h[0]))
	for range steps {
		x := []float64{4 * rng.NormFloat64(), 4 * rng.NormFloat64()}
		next := make([]float64, 1)
		MinGRU.Equations(x, nil, nil, h, next)
		h = next
		sum -= softplus(x[0]) // log(1-z)
		logG := -softplus(-x[1])
		if x[1] >= 0 {
			logG = math.Log(x[1] + 0.5)
		}
		terms = append(terms, -softplus(-x[0])+logG-sum)
		top, total := math.Inf(-1), 0.0
		for _, v := range terms {
			top = max(top, v)
		}
		for _, v := range terms {
			total += math.Exp(v - top)
		}
		if want := math.Exp(sum + top + math.Log(total)); math.Abs(h[0]-want) > 1e-9*want {
			t.Fatalf("state is %v, %v by logarithms", h[0], want)
		}
	}
}

// TestScannedGradients compares the gradients that a scan of rg-lru writes step by step with the
// sums that the cell forms.
func TestScannedGradients(t *testing.T) {
	c, s := RGLRU, RGLRU.Scanned
	if s.Gradients() != len(c.Gates)+1 || c.Gradients() != len(c.Gates) {
		t.Fatalf("gradients: %d and %d", s.Gradients(), c.Gradients())
	}
	for seed := range uint64(20) {
		u := random(c, rand.New(rand.NewPCG(seed, 6)))
		*u.at(Ref{DPeep, 0}) = 3
		c.Forward.Eval(u.at)
		c.Backward.Eval(u.at)
		want := unit{}
		for ref, v := range u {
			*want.at(ref) = *v
		}
		s.Backward.Eval(u.at)
		if got, want := *u.at(Ref{DX, len(c.Gates)}), *want.at(Ref{DPeep, 0})-3; math.Abs(got-want) > 1e-12 {
			t.Errorf("gradient of L is %v, want %v", got, want)
		}
		for _, ref := range []Ref{{DX, 0}, {DX, 1}, {DX, 2}, {DPrev, 0}} {
			if *u.at(ref) != *want.at(ref) {
				t.Errorf("%v is %v, want %v", ref, *u.at(ref), *want.at(ref))
			}
		}
	}
}
