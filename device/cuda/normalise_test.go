package cuda_test

import (
	"testing"
	"time"

	"rnnbench/rnn/schedule"
)

// normalised is a schedule of normalisations and their gradients, over rows of all lengths that the
// kernels treat differently, in place and not.
func normalised(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	for i, cols := range []int{7, 255, 256, 257, 2312, 4096, 4097, 9001} {
		at := func(rows, cols int) schedule.View { return b.Matrix("v", rows, cols).All() }
		op := schedule.Normalise{X: at(3, cols), Gain: at(1, cols), Out: at(3, cols), Stats: at(3, 2)}
		b.Do(0, op)
		back := schedule.NormaliseBackward{DOut: op.Out, X: op.X, Gain: op.Gain, Stats: op.Stats, DX: at(3, cols), Share: op.X}
		if i%2 == 0 {
			back.DX, back.Share = op.Out, at(3, cols)
		}
		b.Do(0, back)
		b.Do(0, schedule.Gemm{A: back.DX, B: at(5, cols), TransB: true, C: at(3, 5)}) // with 16 bits where products have
		op.X, op.Stats = at(2, cols), schedule.View{}
		op.Out = op.X
		b.Do(0, op)
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNormalise holds normalisations of short and long rows to double precision, TestGPUNormalise on a
// GPU.
func TestNormalise(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, normalised(t))
}

func TestGPUNormalise(t *testing.T) { holdAll(t, openGPU(t, time.Minute), normalised(t)) }
