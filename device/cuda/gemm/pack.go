package gemm

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/schedule"
)

// AddPacking adds a call to calls that packs a right factor at address to. With trans, the terms of
// sums lie along the factor's rows. absmax has its largest value; own receives its scale.
func AddPacking(t *launch.Target, calls *launch.Batch, from schedule.View, trans bool, to, absmax, own driver.Pointer) {
	terms, columns, term, column := from.Rows, from.Cols, from.M.Cols, 1
	if trans {
		terms, columns, term, column = from.Cols, from.Rows, 1, from.M.Cols
	}
	calls.Add("right_pieces", terms, columns, t.At(from), term, column, to, absmax, own)
	calls.Grid = [3]int{max(calls.Grid[0], ints.CeilDiv(ints.CeilDiv(terms, StageTerms), 2)), max(calls.Grid[1], ints.CeilDiv(columns, blockColumns)), len(calls.Calls)}
	calls.Block = [3]int{launch.BlockSize, 1, 1}
}

// PackOperands packs right factors in one launch. along says that terms lie along the rows of the
// left factors, which decides the order of packed terms.
func PackOperands(t *launch.Target, calls launch.Batch, along bool) launch.Command {
	return t.Batch("rightpieces", "int, int, const float*, long long, long long, quad*, const float*, float*", file("scales", "V", 1, "ALONG", ints.FromBool(along)).Text+file("pack_operand").Text, calls)
}

// PackRight packs a right factor for SplitKernel. Unless 0, largest has its largest value; else it
// is found first.
func PackRight(t *launch.Target, op schedule.Pack, largest driver.Pointer) (list []launch.Command) {
	_, absmax := PackedBytes(op.Dst.Cols, op.Dst.Rows)
	to := t.At(op.Dst)
	own := to + driver.Pointer(absmax)
	if largest == 0 {
		largest, list = own, append(list, Largest(t, op.Src, own))
	}
	var call launch.Batch
	AddPacking(t, &call, op.Src, op.Trans, to, largest, own)
	return append(list, PackOperands(t, call, true))
}

// PackRights packs several right factors for SplitKernel in two launches, or in one if largest has
// the largest values of all of them.
func PackRights(t *launch.Target, ops []schedule.Op, largest func(schedule.View) driver.Pointer) (list []launch.Command) {
	var look, split launch.Batch
	width := 4
	looked := map[schedule.View]driver.Pointer{} // where each source's largest value is
	for _, op := range ops {
		op := op.(schedule.Pack)
		to := t.At(op.Dst)
		_, absmax := PackedBytes(op.Dst.Cols, op.Dst.Rows)
		if at := largest(op.Src); at != 0 {
			looked[op.Src] = at
		}
		if looked[op.Src] == 0 {
			looked[op.Src] = to + driver.Pointer(absmax)
			look.Add("largest_flat", op.Src.Rows*op.Src.Cols, t.At(op.Src), to+driver.Pointer(absmax))
			if op.Src.Rows*op.Src.Cols%4 != 0 || t.At(op.Src)%16 != 0 {
				width = 1
			}
		}
		AddPacking(t, &split, op.Src, op.Trans, to, looked[op.Src], to+driver.Pointer(absmax))
	}
	if len(look.Calls) > 0 {
		look.Grid, look.Block = [3]int{128, 1, len(look.Calls)}, [3]int{launch.BlockSize, 1, 1}
		list = append(list, t.Batch("largest", "int, const float*, float*", file("scales", "V", width).Text, look))
	}
	return append(list, PackOperands(t, split, true))
}
