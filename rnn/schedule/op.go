package schedule

import (
	"fmt"
	"iter"
	"reflect"
	"unsafe"

	"rnnbench/rnn/cell"
)

// An Op is one unit of device work. The set of operations is closed: every
// device handles every type of this file or declines with ErrUnsupported.
type Op interface {
	// Reads and Writes list every view that the operation touches.
	Reads() []View
	Writes() []View

	// FLOPs counts the floating-point operations executed.
	FLOPs() int64

	// Name is the operation's kind, as statistics group it.
	Name() string

	// check reports the first shape that does not fit.
	check() error

	fmt.Stringer
}

// Bytes counts what op reads and writes. Of a table it counts only the rows that are looked up,
// though op may touch any.
func Bytes(op Op) int64 {
	switch op := op.(type) {
	case Gather:
		return op.Index.Bytes() + 2*op.Out.Bytes()
	case Scatter:
		return op.Index.Bytes() + 3*op.Src.Bytes()
	}
	var n int64
	for v := range Accesses(op) {
		n += v.Bytes()
	}
	return n
}

// size is the number of bytes that op takes, with the views that no other operation has. States
// before a step are another operation's states after one.
func size(op Op) int64 {
	n := int64(reflect.TypeOf(op).Size())
	switch op := op.(type) {
	case MapChain:
		n += int64(len(op.Steps)) * int64(unsafe.Sizeof(Map{}))
	case Cell:
		n += int64(len(op.Next)) * int64(unsafe.Sizeof(View{}))
	case AllReduce:
		n += int64(len(op.Sums)) * int64(unsafe.Sizeof(View{}))
	}
	return n
}

// Accesses yields every view that op reads (false), then every view that it writes (true). It
// allocates nothing for the operations that schedules have by the million.
func Accesses(op Op) iter.Seq2[View, bool] {
	return func(yield func(View, bool) bool) {
		switch op := op.(type) {
		case Gemm:
			_ = yield(op.A, false) && yield(op.B, false) && (!op.Accumulate || yield(op.C, false)) && yield(op.C, true)
			return
		case Map:
			n := op.Op.Operands()
			_ = (n < 1 || yield(op.A, false)) && (n < 2 || yield(op.B, false)) && yield(op.Out, true)
			return
		case SumRows:
			_ = yield(op.A, false) && (!op.Accumulate || yield(op.Out, false)) && yield(op.Out, true)
			return
		}
		for _, v := range op.Reads() {
			if !yield(v, false) {
				return
			}
		}
		for _, v := range op.Writes() {
			if !yield(v, true) {
				return
			}
		}
	}
}

// Gemm computes C = op(A)·op(B), or C += op(A)·op(B) when Accumulate is set;
// op transposes where TransA or TransB says so.
type Gemm struct {
	A, B, C        View
	TransA, TransB bool
	Accumulate     bool
}

// Pack writes Src, or its transpose, to the packed matrix Dst: the
// pre-transposition of Appleyard et al., section 2.3.
type Pack struct {
	Src, Dst View
	Trans    bool
}

// Map computes Out = Op(A, B) element by element. An operand of one row serves
// every row. Out may be A or B.
type Map struct {
	Op        cell.Op
	Out, A, B View
	Value     float32 // of cell.Const; else 0
}

// SumRows sets the row Out to the sum of the rows of A, or adds it.
type SumRows struct {
	A, Out     View
	Accumulate bool
}

// Cell advances rows(X) sequences by one step: bias, activations and state update in one. X is rows
// × gates·hidden and R rows × recurrent gates·hidden; BX, BR (and Peep) one row; states rows ×
// hidden. With Train set it keeps what the backward pass needs in Saved, rows × saved·hidden. Keep
// says which sequences begin anew: see keep.go. Views of states that the cell does not use are empty.
type Cell struct {
	Cell               *cell.Cell
	Train              bool
	X, R, BX, BR, Peep View
	Prev, Next         []View
	Saved              View
	Keep               View
}

// CellBackward is the gradient of one Cell step. DOut is the gradient of the output from above, and
// DNext those of the next states from the step after. It writes DX and, where the cell splits them,
// DR. It writes DPrev of every state that the cell itself reads; that may be the same view as
// DNext. DPrev of other states is empty. It adds to DPeep, rows × peepholes·hidden.
type CellBackward struct {
	Cell       *cell.Cell
	DOut       View
	DNext      []View
	Saved      View
	Prev, Next []View
	Peep       View
	DX, DR     View
	DPrev      []View
	DPeep      View

	Keep View // of this step, then of the one after: see keep.go
}

// Gather copies row Index[i] of Table to row i of Out: the product of a one-hot
// input. Index is a column of integers.
type Gather struct {
	Index, Table, Out View
}

// Scatter adds row i of Src to row Index[i] of Table, in the order of i: the
// gradient of Gather.
type Scatter struct {
	Index, Src, Table View
}

// some returns the views that are not empty.
func some(lists ...[]View) []View {
	n := 0
	for _, list := range lists {
		n += len(list)
	}
	out := make([]View, 0, n)
	for _, list := range lists {
		for _, v := range list {
			if !v.Empty() {
				out = append(out, v)
			}
		}
	}
	return out
}

// overlapError reports that op writes part of what it reads, so its result would depend on the
// order in which it is computed.
func overlapError(op Op) error {
	return fmt.Errorf("schedule: %v: the result overlaps an operand in part", op)
}

func shapeError(op Op) error { return fmt.Errorf("schedule: %v: shapes do not fit", op) }

func transposed(v View, t bool) (rows, cols int) {
	if t {
		return v.Cols, v.Rows
	}
	return v.Rows, v.Cols
}

// Sizes are the rows and columns of C and the length of the sums.
func (g Gemm) Sizes() (m, n, k int) {
	m, k = transposed(g.A, g.TransA)
	_, n = transposed(g.B, g.TransB)
	return m, n, k
}

func (g Gemm) Name() string { return "gemm" }
func (g Gemm) Reads() []View {
	if g.Accumulate {
		return []View{g.A, g.B, g.C}
	}
	return []View{g.A, g.B}
}
func (g Gemm) Writes() []View { return []View{g.C} }
func (g Gemm) FLOPs() int64 {
	m, n, k := g.Sizes()
	return 2 * int64(m) * int64(n) * int64(k)
}
func (g Gemm) String() string {
	mark := map[bool]string{true: "ᵀ"}
	op := map[bool]string{false: "=", true: "+="}
	return fmt.Sprintf("gemm %v %s %v%s %v%s", g.C, op[g.Accumulate], g.A, mark[g.TransA], g.B, mark[g.TransB])
}
func (g Gemm) check() error {
	m, n, k := g.Sizes()
	if kb, _ := transposed(g.B, g.TransB); kb != k || g.C.Rows != m || g.C.Cols != n {
		return shapeError(g)
	}
	if g.C.Overlaps(g.A) || g.C.Overlaps(g.B) {
		return overlapError(g)
	}
	return nil
}

func (p Pack) Name() string   { return "pack" }
func (p Pack) Reads() []View  { return []View{p.Src} }
func (p Pack) Writes() []View { return []View{p.Dst} }
func (p Pack) FLOPs() int64   { return 0 }
func (p Pack) String() string {
	return fmt.Sprintf("pack %v = %v%s", p.Dst, p.Src, map[bool]string{true: "ᵀ"}[p.Trans])
}
func (p Pack) check() error {
	if r, c := transposed(p.Src, p.Trans); r != p.Dst.Rows || c != p.Dst.Cols || !p.Dst.M.Packed {
		return shapeError(p)
	}
	return nil
}

func (m Map) Name() string { return m.Op.String() }

// Args are the operands that the operation reads.
func (m Map) Args() []View   { return []View{m.A, m.B}[:m.Op.Operands()] }
func (m Map) Reads() []View  { return m.Args() }
func (m Map) Writes() []View { return []View{m.Out} }
func (m Map) FLOPs() int64   { return m.Op.FLOPs() * int64(m.Out.Rows) * int64(m.Out.Cols) }
func (m Map) String() string {
	s := fmt.Sprintf("%v %v =", m.Op, m.Out)
	for _, v := range m.Args() {
		s += " " + v.String()
	}
	if m.Op == cell.Const {
		s += fmt.Sprintf(" %v", m.Value)
	}
	return s
}
func (m Map) check() error {
	for i, v := range [...]View{m.A, m.B} {
		if i >= m.Op.Operands() {
			break
		}
		if v.Cols != m.Out.Cols || v.Rows != m.Out.Rows && v.Rows != 1 {
			return shapeError(m)
		}
		if v.Overlaps(m.Out) && v != m.Out {
			return overlapError(m)
		}
	}
	return nil
}

func (s SumRows) Name() string { return "sumrows" }
func (s SumRows) Reads() []View {
	if s.Accumulate {
		return []View{s.A, s.Out}
	}
	return []View{s.A}
}
func (s SumRows) Writes() []View { return []View{s.Out} }
func (s SumRows) FLOPs() int64   { return int64(s.A.Rows) * int64(s.A.Cols) }
func (s SumRows) String() string {
	return fmt.Sprintf("sumrows %v %s %v", s.Out, map[bool]string{false: "=", true: "+="}[s.Accumulate], s.A)
}
func (s SumRows) check() error {
	if s.Out.Rows != 1 || s.Out.Cols != s.A.Cols {
		return shapeError(s)
	}
	if s.Out.Overlaps(s.A) {
		return overlapError(s)
	}
	return nil
}

func (c Cell) Name() string { return "cell" }

// Program is the program that c runs for each unit.
func (c Cell) Program() cell.Program {
	if c.Train {
		return c.Cell.Forward
	}
	return c.Cell.Inference
}

func (c Cell) Reads() []View  { return some([]View{c.X, c.R, c.BX, c.BR, c.Peep, c.Keep}, c.Prev) }
func (c Cell) Writes() []View { return some(c.Next, []View{c.Saved}) }
func (c Cell) FLOPs() int64 {
	return c.Program().FLOPs() * int64(c.Next[0].Rows) * int64(c.Next[0].Cols)
}
func (c Cell) String() string {
	s := fmt.Sprintf("%v %v ← %v %v", c.Cell, c.Next, c.X, c.R)
	if c.Train {
		s += fmt.Sprintf(" keep %v", c.Saved)
	}
	return s + keepSuffix(c.Keep)
}
func (c Cell) check() error {
	more := []shaped{{c.X, 0, len(c.Cell.Gates)}, {c.BX, 1, len(c.Cell.Gates)}}
	if n := c.Cell.Recurrent; n > 0 {
		if more = append(more, shaped{c.R, 0, n}); !c.BR.Empty() || c.Cell.Uses(cell.Ref{Kind: cell.BR}) {
			more = append(more, shaped{c.BR, 1, n})
		}
	} else if !c.R.Empty() || !c.BR.Empty() {
		return shapeError(c)
	}
	if !fitsKeep(c.Keep, c.Next[0].Rows) {
		return shapeError(c)
	}
	return checkCell(c, c.Cell, c.Next, c.Prev, c.Saved, c.Train, c.Peep, more...)
}

// shaped says how many rows (0: those of the states) and how many times the
// hidden size in columns v must have.
type shaped struct {
	v           View
	rows, times int
}

// stateShape is the shape of state s, given the views of all states in role kind. The halves of a
// step use only some states: see cell.Cell.First. The views of others may be empty.
func stateShape(c *cell.Cell, kind cell.Kind, s int, of []View) shaped {
	if of[s].Empty() && !c.Uses(cell.Ref{Kind: kind, Index: s}) {
		return shaped{}
	}
	return shaped{of[s], 0, 1}
}

func checkCell(op Op, c *cell.Cell, next, prev []View, saved View, train bool, peep View, more ...shaped) error {
	if len(next) != len(c.States) || len(prev) != len(c.States) {
		return fmt.Errorf("schedule: %s of %v: want %d states", op.Name(), c, len(c.States))
	}
	rows, hidden := next[0].Rows, next[0].Cols
	for s := range next {
		more = append(more, stateShape(c, cell.Next, s, next), stateShape(c, cell.Prev, s, prev))
	}
	if train && c.Saved > 0 {
		more = append(more, shaped{saved, 0, c.Saved})
	} else if !saved.Empty() {
		return shapeError(op)
	}
	if len(c.Peeps) > 0 {
		more = append(more, shaped{peep, 1, len(c.Peeps)})
	} else if !peep.Empty() {
		return shapeError(op)
	}
	for _, m := range more {
		if m == (shaped{}) {
			continue
		}
		want := m.rows
		if want == 0 {
			want = rows
		}
		if m.v.Rows != want || m.v.Cols != m.times*hidden {
			return shapeError(op)
		}
	}
	return nil
}

func (c CellBackward) Name() string { return "cellbackward" }
func (c CellBackward) Reads() []View {
	return some([]View{c.DOut, c.Saved, c.Peep, c.DPeep, c.Keep}, c.DNext, c.Prev, c.Next)
}
func (c CellBackward) Writes() []View { return some([]View{c.DX, c.DR, c.DPeep}, c.DPrev) }
func (c CellBackward) FLOPs() int64 {
	return c.Cell.Backward.FLOPs() * int64(c.Next[0].Rows) * int64(c.Next[0].Cols)
}
func (c CellBackward) String() string {
	return fmt.Sprintf("%vbackward %v %v %v ← %v %v", c.Cell, c.DX, c.DR, c.DPrev, c.DOut, c.DNext) + keepSuffix(c.Keep)
}
func (c CellBackward) check() error {
	more := []shaped{{c.DOut, 0, 1}, {c.DX, 0, c.Cell.Gradients()}}
	if len(c.DNext) != len(c.Cell.States) || len(c.DPrev) != len(c.Cell.States) {
		return fmt.Errorf("schedule: backward of %v: want %d state gradients", c.Cell, len(c.Cell.States))
	}
	for s := range c.DNext {
		more = append(more, stateShape(c.Cell, cell.DNext, s, c.DNext))
		if c.Cell.DirectPrev(s) {
			more = append(more, shaped{c.DPrev[s], 0, 1})
		} else if !c.DPrev[s].Empty() {
			return shapeError(c)
		}
	}
	if c.Cell.SplitGrad {
		more = append(more, shaped{c.DR, 0, c.Cell.Recurrent})
	} else if !c.DR.Empty() {
		return shapeError(c)
	}
	if c.Cell.SumsPeeps() {
		more = append(more, shaped{c.DPeep, 0, len(c.Cell.Peeps)})
	} else if !c.DPeep.Empty() {
		return shapeError(c)
	}
	if !fitsKeep(c.Keep, 2*c.Next[0].Rows) {
		return shapeError(c)
	}
	return checkCell(c, c.Cell, c.Next, c.Prev, c.Saved, true, c.Peep, more...)
}

func (g Gather) Name() string   { return "gather" }
func (g Gather) Reads() []View  { return []View{g.Index, g.Table} }
func (g Gather) Writes() []View { return []View{g.Out} }
func (g Gather) FLOPs() int64   { return 0 }
func (g Gather) String() string { return fmt.Sprintf("gather %v = %v[%v]", g.Out, g.Table, g.Index) }
func (g Gather) check() error {
	if g.Index.Cols != 1 || g.Index.Rows != g.Out.Rows || g.Table.Cols != g.Out.Cols {
		return shapeError(g)
	}
	return nil
}

func (s Scatter) Name() string   { return "scatter" }
func (s Scatter) Reads() []View  { return []View{s.Index, s.Src, s.Table} }
func (s Scatter) Writes() []View { return []View{s.Table} }
func (s Scatter) FLOPs() int64   { return int64(s.Src.Rows) * int64(s.Src.Cols) }
func (s Scatter) String() string { return fmt.Sprintf("scatter %v[%v] += %v", s.Table, s.Index, s.Src) }
func (s Scatter) check() error {
	if s.Index.Cols != 1 || s.Index.Rows != s.Src.Rows || s.Table.Cols != s.Src.Cols {
		return shapeError(s)
	}
	return nil
}
