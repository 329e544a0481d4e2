package pointwise

import (
	"fmt"
	"math"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// ctcTurn is the seconds of a turn of the recursion, as instructions and the block's barrier add up. It
// is not measured.
const ctcTurn = 0.3e-6

// CTCLoss computes probabilities and the loss of each sequence or, with op.Grad, the loss and its
// gradient. A block's shared memory holds the variables of two steps.
func CTCLoss(t *launch.Target, op schedule.CTCLoss) ([]launch.Command, error) {
	const least, most = 128, 512 // threads that advance the variables of one way
	ways, places := 1, 2*op.Labels.Cols+1
	if op.Grad {
		ways = 2
	}
	threads := min(max(least, ints.CeilDiv(places, 32)*32), most)
	shared := 2*ways*places*8 + 2*op.Labels.Cols*4
	if shared > t.Properties.Shared {
		return nil, fmt.Errorf("cuda: %w: transcripts of %d labels need %d bytes of a block's shared memory, which has %d",
			schedule.ErrDevice, op.Labels.Cols, shared, t.Properties.Shared)
	}
	l := launch.New(t.File(file, "ctcloss", "WAYS", ways, "THREADS", threads, "EACH", ints.CeilDiv(places, threads),
		"LOGITS", t.Element(op.Logits), "LABEL", t.Element(op.Labels), "LOSS", t.Element(op.Loss), "PROB", t.Element(op.Prob)),
		[3]int{op.Labels.Rows, 1, 1}, [3]int{ways * threads, 1, 1},
		uint64(op.Labels.Rows), uint64(op.Steps()), uint64(op.Logits.Cols), uint64(op.Labels.Cols), uint64(t.At(op.Logits)), uint64(op.Logits.M.Cols),
		uint64(t.At(op.Labels)), uint64(op.Labels.M.Cols), uint64(t.At(op.Loss)), uint64(op.Loss.M.Cols), uint64(t.At(op.Prob)), uint64(op.Prob.M.Cols),
		uint64(t.At(op.Scratch)), uint64(op.Scratch.M.Cols), uint64(math.Float32bits(op.Scale)), t.Status())
	l.Launch.Shared = shared
	l.Seconds = float64(op.Steps()) * ctcTurn
	return []launch.Command{l}, nil
}
