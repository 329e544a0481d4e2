package cuda_test

import (
	"errors"
	"testing"
	"time"

	"rnnbench/rnn/schedule"
)

// transcribed is a schedule of CTC losses: of one step and of many, of few labels and of more than
// a thread each, in place and not.
func transcribed(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	for i, c := range []struct{ batch, steps, labels, classes int }{
		{1, 1, 1, 7}, {3, 1, 2, 33}, {33, 2, 1, 8}, {2, 31, 7, 300}, {2, 100, 40, 29}, {1, 301, 130, 7}, {1, 64, 700, 40}, {2, 1000, 20, 29},
	} {
		for _, grad := range []bool{true, false} {
			rows := c.batch * c.steps
			op := schedule.CTCLoss{
				Logits: b.Matrix("logits", rows, c.classes).All(), Labels: b.Matrix("transcripts", c.batch, c.labels).All(), Loss: b.Matrix("loss", c.batch, 1).All(),
				Scratch: b.Scratch("scratch", rows, schedule.CTCScratch(c.labels, grad)).All(), Grad: grad, Scale: 0.5,
			}
			if op.Prob = op.Logits; (i%2 == 0) == grad {
				op.Prob = b.Matrix("prob", rows, c.classes).All()
			}
			b.Do(0, op)
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCTCLoss holds losses of short and long transcripts to double precision, TestGPUCTCLoss on a GPU.
func TestCTCLoss(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, transcribed(t))
}

func TestGPUCTCLoss(t *testing.T) { holdAll(t, openGPU(t, time.Minute), transcribed(t)) }

// TestNarrowCTCLoss holds a loss of logits in 16 bits, which a product multiplies, to double precision.
func TestNarrowCTCLoss(t *testing.T) {
	d, _ := emulated(t)
	for _, precision := range []schedule.Precision{schedule.BF16, schedule.FP16} {
		b := schedule.NewBuilder(1)
		b.SetPrecision(precision)
		const batch, steps, classes = 3, 40, 29
		logits := b.Matrix("product of logits", batch*steps, classes).All()
		b.Do(0, schedule.CTCLoss{
			Logits: logits, Labels: b.Matrix("transcripts", batch, 12).All(), Loss: b.Matrix("product of losses", batch, 1).All(), Prob: logits,
			Scratch: b.Scratch("scratch", batch*steps, schedule.CTCScratch(12, true)).All(), Grad: true, Scale: 16,
		})
		b.Do(0, schedule.Gemm{A: logits, B: b.Matrix("weights", classes, 5).All(), C: b.Matrix("product", batch*steps, 5).All()})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		holdAll(t, d, s)
	}
}

// TestLongTranscriptsAreDeclined: a block cannot hold the variables of 10,000 labels.
func TestLongTranscriptsAreDeclined(t *testing.T) {
	b := schedule.NewBuilder(1)
	logits := b.Matrix("logits", 4, 5).All()
	b.Do(0, schedule.CTCLoss{
		Logits: logits, Labels: b.Matrix("labels", 2, 10000).All(), Loss: b.Matrix("loss", 2, 1).All(), Prob: logits,
		Scratch: b.Scratch("scratch", 4, schedule.CTCScratch(10000, true)).All(), Grad: true, Scale: 1,
	})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	d, _ := emulated(t)
	if _, err := d.Compile(s, nil); !errors.Is(err, schedule.ErrDevice) {
		t.Errorf("compiling gives %v", err)
	}
}
