package pointwise

import (
	"math"

	"rnnbench/device/cuda/codegen"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// rowKernel returns a kernel of a block per row of so many columns. A thread keeps its values in
// registers if they are not too many.
func rowKernel(t *launch.Target, name string, cols int, defines ...any) *codegen.Source {
	each := ints.CeilDiv(cols, launch.BlockSize)
	if each > 16 {
		each = 0
	}
	defines = append([]any{"EACH", each}, defines...)
	return t.Source(func() codegen.Source {
		return codegen.Source{Name: name, Text: codegen.Defines(defines...) + file("row").Text + file(name).Text}
	}, append([]any{name, " "}, defines...)...)
}

// Normalise normalises rows.
func Normalise(t *launch.Target, op schedule.Normalise) launch.Command {
	stats := op.Stats
	if stats.Empty() { // never written; the gain stands in
		stats = op.Gain
	}
	l := launch.New(rowKernel(t, "normalise", op.X.Cols, "KEPT", ints.FromBool(!op.Stats.Empty()), "FROM", t.Element(op.X), "GAIN", t.Element(op.Gain), "TO", t.Element(op.Out)),
		[3]int{op.X.Rows, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.X.Rows), uint64(op.X.Cols), uint64(t.At(op.X)), uint64(op.X.M.Cols), uint64(t.At(op.Gain)), uint64(t.At(op.Out)), uint64(op.Out.M.Cols),
		uint64(t.At(stats)), uint64(stats.M.Cols), uint64(math.Float32bits(schedule.NormEpsilon)))
	l.Early = t.Properties.Capability >= 90
	return l
}

// NormaliseBackward forms the gradient of Normalise.
func NormaliseBackward(t *launch.Target, op schedule.NormaliseBackward) launch.Command {
	l := launch.New(rowKernel(t, "normalise_backward", op.X.Cols, "DOUT", t.Element(op.DOut), "FROM", t.Element(op.X), "GAIN", t.Element(op.Gain), "DX", t.Element(op.DX), "SHARE", t.Element(op.Share)),
		[3]int{op.X.Rows, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.X.Rows), uint64(op.X.Cols), uint64(t.At(op.DOut)), uint64(op.DOut.M.Cols), uint64(t.At(op.X)), uint64(op.X.M.Cols), uint64(t.At(op.Gain)),
		uint64(t.At(op.Stats)), uint64(op.Stats.M.Cols), uint64(t.At(op.DX)), uint64(op.DX.M.Cols), uint64(t.At(op.Share)), uint64(op.Share.M.Cols))
	l.Early = t.Properties.Capability >= 90
	return l
}
