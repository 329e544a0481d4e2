package rnn

import "math"

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

// classAt is the right class of a row, and the weight of its loss in that of the run. A row of
// weight 0 has class -1.
func (d *Data) classAt(row int) (class int, weight float64) {
	if !d.exists(row) {
		return -1, 0
	}
	weight = 1 / float64(d.Problem.Steps*d.Problem.Batch)
	if d.lengths != nil {
		weight = 1 / float64(d.steps)
	}
	if d.Problem.Weighted {
		weight = float64(d.Get("loss_weight")[row])
	}
	if weight == 0 {
		return -1, 0
	}
	return int(d.Get("target")[row]), weight
}

// meanLoss is the loss of a run, given the losses of rows of distinct sequences.
func (d *Data) meanLoss(losses []float64) float64 {
	if !d.Problem.Weighted && d.Problem.Lengths == "" {
		return mean(losses)
	}
	sum := 0.0
	for row, loss := range losses {
		_, weight := d.classAt(row)
		sum += weight * loss * d.copies(row%d.Distinct)
	}
	return sum
}
