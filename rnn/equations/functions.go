package equations

import (
	"math"

	"rnnbench/rnn/cell"
)

// A span is what is known of a value: nothing, that it is not below 0, or that it is above 0.
type span uint8

const (
	anything span = iota
	notNegative
	positive
)

// A function is an operation that equations may name. The reference runs eval, in double precision.
// Devices run the operations of a cell that lower writes. The two are written apart, so that each is a
// check of the other.
type function struct {
	name     string
	operands int
	eval     func(a, b float64) float64
	lower    func(p *lowering, a, b cell.Ref) cell.Ref
	span     func(a, b span) span
}

// does lowers a function to one operation.
func does(op cell.Op) func(p *lowering, a, b cell.Ref) cell.Ref {
	return func(p *lowering, a, b cell.Ref) cell.Ref { return p.do(op, a, b) }
}

func always(s span) func(a, b span) span { return func(span, span) span { return s } }

func relu(x float64) float64 { return math.Max(x, 0) }

// second returns b if so, and else a.
func second(so bool, a, b float64) float64 {
	if so {
		return b
	}
	return a
}

// functions lists what equations may call.
var functions = []function{
	{"sigmoid", 1, func(a, _ float64) float64 { return 1 / (1 + math.Exp(-a)) }, does(cell.Sigmoid), always(positive)},
	{"tanh", 1, func(a, _ float64) float64 { return math.Tanh(a) }, does(cell.Tanh), func(a, _ span) span { return a }},
	{"relu", 1, func(a, _ float64) float64 { return relu(a) }, does(cell.ReLU), func(a, _ span) span { return max(a, notNegative) }},
	{"exp", 1, func(a, _ float64) float64 { return math.Exp(a) }, does(cell.Exp), always(positive)},
	{"softplus", 1, func(a, _ float64) float64 { return relu(a) + math.Log1p(math.Exp(-math.Abs(a))) }, does(cell.Softplus), always(positive)},
	{"sqrt", 1, func(a, _ float64) float64 { return math.Sqrt(relu(a)) }, does(cell.Sqrt), func(a, _ span) span { return max(a, notNegative) }},
	{"abs", 1, func(a, _ float64) float64 { return math.Abs(a) }, func(p *lowering, a, _ cell.Ref) cell.Ref {
		return p.do(cell.Add, p.do(cell.ReLU, a, a), p.do(cell.ReLU, p.do(cell.Neg, a, a), a))
	}, func(a, _ span) span { return max(a, notNegative) }},
	{"max", 2, func(a, b float64) float64 { return second(b > a, a, b) }, func(p *lowering, a, b cell.Ref) cell.Ref {
		return cell.Second(p.append, p.do(cell.Sub, b, a), a, b)
	}, func(a, b span) span { return max(a, b) }},
	{"min", 2, func(a, b float64) float64 { return second(b < a, a, b) }, func(p *lowering, a, b cell.Ref) cell.Ref {
		return cell.Second(p.append, p.do(cell.Sub, a, b), a, b)
	}, func(a, b span) span { return min(a, b) }},
}

// The operators that are written between their operands, or before them.
var (
	plus   = function{"+", 2, func(a, b float64) float64 { return a + b }, does(cell.Add), sum}
	minus  = function{"-", 2, func(a, b float64) float64 { return a - b }, does(cell.Sub), always(anything)}
	times  = function{"*", 2, func(a, b float64) float64 { return a * b }, does(cell.Mul), func(a, b span) span { return min(a, b) }}
	over   = function{"/", 2, func(a, b float64) float64 { return a / b }, does(cell.Div), func(a, b span) span { return min(a, b) }}
	negate = function{"-", 1, func(a, _ float64) float64 { return -a }, does(cell.Neg), always(anything)}
)

func sum(a, b span) span {
	if min(a, b) == anything {
		return anything
	}
	return max(a, b)
}
