package schedule

import (
	"fmt"
	"math"

	"rnnbench/rnn/cell"
)

// complete reports an operation that lacks what its own check and list of views take for granted:
// views, states, steps.
func complete(op Op) error {
	ok := false
	switch op := op.(type) {
	case Gemm:
		ok = present(op.A, op.B, op.C)
	case Pack:
		ok = present(op.Src, op.Dst)
	case Map:
		ok = op.complete()
	case MapChain:
		ok = true
		for _, m := range op.Steps {
			ok = ok && m.complete()
		}
	case SumRows:
		ok = present(op.A, op.Out)
	case Cell:
		ok = op.Cell != nil && len(op.Next) > 0 && present(op.Next[0])
	case CellBackward:
		ok = op.Cell != nil && len(op.Next) > 0 && present(op.Next[0])
	case Gather:
		ok = present(op.Index, op.Table, op.Out)
	case Scatter:
		ok = present(op.Index, op.Src, op.Table)
	case SoftmaxLoss:
		ok = present(op.Logits, op.Target, op.Loss, op.Prob)
	case CTCLoss:
		ok = present(op.Logits, op.Labels, op.Loss, op.Prob, op.Scratch)
	case Normalise:
		ok = present(op.X, op.Gain, op.Out)
	case NormaliseBackward:
		ok = present(op.X, op.Gain, op.Stats, op.DOut, op.DX, op.Share)
	case Squares:
		ok = present(op.A, op.Out)
	case Change:
		ok = present(op.A, op.B, op.Out)
	case Update:
		ok = op.Rule >= 0 && int(op.Rule) < len(Rules()) && present(op.Param, op.Grad, op.Rates) && present(op.Moment...)
	case AllReduce:
		ok = len(op.Sums) > 0 && present(op.Sums...)
	case Persistent:
		ok = op.Sequence.complete() && present(op.R...)
	case PersistentBackward:
		ok = op.Sequence.complete() && present(op.R) && op.SequenceGrad.complete(op.Cell)
	case Scan:
		ok = op.Sequence.complete()
	case ScanBackward:
		ok = op.Sequence.complete() && op.SequenceGrad.complete(op.Cell)
	case Vendor:
		ok = op.Stack.complete()
	case VendorBackward:
		ok = op.Stack.complete()
	case Foreign:
		ok = op.complete()
	case Pause:
		ok = true
	}
	if !ok {
		return fmt.Errorf("schedule: an operation (%T) lacks something that it needs", op)
	}
	return nil
}

// present reports whether all views have a matrix.
func present(views ...View) bool {
	for _, v := range views {
		if v.Empty() {
			return false
		}
	}
	return true
}

func (m Map) complete() bool {
	if !m.Op.Valid() || !present(m.Out) {
		return false
	}
	return present(m.Args()...)
}

func (s *Sequence) complete() bool {
	return s.Cell != nil && s.Steps >= 1 && s.Steps < math.MaxInt32 && len(s.State) > 0 && present(s.State...)
}

func (g *SequenceGrad) complete(c *cell.Cell) bool {
	return len(g.Carry) == len(c.States) && present(g.Carry...)
}

func (s *Stack) complete() bool {
	return s.Cell != nil && s.Steps >= 1 && len(s.W) > 0 && present(s.X, s.Y)
}
