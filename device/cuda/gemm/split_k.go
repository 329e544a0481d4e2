package gemm

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// A PartialSums is Parts matrices of Rows × Cols, one after another, and the matrix that receives
// their sum.
type PartialSums struct {
	Rows, Cols, Parts int
	From              driver.Pointer
	To                schedule.View
	Add               bool
}

// AddParts adds up partial sums in one launch.
func AddParts(t *launch.Target, sums []PartialSums) launch.Command {
	var all launch.Batch
	for _, s := range sums {
		width := 4
		if s.Cols%4 != 0 || s.To.M.Cols%4 != 0 || s.From%16 != 0 || t.At(s.To)%16 != 0 {
			width = 1
		}
		all.Add(fmt.Sprintf("add_parts<%d>", width), s.Rows, s.Cols, s.Parts, s.From, t.At(s.To), s.To.M.Cols, ints.FromBool(s.Add))
		all.Grid[0] = max(all.Grid[0], min(ints.CeilDiv(s.Rows*s.Cols, width*launch.BlockSize), launch.MaxGrid))
	}
	all.Grid[1], all.Grid[2], all.Block = 1, len(sums), [3]int{launch.BlockSize, 1, 1}
	return t.Batch("addparts", "int, int, int, const float*, float*, int, int", file("split_k").Text, all)
}
