package oracle

import "testing"

// TestChooseEdges: the first and the last steps are compared whole, as many of each as a quarter of
// all whole steps.
func TestChooseEdges(t *testing.T) {
	const steps, of = 100, 10
	for _, whole := range []int{2, 8, 20, 40} {
		plan := choose(1, steps, of, float64(2*whole*of))
		for i := range max(1, whole/4) {
			if plan[i] != of || plan[steps-1-i] != of {
				t.Errorf("%d whole steps: of steps %d and %d, %d and %d of %d values are compared", whole, i, steps-1-i, plan[i], plan[steps-1-i], of)
			}
		}
	}
}
