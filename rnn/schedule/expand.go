package schedule

import (
	"fmt"

	"rnnbench/rnn/cell"
)

// Vector views the vector that r names, rows × hidden or one row × hidden. It
// panics on a temporary, which has no matrix, and on what c does not have.
func (c Cell) Vector(r cell.Ref) View {
	hidden := c.Next[0].Cols
	switch r.Kind {
	case cell.X:
		return c.X.Columns(r.Index*hidden, hidden)
	case cell.R:
		return c.R.Columns(r.Index*hidden, hidden)
	case cell.BX:
		return c.BX.Columns(r.Index*hidden, hidden)
	case cell.BR:
		return c.BR.Columns(r.Index*hidden, hidden)
	case cell.Peep:
		return c.Peep.Columns(r.Index*hidden, hidden)
	case cell.Saved:
		return c.Saved.Columns(r.Index*hidden, hidden)
	case cell.Prev:
		return c.Prev[r.Index]
	case cell.Next:
		return c.Next[r.Index]
	}
	panic(fmt.Sprintf("schedule: a forward cell has no %v", r))
}

// Vector is Cell.Vector for the backward program.
func (c CellBackward) Vector(r cell.Ref) View {
	hidden := c.Next[0].Cols
	switch r.Kind {
	case cell.Saved:
		return c.Saved.Columns(r.Index*hidden, hidden)
	case cell.Peep:
		return c.Peep.Columns(r.Index*hidden, hidden)
	case cell.DX:
		return c.DX.Columns(r.Index*hidden, hidden)
	case cell.DR:
		return c.DR.Columns(r.Index*hidden, hidden)
	case cell.DPeep:
		return c.DPeep.Columns(r.Index*hidden, hidden)
	case cell.DOut:
		return c.DOut
	case cell.DNext:
		return c.DNext[r.Index]
	case cell.DPrev:
		return c.DPrev[r.Index]
	case cell.Prev:
		return c.Prev[r.Index]
	case cell.Next:
		return c.Next[r.Index]
	}
	panic(fmt.Sprintf("schedule: a backward cell has no %v", r))
}

// Maps expands c into its point-wise operations one by one. temp holds what
// lives between them: rows × Program().Temps()·hidden.
func (c Cell) Maps(temp View) []Map { return expand(c.Program(), c.Vector, temp, c.Next[0].Cols) }

// Maps expands c into its point-wise operations one by one. temp holds what
// lives between them: rows × Cell.Backward.Temps()·hidden.
func (c CellBackward) Maps(temp View) []Map {
	return expand(c.Cell.Backward, c.Vector, temp, c.Next[0].Cols)
}

func expand(p cell.Program, vector func(cell.Ref) View, temp View, hidden int) []Map {
	view := func(r cell.Ref) View {
		if r.Kind == cell.Temp {
			return temp.Columns(r.Index*hidden, hidden)
		}
		return vector(r)
	}
	maps := make([]Map, len(p))
	for i, in := range p {
		m := Map{Op: in.Op, Out: view(in.Out), Value: in.Value}
		if in.Op.Operands() > 0 {
			m.A = view(in.A)
		}
		if in.Op.Operands() > 1 {
			m.B = view(in.B)
		}
		maps[i] = m
	}
	return maps
}
