package cpu

import (
	"math"

	"rnnbench/device/cpu/simd"
)

// A softmaxLoss is a schedule.SoftmaxLoss. Each share has rows of its own.
type softmaxLoss struct {
	kernels                            *simd.Kernels
	logits, target, loss, prob, weight matrix // weight has no data if all rows have weight 1
	groups                             int
	grad                               bool
	scale                              float32
	program                            *program
}

func (w *softmaxLoss) share(part, parts int, _ *scratch) {
	from, to := span(w.logits.rows, 1, part, parts)
	for i := from; i < to; i++ {
		scale, class := w.scale, -1
		if w.weight.data != nil {
			scale *= w.weight.row(i)[0]
		}
		if scale != 0 {
			k, ok := w.program.index(w.target.row(i)[0], w.logits.cols)
			if !ok {
				continue
			}
			class = k
		} else {
			w.loss.row(i)[0] = 0
		}
		w.row(i, class, scale)
	}
}

// row computes row i with its right class; -1: the row has no weight.
func (w *softmaxLoss) row(i, class int, scale float32) {
	size := w.logits.cols / w.groups
	for from := 0; from < w.logits.cols; from += size {
		logits, prob := w.logits.row(i)[from:from+size], w.prob.row(i)[from:from+size]
		mine := class >= from && class < from+size
		if w.grad && !mine {
			clear(prob)
			continue
		}
		right := float32(0)
		if mine {
			right = logits[class-from]
		}
		top := w.kernels.Max(logits)
		sum := w.kernels.ExpSum(prob, logits, top)
		if mine {
			w.loss.row(i)[0] = float32(math.Log(float64(sum)) + float64(top) - float64(right))
		}
		if w.grad {
			w.kernels.Scale(prob, prob, scale/sum)
			prob[class-from] -= scale
		} else {
			w.kernels.Scale(prob, prob, 1/sum)
		}
	}
}
