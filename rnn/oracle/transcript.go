package oracle

import (
	"math"

	"rnnbench/internal/parallel"
	"rnnbench/rnn"
	"rnnbench/rnn/ctc"
)

// transcribed is the loss of a sequence with a transcript, given the logits of its steps. Each row of
// them becomes probabilities. gradient has that of the loss for each logit. Behind the sequence's end
// the blank is certain, and there is no gradient.
func transcribed(logits [][]float64, target []float32, round ctc.Rounding) (loss float64, gradient [][]float64) {
	steps, labels := rnn.Transcript(target)
	loss, logProb, gradient := ctc.Loss(logits[:steps], labels, round)
	for t, row := range logits {
		if t >= steps {
			clear(row)
			row[0] = 1
			gradient = append(gradient, make([]float64, len(row)))
			continue
		}
		for k, x := range logProb[t] {
			row[k] = math.Exp(x)
		}
	}
	return loss, gradient
}

// transcripts turns logits into probabilities, losses and their gradients.
func transcripts(r *reference) {
	p, n, v := r.p, r.Distinct, r.p.Output
	r.loss, r.dLogits = make([]float64, n), make([]float64, len(r.prob))
	cols, target := 1+p.Transcript, r.Get("target")
	parallel.For(n, func(j int) {
		logits := make([][]float64, p.Steps)
		for t := range logits {
			logits[t] = r.prob[(t*n+j)*v:][:v]
		}
		loss, gradient := transcribed(logits, target[j*cols:][:cols], r.lossy.alignment())
		r.loss[j] = loss
		for t, row := range gradient {
			for k, g := range row {
				r.dLogits[(t*n+j)*v+k] = g / float64(p.Batch)
			}
		}
	})
}

// alignment rounds the logarithm of a probability of alignments as if its mantissa had single precision,
// beside an exponent. Logarithms in single precision would lose more.
func (v *rounding) alignment() ctc.Rounding {
	if v == nil {
		return nil
	}
	return func(log float64) float64 {
		if math.IsInf(log, 0) || math.IsNaN(log) {
			return log
		}
		exponent := math.Floor(log/math.Ln2) * math.Ln2
		mantissa := math.Exp(log - exponent)
		mantissa += noise(log) * errorOfExp * mantissa
		return exponent + math.Log(float64(float32(mantissa)))
	}
}

// alignmentFLOPs is roughly what a place of a transcript takes at a step: sums of exponentials in
// logarithms, forward and backward.
const alignmentFLOPs = 100

// alignments is the number of places that labels and the blanks around them have; 0: there are no
// transcripts.
func alignments(p rnn.Problem) int {
	if p.Transcript == 0 {
		return 0
	}
	return 2*p.Transcript + 1
}

// sequences checks losses of sequences with transcripts, and probabilities or, where training, gradients
// in place of probabilities. A sequence is checked at all of its steps. Some are, the first that is
// checked among them.
func sequences(c *stepper, flops float64, name string, prob []float64) {
	v, h, distinct := c.Output, c.Out(), c.distinct
	weight, bias, loss := c.data.Get("weight_out"), c.data.Get("bias_out"), c.tensor("loss").Values
	target, cols := c.data.Get("target"), 1+c.Transcript
	one := float64(c.Steps) * (2*float64(v)*float64(h) + 50*float64(v) + alignmentFLOPs*float64(alignments(c.Problem)))
	some := max(1, min(distinct, int(flops/one)))
	found := make([][]difference, some)
	parallel.For(some, func(i int) {
		j := (int(c.Seed%uint64(distinct)) + i) % distinct
		logits := make([][]float64, c.Steps)
		for t := range logits {
			for k := range v {
				logits[t] = append(logits[t], float64(bias[k])+dot(weight[k*h:], c.outputs[(t*distinct+j)*h:][:h]))
			}
		}
		wantLoss, gradient := transcribed(logits, target[j*cols:][:cols], nil)
		found[i] = make([]difference, 2)
		found[i][0].add(loss[j], wantLoss, j)
		for t, row := range logits {
			for k, want := range row {
				if c.Pass == rnn.Train {
					want = gradient[t][k] / float64(c.Batch)
				}
				at := (t*distinct+j)*v + k
				found[i][1].add(prob[at], want, at)
			}
		}
	})
	c.judge("loss", loss, 1, differences(found, 0))
	c.judge(name, prob, v, differences(found, 1))
	all := make([]int, c.Steps)
	for t := range all {
		all[t] = some
	}
	c.noteSteps(all)
}

// longer is what is expected of so many steps with transcripts, in place of the fewer that were measured.
// The loss is a sum over steps. Alignments pass all steps twice, and are rounded at each.
func longer(e *expectation, gradient bool, name string, measured, steps int) {
	if name == "loss" {
		e.size *= float64(steps) / float64(measured)
	}
	if gradient {
		e.error = math.Hypot(e.error, rnn.FP32.Epsilon()*math.Sqrt(2*float64(steps-measured)))
	}
}
