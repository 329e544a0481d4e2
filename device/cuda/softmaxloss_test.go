package cuda_test

import (
	"testing"
	"time"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// losses is a schedule of losses over rows of all lengths that the kernel treats differently.
func losses(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	for i, cols := range []int{7, 255, 256, 257, 2312, 4096, 4097, 9001} {
		logits, prob, class := b.Matrix("logits", 3, cols).All(), b.Matrix("prob", 3, cols).All(), b.Matrix("class", 3, 1).All()
		if i%2 == 0 {
			prob = logits
		}
		op := schedule.SoftmaxLoss{Logits: logits, Target: class, Loss: b.Matrix("loss", 3, 1).All(), Prob: prob, Grad: i%3 == 0, Scale: 0.5}
		b.Do(0, op)
		if cols%2 == 0 { // the same in groups, with weights, some of them 0
			op.Logits, op.Loss = b.Matrix("logits", 3, cols).All(), b.Matrix("loss", 3, 1).All()
			op.Prob = op.Logits
			op.Groups, op.Weight = 2, b.Matrix("weight", 3, 1).All()
			if cols == 256 { // so that classes are in both the first and the second group
				op.Groups = cols / 4
			}
			b.Do(0, schedule.Map{Op: cell.ReLU, Out: op.Weight, A: op.Weight})
			b.Do(0, op)
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSoftmaxLoss holds losses of short and long rows to double precision, TestGPUSoftmaxLoss on a GPU.
func TestSoftmaxLoss(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, losses(t))
}

func TestGPUSoftmaxLoss(t *testing.T) { holdAll(t, openGPU(t, time.Minute), losses(t)) }
