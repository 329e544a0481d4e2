// Package ctc computes the loss of connectionist temporal classification (Graves et al. 2006) in double
// precision. Devices and techniques are compared with it.
package ctc

import "math"

// A Rounding changes the logarithm of a probability as an honest evaluation would; nil changes none.
type Rounding func(log float64) float64

func (r Rounding) of(log float64) float64 {
	if r == nil {
		return log
	}
	return r(log)
}

// Loss returns -log p(labels), the logarithms of the softmax of each step, and the gradient of the
// loss for the logits. It follows Graves et al. (2006), section 4.1, in logarithms. Class 0 is the
// blank. If there are fewer steps than Needs, the loss is infinite and its gradient is 0.
func Loss(logits [][]float64, labels []int, round Rounding) (loss float64, logProb, gradient [][]float64) {
	for _, row := range logits {
		sum := logSum(row...)
		log := make([]float64, len(row))
		for k, x := range row {
			log[k] = round.of(x - sum)
		}
		logProb = append(logProb, log)
	}
	extended := make([]int, 2*len(labels)+1) // a blank before, between and behind labels
	for u, k := range labels {
		extended[2*u+1] = k
	}
	forward := forwardVariables(logProb, extended, round)
	backward := backwardVariables(logProb, extended, round)
	last := forward[len(forward)-1]
	all := logSum(last[max(0, len(last)-2):]...)
	for t, log := range logProb {
		row := make([]float64, len(log))
		if !math.IsInf(all, -1) {
			for k, x := range log {
				row[k] = math.Exp(x)
			}
			for s, k := range extended {
				row[k] -= math.Exp(forward[t][s] + backward[t][s] - all)
			}
		}
		gradient = append(gradient, row)
	}
	return -all, logProb, gradient
}

// forwardVariables returns, for each step t and place s of the extended labels, the logarithm of the
// probability that steps 0 … t spell places 0 … s.
func forwardVariables(logProb [][]float64, extended []int, round Rounding) [][]float64 {
	all := make([][]float64, len(logProb))
	for t := range all {
		all[t] = make([]float64, len(extended))
		for s, k := range extended {
			sum := math.Inf(-1)
			switch {
			case t == 0 && s < 2:
				sum = 0
			case t > 0:
				from := all[t-1][max(0, s-1) : s+1]
				if skips(extended, s) {
					from = all[t-1][s-2 : s+1]
				}
				sum = logSum(from...)
			}
			all[t][s] = round.of(sum + logProb[t][k])
		}
	}
	return all
}

// backwardVariables returns, for each step t and place s, the logarithm of the probability that the
// steps behind t spell what is left at s.
func backwardVariables(logProb [][]float64, extended []int, round Rounding) [][]float64 {
	all, n := make([][]float64, len(logProb)), len(extended)
	for t := len(all) - 1; t >= 0; t-- {
		all[t] = make([]float64, n)
		for s := range extended {
			var to []float64
			for next := s; next < min(s+3, n); next++ {
				switch {
				case next == s+2 && !skips(extended, next):
				case t < len(all)-1:
					to = append(to, all[t+1][next]+logProb[t+1][extended[next]])
				}
			}
			if t == len(all)-1 && s >= n-2 {
				to = []float64{0}
			}
			all[t][s] = round.of(logSum(to...))
		}
	}
	return all
}

// skips reports whether an alignment may go from place s-2 to place s, without the blank between.
func skips(extended []int, s int) bool {
	return s >= 2 && extended[s] != 0 && extended[s] != extended[s-2]
}

// logSum is the logarithm of the sum of exponentials; of none, -∞.
func logSum(all ...float64) float64 {
	top, sum := math.Inf(-1), 0.0
	for _, x := range all {
		top = max(top, x)
	}
	if math.IsInf(top, -1) {
		return top
	}
	for _, x := range all {
		sum += math.Exp(x - top)
	}
	return top + math.Log(sum)
}

// Needs is the least number of steps that can spell labels: one for each label, and another one between
// two equal labels.
func Needs(labels []int) int {
	n := len(labels)
	for i := 1; i < len(labels); i++ {
		if labels[i] == labels[i-1] {
			n++
		}
	}
	return n
}
