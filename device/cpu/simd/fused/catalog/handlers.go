package catalog

import "rnnbench/rnn/cell"

// The assembly that interprets programs is one routine per Handler. A routine runs over a block of
// units, which is in registers: the accumulator. Package fused translates a program into handlers
// and their operands.

// A Form says where a handler finds its operands, in order: in the accumulator or in memory. The
// result is in the accumulator.
type Form string

// The forms.
const (
	Acc       Form = "Acc"
	AccMem    Form = "AccMem"
	MemAcc    Form = "MemAcc"
	MemMem    Form = "MemMem"
	FourMem   Form = "FourMem"
	ToMem     Form = "ToMem"     // stores the accumulator
	FromMem   Form = "FromMem"   // loads the accumulator
	LastFrom  Form = "LastFrom"  // copies the last units, fewer than a vector register, from the first operand to the second
	LastTo    Form = "LastTo"    // the reverse
	NoOperand Form = "NoOperand" // zero, or the end of the program
)

// A Handler is an operation in one form. Names are of operations, and of handlers that are none.
type Handler struct {
	Name string
	Op   cell.Op
	Form Form
}

// Operands returns how many operands h has in memory.
func (h Handler) Operands() int {
	switch h.Form {
	case AccMem, MemAcc, ToMem, FromMem:
		return 1
	case MemMem, LastFrom, LastTo:
		return 2
	case FourMem:
		return 4
	}
	return 0
}

// The names of handlers that are not operations.
const (
	Load      = "load"
	Store     = "store"
	LoadLast  = "loadLast"
	StoreLast = "storeLast"
	End       = "end"
	SumOfFour = "sumOfFour" // (a + b) + (c + d)
	TwoTerms  = "twoTerms"  // a·b + c·d
)

// Handlers lists all handlers.
func Handlers() []Handler {
	all := []Handler{
		{Name: End, Form: NoOperand},
		{Name: Load, Form: FromMem},
		{Name: Store, Form: ToMem},
		{Name: LoadLast, Form: LastFrom},
		{Name: StoreLast, Form: LastTo},
		{Name: SumOfFour, Form: FourMem},
		{Name: TwoTerms, Form: FourMem},
	}
	for _, op := range cell.Ops() {
		switch {
		case op == cell.Copy:
		case op.Operands() == 0:
			all = append(all, Handler{op.String(), op, NoOperand})
		case op.Operands() == 1:
			all = append(all, Handler{op.String(), op, Acc})
		default:
			all = append(all, Handler{op.String(), op, AccMem}, Handler{op.String(), op, MemMem})
			if !Commutes(op) {
				all = append(all, Handler{op.String(), op, MemAcc})
			}
		}
	}
	return all
}

// Commutes reports whether op's operands may change places.
func Commutes(op cell.Op) bool { return op == cell.Add || op == cell.Mul }
