package oracle

import (
	"math"

	"rnnbench/rnn"
)

// softmax replaces the logits of each group by probabilities. It returns the loss of class target,
// or 0 if target is negative.
func softmax(logits []float64, groups, target int) (loss float64) {
	size := len(logits) / max(1, groups)
	for from := 0; from < len(logits); from += size {
		part := logits[from : from+size]
		top, sum := math.Inf(-1), 0.0
		for _, z := range part {
			top = max(top, z)
		}
		for _, z := range part {
			sum += math.Exp(z - top)
		}
		if k := target - from; k >= 0 && k < size {
			loss = math.Log(sum) + top - part[k]
		}
		for k, z := range part {
			part[k] = math.Exp(z-top) / sum
		}
	}
	return loss
}

// lossGradient replaces the probabilities of a row by the gradient of its loss, times a weight.
func lossGradient(prob []float64, groups, target int, weight float64) {
	if weight == 0 {
		clear(prob)
		return
	}
	size := len(prob) / max(1, groups)
	for k := range prob {
		switch {
		case k/size != target/size:
			prob[k] = 0
		case k == target:
			prob[k] = (prob[k] - 1) * weight
		default:
			prob[k] *= weight
		}
	}
}

// meanLoss is the loss of a run, given the losses of rows of distinct sequences.
func meanLoss(d *rnn.Data, losses []float64) float64 {
	if !d.Problem.Weighted && d.Problem.Lengths == "" {
		return mean(losses)
	}
	sum := 0.0
	for row, loss := range losses {
		_, weight := d.Class(row)
		sum += weight * loss * d.Copies(row%d.Distinct)
	}
	return sum
}
