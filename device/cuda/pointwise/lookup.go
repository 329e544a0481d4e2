package pointwise

import (
	"rnnbench/device/cuda/driver"
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

// Notes reports whether a scatter can note the rows that it adds to: its index is shorter than the
// table, so each number of the index has a block.
func Notes(op schedule.Scatter) bool { return op.Index.Rows < op.Table.Rows }

// Scatter adds rows to the rows of a table that an index names. There is a block for each row of
// the table, or for each number of the index if that is shorter. Unless noted is 0, it notes the
// rows there.
func Scatter(t *launch.Target, op schedule.Scatter, noted driver.Pointer) launch.Command {
	notes := ints.FromBool(noted != 0)
	if noted == 0 { // not touched
		noted = t.At(op.Table)
	}
	return launch.New(t.File(file, "scatter", "ENTRIES", ints.FromBool(Notes(op)), "NOTED", notes, "INDEX", t.Element(op.Index), "FROM", t.Element(op.Src), "TABLE", t.Element(op.Table)),
		[3]int{min(op.Index.Rows, op.Table.Rows), ints.CeilDiv(op.Src.Cols, launch.BlockSize), 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Src.Rows), uint64(op.Src.Cols), uint64(op.Table.Rows), uint64(t.At(op.Index)), uint64(op.Index.M.Cols),
		uint64(t.At(op.Src)), uint64(op.Src.M.Cols), uint64(t.At(op.Table)), uint64(op.Table.M.Cols), uint64(noted), t.Status())
}

// ZeroRows zeroes n rows of a table, whose numbers a scatter has noted.
func ZeroRows(t *launch.Target, table schedule.View, noted driver.Pointer, n int) launch.Command {
	width := 1
	if quads(t, table) {
		width = 4
	}
	l := launch.New(t.File(file, "zero_rows", "V", width), [3]int{n, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(table.Rows), uint64(table.Cols), uint64(t.At(table)), uint64(table.M.Cols), uint64(noted))
	l.Early = t.Properties.Capability >= 90
	return l
}
