package pointwise

import (
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// Transpose writes the transpose of src to dst.
func Transpose(t *launch.Target, src, dst schedule.View) launch.Command {
	return launch.New(t.File(file, "transpose", "FROM", t.Element(src), "TO", t.Element(dst)),
		[3]int{ints.CeilDiv(src.Cols, 32), min(ints.CeilDiv(src.Rows, 32), launch.MaxGrid), 1}, [3]int{32, 8, 1},
		uint64(src.Rows), uint64(src.Cols), uint64(t.At(src)), uint64(src.M.Cols), uint64(t.At(dst)), uint64(dst.M.Cols))
}
