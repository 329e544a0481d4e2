package catalog

import (
	"sync"

	"rnnbench/rnn/cell"
)

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
	Weighted  Form = "Weighted"  // a state and packed weights
	Immediate Form = "Immediate" // the bits of a number, in place of an operand
)

// A Handler is an operation in one form. Names are of operations, and of handlers that are none.
type Handler struct {
	Name   string
	Op     cell.Op
	Form   Form
	Stores bool // it also stores the result, to its last operand
}

// Operands returns how many operands h has in memory.
func (h Handler) Operands() int {
	n := map[Form]int{AccMem: 1, MemAcc: 1, ToMem: 1, FromMem: 1, Immediate: 1, MemMem: 2, Weighted: 2, LastFrom: 2, LastTo: 2, FourMem: 4}[h.Form]
	if h.Stores {
		n++
	}
	return n
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
	Product   = "product"   // of a state and the weights of the block's units
)

// Handlers lists all handlers. Nobody may change the list.
var Handlers = sync.OnceValue(handlers)

func handlers() []Handler {
	all := []Handler{
		{Name: End, Form: NoOperand},
		{Name: Load, Form: FromMem},
		{Name: Store, Form: ToMem},
		{Name: LoadLast, Form: LastFrom},
		{Name: StoreLast, Form: LastTo},
		{Name: Product, Form: Weighted, Stores: true},
	}
	add := func(name string, op cell.Op, forms ...Form) {
		for _, f := range forms {
			h := Handler{Name: name, Op: op, Form: f}
			all = append(all, h)
			if h.Stores = f == FourMem || cheap(op); h.Stores {
				all = append(all, h)
			}
		}
	}
	add(SumOfFour, 0, FourMem)
	add(TwoTerms, 0, FourMem)
	for _, op := range cell.Ops() {
		name := op.String()
		switch n := op.Operands(); {
		case op == cell.Copy:
		case op == cell.Const:
			add(name, op, Immediate)
		case n == 0:
			add(name, op, NoOperand)
		case n == 1 && cheap(op):
			add(name, op, Acc, FromMem)
		case n == 1:
			add(name, op, Acc)
		case Commutes(op):
			add(name, op, AccMem, MemMem)
		default:
			add(name, op, AccMem, MemAcc, MemMem)
		}
	}
	return all
}

// Commutes reports whether op's operands may change places.
func Commutes(op cell.Op) bool { return op == cell.Add || op == cell.Mul }

// cheap reports whether op takes so little time that one handler fewer matters.
func cheap(op cell.Op) bool {
	switch op {
	case cell.Neg, cell.OneMinus, cell.Add, cell.Sub, cell.Mul, cell.SigmoidGrad, cell.TanhGrad:
		return true
	}
	return false
}
