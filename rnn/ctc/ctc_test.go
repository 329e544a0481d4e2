package ctc

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCTC holds the loss to the sum over all alignments, and its gradient to central differences.
func TestCTC(t *testing.T) {
	const classes = 3
	rng := rand.New(rand.NewPCG(1, 2))
	for steps := 1; steps <= 6; steps++ {
		for _, labels := range [][]int{{}, {1}, {2}, {1, 2}, {1, 1}, {2, 1, 2}, {1, 1, 2}, {2, 2, 2}} {
			logits := make([][]float64, steps)
			for i := range logits {
				for range classes {
					logits[i] = append(logits[i], 4*rng.Float64()-2)
				}
			}
			loss, _, gradient := Loss(logits, labels, nil)
			want := -math.Log(alignments(logits, nil, labels))
			if !(math.Abs(loss-want) <= 1e-12*want) && loss != want {
				t.Errorf("%d steps, %v: the loss is %v, want %v", steps, labels, loss, want)
			}
			if needs := Needs(labels); math.IsInf(loss, 1) != (steps < needs) {
				t.Errorf("%d steps, %v, which needs %d: the loss is %v", steps, labels, needs, loss)
			}
			checkGradient(t, logits, labels, gradient)
		}
	}
}

// alignments returns the probability of labels: the sum over all classes of the steps behind path.
func alignments(logits [][]float64, path, labels []int) float64 {
	if len(path) == len(logits) {
		if !slices.Equal(collapsed(path), labels) {
			return 0
		}
		p := 1.0
		for t, k := range path {
			p *= math.Exp(logits[t][k] - logSum(logits[t]...))
		}
		return p
	}
	sum := 0.0
	for k := range logits[0] {
		sum += alignments(logits, append(slices.Clone(path), k), labels)
	}
	return sum
}

// collapsed removes repetitions, then blanks.
func collapsed(path []int) []int {
	labels := []int{}
	for i, k := range path {
		if k != 0 && (i == 0 || k != path[i-1]) {
			labels = append(labels, k)
		}
	}
	return labels
}

// checkGradient holds the gradient to central differences. An infinite loss has a gradient of 0.
func checkGradient(t *testing.T, logits [][]float64, labels []int, gradient [][]float64) {
	t.Helper()
	const by = 1e-5
	for i, row := range logits {
		for k, x := range row {
			row[k] = x + by
			above, _, _ := Loss(logits, labels, nil)
			row[k] = x - by
			below, _, _ := Loss(logits, labels, nil)
			row[k] = x
			want := (above - below) / (2 * by)
			if math.IsInf(above, 1) {
				want = 0
			}
			if got := gradient[i][k]; !(math.Abs(got-want) <= 1e-8) {
				t.Errorf("%d steps, %v: the gradient of step %d, class %d is %v, want %v", len(logits), labels, i, k, got, want)
			}
		}
	}
}
