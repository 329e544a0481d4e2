package pointwise

import (
	"math"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// SoftmaxLoss computes probabilities and the loss or, with op.Grad, the loss and its gradient.
func SoftmaxLoss(t *launch.Target, op schedule.SoftmaxLoss) launch.Command {
	grad := uint64(0)
	if op.Grad {
		grad = 1
	}
	groups, weight := max(1, op.Groups), op.Weight
	if weight.Empty() { // never read; the target stands in
		weight = op.Target
	}
	cols := op.Logits.Cols / groups
	l := launch.New(rowKernel(t, "softmaxloss", cols, "WEIGHTED", ints.FromBool(!op.Weight.Empty()), "LOGITS", t.Element(op.Logits), "TARGET", t.Element(op.Target),
		"LOSS", t.Element(op.Loss), "PROB", t.Element(op.Prob), "WEIGHT", t.Element(weight)),
		[3]int{op.Logits.Rows * groups, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Logits.Rows), uint64(groups), uint64(cols), uint64(t.At(op.Logits)), uint64(op.Logits.M.Cols),
		uint64(t.At(op.Target)), uint64(op.Target.M.Cols), uint64(t.At(op.Loss)), uint64(op.Loss.M.Cols),
		uint64(t.At(op.Prob)), uint64(op.Prob.M.Cols), uint64(t.At(weight)), uint64(weight.M.Cols), grad, uint64(math.Float32bits(op.Scale)), t.Status())
	l.Early = t.Properties.Capability >= 90
	return l
}
