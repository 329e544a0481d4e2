package pointwise

import (
	"math"

	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// Squares sums the squares of a matrix, a block a band of its rows.
func Squares(t *launch.Target, op schedule.Squares) launch.Command {
	l := launch.New(t.File(file, "squares", "FROM", t.Element(op.A), "OUT", t.Element(op.Out)),
		[3]int{op.Out.Cols, 1, 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.A.Rows), uint64(op.A.Cols), uint64(t.At(op.A)), uint64(op.A.M.Cols), uint64(t.At(op.Out)), uint64(op.Out.Cols))
	l.Early = t.Properties.Capability >= 90
	return l
}

// Update changes a parameter by its gradient.
func Update(t *launch.Target, op schedule.Update) launch.Command {
	// What there is none of is passed as the parameter, and not touched.
	also, first, second, squares, parts := op.Param, op.Param, op.Param, op.Rates, 0
	if !op.Copy.Empty() {
		also = op.Copy
	}
	if len(op.Moment) > 0 {
		first = op.Moment[0]
	}
	if len(op.Moment) > 1 {
		second = op.Moment[1]
	}
	if !op.Squares.Empty() {
		squares, parts = op.Squares, op.Squares.Cols
	}
	const most = 1024 // blocks down the rows: some hundred thousand threads are enough
	l := launch.New(t.File(file, "update", "MOMENTS", len(op.Moment), "COPIES", ints.FromBool(!op.Copy.Empty()), "PARAM", t.Element(op.Param), "COPY", t.Element(also),
		"GRAD", t.Element(op.Grad), "FIRST", t.Element(first), "SECOND", t.Element(second), "RATES", t.Element(op.Rates), "SQUARES", t.Element(squares)),
		[3]int{ints.CeilDiv(op.Param.Cols, launch.BlockSize), min(op.Param.Rows, most), 1}, [3]int{launch.BlockSize, 1, 1},
		uint64(op.Param.Rows), uint64(op.Param.Cols), uint64(t.At(op.Param)), uint64(op.Param.M.Cols), uint64(t.At(also)), uint64(also.M.Cols),
		uint64(t.At(op.Grad)), uint64(op.Grad.M.Cols), uint64(t.At(first)), uint64(first.M.Cols), uint64(t.At(second)), uint64(second.M.Cols),
		uint64(t.At(op.Rates)), uint64(t.At(squares)), uint64(parts),
		uint64(math.Float32bits(op.Beta1)), uint64(math.Float32bits(op.Beta2)), uint64(math.Float32bits(op.Epsilon)))
	l.Early = t.Properties.Capability >= 90
	return l
}
