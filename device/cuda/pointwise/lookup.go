package pointwise

import (
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// Gather copies the rows of a table that an index names.
func Gather(t *launch.Target, op schedule.Gather) launch.Command {
	x := 32
	for x < launch.BlockSize && x < op.Out.Cols {
		x *= 2
	}
	y := launch.BlockSize / x
	return launch.New(t.File(file, "gather", "INDEX", t.Element(op.Index), "TABLE", t.Element(op.Table), "TO", t.Element(op.Out)),
		[3]int{ints.CeilDiv(op.Out.Cols, x), min(ints.CeilDiv(op.Out.Rows, y), launch.MaxGrid), 1}, [3]int{x, y, 1},
		uint64(op.Out.Rows), uint64(op.Out.Cols), uint64(op.Table.Rows), uint64(t.At(op.Index)), uint64(op.Index.M.Cols),
		uint64(t.At(op.Table)), uint64(op.Table.M.Cols), uint64(t.At(op.Out)), uint64(op.Out.M.Cols), t.Status())
}

// Scatter adds rows to the rows of a table that an index names: by blocks of the rows of the table, or of the
// index if that is shorter.
func Scatter(t *launch.Target, op schedule.Scatter) launch.Command {
	entries := op.Index.Rows < op.Table.Rows
	return launch.New(t.File(file, "scatter", "ENTRIES", ints.FromBool(entries), "INDEX", t.Element(op.Index), "FROM", t.Element(op.Src), "TABLE", t.Element(op.Table)),
		[3]int{min(op.Index.Rows, op.Table.Rows), ints.CeilDiv(op.Src.Cols, launch.BlockSize), 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Src.Rows), uint64(op.Src.Cols), uint64(op.Table.Rows), uint64(t.At(op.Index)), uint64(op.Index.M.Cols),
		uint64(t.At(op.Src)), uint64(op.Src.M.Cols), uint64(t.At(op.Table)), uint64(op.Table.M.Cols), t.Status())
}
