package schedule

import "rnnbench/rnn/cell"

// A cell's Keep is a column of ones and zeros, one for each sequence. A sequence with a 0 begins
// anew at the step. Its states before the step count as 0, and so do its recurrent products, which
// were formed from the old states. The Keep of a cell's gradient has a second half, the column of
// the step after: a sequence with a 0 there gets no gradient from that step. Columns are data: a
// schedule does not depend on what is in them. They are empty where no sequence begins anew.

// KeepOf is the column of ones and zeros for the vector that r names, which c reads as 0 where the
// column is 0. It is empty where c reads the vector as it is.
func (c Cell) KeepOf(r cell.Ref) View {
	if r.Kind == cell.Prev || r.Kind == cell.R {
		return c.Keep
	}
	return View{}
}

// KeepOf is Cell.KeepOf for the backward program.
func (c CellBackward) KeepOf(r cell.Ref) View {
	switch r.Kind {
	case cell.Prev:
		return c.KeepNow()
	case cell.DNext:
		return c.KeepNext()
	}
	return View{}
}

// KeepNow is the column of c's step, and KeepNext that of the one after.
func (c CellBackward) KeepNow() View  { return half(c.Keep, 0) }
func (c CellBackward) KeepNext() View { return half(c.Keep, 1) }

func half(v View, i int) View {
	if v.Empty() {
		return v
	}
	return v.Band(i*v.Rows/2, v.Rows/2)
}

// fitsKeep reports whether v is a column of so many rows, or empty.
func fitsKeep(v View, rows int) bool { return v.Empty() || v.Rows == rows && v.Cols == 1 }

// keepSuffix spells the column of an operation, if it has one.
func keepSuffix(keep View) string {
	if keep.Empty() {
		return ""
	}
	return " where " + keep.String()
}

// Keeping is the column by which sequences begin anew in op; empty: none does.
func Keeping(op Op) View {
	switch op := op.(type) {
	case Cell:
		return op.Keep
	case CellBackward:
		return op.Keep
	case Persistent:
		return op.Keep
	case PersistentBackward:
		return op.Keep
	case Scan:
		return op.Keep
	case ScanBackward:
		return op.Keep
	}
	return View{}
}
