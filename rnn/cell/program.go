package cell

import (
	"fmt"
	"math"
)

// An Op is one point-wise operation on vectors of equal length.
type Op uint8

// The operations. The gradient forms take the gradient of an activation's
// result and the result itself, which is what a backward pass has at hand.
const (
	Zero         Op = iota // 0
	Copy                   // a
	Neg                    // -a
	OneMinus               // 1 - a
	Add                    // a + b
	Sub                    // a - b
	Mul                    // a · b
	Div                    // a / b
	Sigmoid                // 1 / (1 + e^-a)
	Tanh                   // tanh a
	ReLU                   // max(a, 0)
	Exp                    // e^a
	Softplus               // log(1 + e^a)
	Sqrt                   // √a, and 0 where a is below 0
	SigmoidGrad            // a · b · (1 - b)
	TanhGrad               // a · (1 - b²)
	ReLUGrad               // a where b > 0, else 0; see also Second
	SoftplusGrad           // a · (1 - e^-b)
	SqrtGrad               // a / max(2b, 1/1000): a root's slope has no bound at 0
	Const                  // a number, the instruction's Value
)

var ops = [...]struct {
	name     string
	operands int
	flops    int64
}{
	Zero:         {"zero", 0, 0},
	Const:        {"const", 0, 0},
	Copy:         {"copy", 1, 0},
	Neg:          {"neg", 1, 1},
	OneMinus:     {"oneminus", 1, 1},
	Add:          {"add", 2, 1},
	Sub:          {"sub", 2, 1},
	Mul:          {"mul", 2, 1},
	Div:          {"div", 2, 1},
	Sigmoid:      {"sigmoid", 1, 1},
	Tanh:         {"tanh", 1, 1},
	ReLU:         {"relu", 1, 1},
	Exp:          {"exp", 1, 1},
	Softplus:     {"softplus", 1, 1},
	Sqrt:         {"sqrt", 1, 1},
	SigmoidGrad:  {"sigmoidgrad", 2, 3},
	TanhGrad:     {"tanhgrad", 2, 3},
	ReLUGrad:     {"relugrad", 2, 1},
	SoftplusGrad: {"softplusgrad", 2, 3},
	SqrtGrad:     {"sqrtgrad", 2, 3},
}

// MinSlope is the smallest divisor in SqrtGrad. It bounds a root's slope by 1000, as De et al.
// (2024) do in their program.
const MinSlope = 0.001

// Ops lists every operation.
func Ops() []Op {
	all := make([]Op, len(ops))
	for i := range all {
		all[i] = Op(i)
	}
	return all
}

func (o Op) String() string { return ops[o].name }

// Valid reports whether o is one of Ops.
func (o Op) Valid() bool { return int(o) < len(ops) }

// Operands is the number of operands that o reads: 0, 1 or 2.
func (o Op) Operands() int { return ops[o].operands }

// FLOPs is the number of operations that o counts for per element; an
// activation counts for one.
func (o Op) FLOPs() int64 { return ops[o].flops }

// A Kind is a role that a vector plays in a cell.
type Kind uint8

// The roles. Each is indexed by gate, state, peephole or number; a vector holds
// one value per hidden unit.
const (
	X       Kind = iota // input pre-activation of a gate, W·x without bias
	R                   // recurrent pre-activation of a gate, R·h without bias
	BX                  // input bias of a gate, the same for every sequence
	BR                  // recurrent bias of a gate, the same for every sequence
	Peep                // a peephole's weights, the same for every sequence
	Prev                // a state before the step
	Next                // a state after the step
	Saved               // a value kept by the forward pass for the backward pass
	Temp                // a value that lives within the cell
	DOut                // gradient of state 0 from above: the next layer or the loss
	DNext               // gradient of a state from the step that follows
	DX                  // gradient of an input pre-activation
	DR                  // gradient of a recurrent pre-activation
	DPrev               // gradient of a state before the step, the recurrent product's part excepted
	DPeep               // gradient of a peephole's weights, summed over the steps done so far
	Factor              // product of the factors by which the steps so far multiply a state; see Recurrence
	Keep                // 0 where a sequence begins anew at the step or, by index 1, at the step after; else 1: the same for all units
	Inner               // the value that the recurrent products of inner gates multiply; see Cell.Inner
	DInner              // gradient of that value
	DPassed             // gradient of a value that the first half of a step passes to the second; see inner.go
	kinds
)

var kindNames = [...]string{"x", "r", "bx", "br", "p", "prev", "next", "saved", "t",
	"dout", "dnext", "dx", "dr", "dprev", "dp", "factor", "keep", "inner", "dinner", "dpassed"}

func (k Kind) String() string { return kindNames[k] }

// Broadcast reports whether vectors of kind k are the same for every sequence.
func (k Kind) Broadcast() bool { return k == BX || k == BR || k == Peep }

// A Ref names one vector: a role and an index.
type Ref struct {
	Kind  Kind
	Index int
}

func (r Ref) String() string { return fmt.Sprintf("%v%d", r.Kind, r.Index) }

// An Instr is one operation of a program: Out = Op(A, B). Out may be A or B.
type Instr struct {
	Op        Op
	Out, A, B Ref
	Value     float32 // of Const; else 0
}

// Args are the operands that in reads.
func (in Instr) Args() []Ref { return []Ref{in.A, in.B}[:in.Op.Operands()] }

// with returns in with its operands set to args.
func with(in Instr, args []Ref) Instr {
	if len(args) > 0 {
		in.A = args[0]
	}
	if len(args) > 1 {
		in.B = args[1]
	}
	return in
}

func (in Instr) String() string {
	s := fmt.Sprintf("%v = %v", in.Out, in.Op)
	for _, a := range in.Args() {
		s += " " + a.String()
	}
	if in.Op == Const {
		s += fmt.Sprintf(" %v", in.Value)
	}
	return s
}

// A Program is a straight line of operations, run for each unit of each
// sequence on its own.
type Program []Instr

// Temps is the number of temporary vectors that p needs.
func (p Program) Temps() int {
	n := 0
	for _, in := range p {
		if in.Out.Kind == Temp {
			n = max(n, in.Out.Index+1)
		}
	}
	return n
}

// FLOPs counts p's operations per unit.
func (p Program) FLOPs() int64 {
	var n int64
	for _, in := range p {
		n += in.Op.FLOPs()
	}
	return n
}

// Writes reports whether p writes r.
func (p Program) Writes(r Ref) bool {
	for _, in := range p {
		if in.Out == r {
			return true
		}
	}
	return false
}

// Vectors lists, in order of first use, the vectors that p reads before it
// writes them and those that it writes; temporaries are in neither.
func (p Program) Vectors() (reads, writes []Ref) {
	seen := map[Ref]bool{}
	written := map[Ref]bool{}
	for _, in := range p {
		for _, a := range in.Args() {
			if a.Kind != Temp && !seen[a] && !written[a] {
				seen[a] = true
				reads = append(reads, a)
			}
		}
		if o := in.Out; o.Kind != Temp && !written[o] {
			written[o] = true
			writes = append(writes, o)
		}
	}
	return reads, writes
}

// compact renumbers p's temporaries so that a vector is used again once its
// last reader is done.
func (p Program) compact() Program {
	last := map[Ref]int{}
	for i, in := range p {
		for _, a := range in.Args() {
			last[a] = i
		}
	}
	place := map[Ref]int{}
	var free []int
	next := 0
	out := make(Program, len(p))
	for i, in := range p {
		q := in
		for k, a := range in.Args() {
			if a.Kind != Temp {
				continue
			}
			if k == 0 {
				q.A.Index = place[a]
			} else {
				q.B.Index = place[a]
			}
		}
		for k, a := range in.Args() {
			if a.Kind == Temp && last[a] == i && !(k == 1 && in.A == in.B) {
				free = append(free, place[a])
			}
		}
		if in.Out.Kind == Temp {
			if n := len(free); n > 0 {
				place[in.Out], free = free[n-1], free[:n-1]
			} else {
				place[in.Out] = next
				next++
			}
			q.Out.Index = place[in.Out]
		}
		out[i] = q
	}
	return out
}

// Eval runs in on scalars in double precision.
func (in *Instr) Eval(a, b float64) float64 {
	if in.Op == Const {
		return float64(in.Value)
	}
	return in.Op.Eval(a, b)
}

// Eval runs one operation other than Const on scalars in double precision.
func (o Op) Eval(a, b float64) float64 {
	switch o {
	case Zero:
		return 0
	case Copy:
		return a
	case Neg:
		return -a
	case OneMinus:
		return 1 - a
	case Add:
		return a + b
	case Sub:
		return a - b
	case Mul:
		return a * b
	case Div:
		return a / b
	case Sigmoid:
		return sigmoid(a)
	case Tanh:
		return tanh(a)
	case ReLU:
		return relu(a)
	case Exp:
		return math.Exp(a)
	case Softplus:
		return softplus(a)
	case Sqrt:
		return math.Sqrt(relu(a))
	case SigmoidGrad:
		return a * b * (1 - b)
	case TanhGrad:
		return a * (1 - b*b)
	case ReLUGrad:
		if b > 0 {
			return a
		}
		return 0
	case SoftplusGrad:
		return a * -math.Expm1(-b)
	case SqrtGrad:
		return a / max(2*b, MinSlope)
	}
	panic(fmt.Sprintf("cell: no operation %d", o))
}

// Eval runs p for one unit in double precision. value holds every vector that
// p reads and receives every vector that it writes.
func (p Program) Eval(value func(Ref) *float64) {
	for i := range p {
		in := &p[i] // by reference: the reference spends most of its time here
		var a, b float64
		n := in.Op.Operands()
		if n > 0 {
			a = *value(in.A)
		}
		if n > 1 {
			b = *value(in.B)
		}
		*value(in.Out) = in.Eval(a, b)
	}
}
