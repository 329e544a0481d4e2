package schedule

import "rnnbench/rnn/cell"

// A cell's Keep is a column of ones and zeros, one for each sequence. A sequence of 0 begins anew at the
// step: 0 takes the place of its states before the step, and so of its recurrent products, which are
// formed of what was there. The gradient of a cell also has the column of the step after, as the second half
// of its own: the gradient of a sequence of 0 does not come from there. Columns are data: a schedule does not
// depend on what is in them. They are empty where no sequence begins anew.

// KeepOf is the column by which c reads the vector that r names; empty: as it is.
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

// keeps reports whether v is a column of so many rows, or empty.
func keeps(v View, rows int) bool { return v.Empty() || v.Rows == rows && v.Cols == 1 }

// where spells the column of an operation that has one.
func where(keep View) string {
	if keep.Empty() {
		return ""
	}
	return " where " + keep.String()
}

// Keeping is the column by which sequences begin anew within op; empty where none does.
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

// spreads reports whether Spread is behind X, or empty.
func (s *Sequence) spreads() bool {
	x, v := s.X, s.Spread
	return v.Empty() || !s.Keep.Empty() && v.M == x.M && v.Row == x.Row && v.Rows == x.Rows && v.Col == x.Col+x.Cols && v.Cols == s.Hidden()
}
