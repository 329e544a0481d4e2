package lower

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/gemm"
	"rnnbench/device/cuda/ints"
	"rnnbench/device/cuda/launch"
	"rnnbench/device/cuda/pointwise"
	"rnnbench/rnn/schedule"
)

// splitProduct forms a product by the kernel that splits the left factor as it multiplies
// (gemm/split_fp16.cu). The kernel adds bias to each row, if there is a bias.
func (e *emitter) splitProduct(op schedule.Gemm, bias schedule.View, stream int) []launch.Command {
	kept := e.lowering.Kept[op.B.M.ID] != gemm.Library
	copied := !gemm.EngineCopies(op.A)
	absmax, out := e.absmax(op.A, stream, copied)
	rightAbsmax := e.At(op.B)
	if !kept {
		var more []launch.Command
		rightAbsmax, more = e.absmax(op.B, stream, false)
		out = append(out, more...)
	}
	scratch := e.scratch(stream)
	left := gemm.LeftFactor{View: op.A, At: e.At(op.A), Stride: op.A.M.Cols, Absmax: absmax}
	if copied {
		left.At, left.Stride = scratch, ints.RoundUp(op.A.Cols, 4)
		scratch += driver.Pointer(gemm.CopyBytes(op.A))
		out = append(out, gemm.CopyLeft(e.Target, left))
	}
	portions := gemm.CutTerms(op, kept, gemm.SplitRoom)
	for i, op := range portions {
		m, n, k := op.Sizes()
		w, expected := gemm.Divide(op, e.Properties.SMs)
		var right gemm.Operand
		if kept {
			_, at := gemm.PackedBytes(n, k)
			right = gemm.Operand{At: e.At(op.B), Absmax: e.At(op.B) + driver.Pointer(at), Parts: scratch}
		} else {
			var more []launch.Command
			right, more = e.right(op, rightAbsmax, scratch, stream)
			out = append(out, more...)
		}
		product := gemm.SplitFP16(e.Target, op, w, left, right, bias)
		product.Seconds = expected
		out = append(out, product)
		if w.Parts > 1 {
			e.pending = append(e.pending, gemm.PartialSums{Rows: m, Cols: n, Parts: w.Parts, From: right.Parts, To: op.C, Add: op.Accumulate})
			if rows, ok := e.sumBehind(op, stream); ok && i == len(portions)-1 {
				e.added[e.now+1] = true
				e.pending = append(e.pending, gemm.PartialSums{Rows: 1, Cols: rows.A.Cols, Parts: pointwise.SumParts(rows, e.Properties), From: e.sums(stream), To: rows.Out, Add: rows.Accumulate})
			}
			if e.now >= e.chainEnd {
				out, e.pending = append(out, gemm.AddParts(e.Target, e.pending)), nil
			}
		}
	}
	return out
}

// biasOf returns the row that node i+1 adds to each row of product i, if the product's kernel adds
// it instead. Otherwise it is empty.
func (e *emitter) biasOf(i int) (row schedule.View) {
	s := e.lowering.schedule
	if i < 0 {
		return row
	}
	op, row := gemm.AddedRow(s, i)
	if row.Empty() || e.lowering.Factors[op.B.M.ID] != nil || e.lowering.MethodOf(op) != gemm.SplitKernel || len(gemm.CutTerms(op, e.lowering.Kept[op.B.M.ID] != gemm.Library, gemm.SplitRoom)) > 1 {
		return schedule.View{}
	}
	if w, _ := gemm.Divide(op, e.Properties.SMs); w.Parts > 1 {
		return schedule.View{}
	}
	return row
}
