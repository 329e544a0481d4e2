package codegen

import (
	"fmt"
	"strings"
	"unicode"

	"rnnbench/rnn/cell"
)

// Expression returns the C++ expression for one operation on a and b. value is that of Const.
func Expression(op cell.Op, a, b string, value float32) string {
	switch op {
	case cell.Zero:
		return "0"
	case cell.Const:
		return fmt.Sprintf("%.9ef", value) // with a point, and all digits of a float
	case cell.Copy:
		return a
	case cell.Neg:
		return "-" + a
	case cell.OneMinus:
		return "1 - " + a
	case cell.Add:
		return a + " + " + b
	case cell.Sub:
		return a + " - " + b
	case cell.Mul:
		return a + " * " + b
	case cell.Div:
		return a + " / " + b
	case cell.Sigmoid:
		return "sigmoid(" + a + ")"
	case cell.Tanh:
		return "tanhf(" + a + ")"
	case cell.ReLU:
		return "relu(" + a + ")"
	case cell.Exp:
		return "expf(" + a + ")"
	case cell.Softplus:
		return "softplus(" + a + ")"
	case cell.Sqrt:
		return "sqrtf(relu(" + a + "))"
	case cell.SigmoidGrad:
		return fmt.Sprintf("%s * %s * (1 - %s)", a, b, b)
	case cell.TanhGrad:
		return fmt.Sprintf("%s * (1 - %s * %s)", a, b, b)
	case cell.ReLUGrad:
		return fmt.Sprintf("%s > 0 ? %s : 0", b, a)
	case cell.SoftplusGrad:
		return fmt.Sprintf("%s * -expm1f(-%s)", a, b)
	case cell.SqrtGrad:
		return fmt.Sprintf("sqrt_grad(%s, %s)", a, b)
	}
	panic(fmt.Sprintf("cuda: no text for %v", op))
}

// Statements spells p with variables named as its vectors are. Each is declared where it is first
// written, unless it is in declared.
func Statements(p cell.Program, indent string, declared []cell.Ref) string {
	known := map[cell.Ref]bool{}
	for _, r := range declared {
		known[r] = true
	}
	var b strings.Builder
	for _, in := range p {
		kind := ""
		if !known[in.Out] {
			kind, known[in.Out] = "float ", true
		}
		fmt.Fprintf(&b, "%s%s%v = %s;\n", indent, kind, in.Out, Expression(in.Op, in.A.String(), in.B.String(), in.Value))
	}
	return b.String()
}

// Declare reads the vectors of a step into variables, also those that are the same for every
// sequence: caches hold these.
func Declare(indent string, reads []cell.Ref, row func(cell.Ref) string) string {
	var b strings.Builder
	for _, r := range reads {
		fmt.Fprintf(&b, "%sfloat %v = widen(%s);\n", indent, r, Place(r, row(r)))
	}
	return b.String()
}

// Place spells the element of unit u of a vector in a row.
func Place(r cell.Ref, row string) string {
	g := GroupName(r)
	return fmt.Sprintf("%s[(long long)(%s) * ld_%s + (long long)%d * hidden + u]", g, row, g, Offset(r))
}

// List joins the spellings of all elements.
func List[T any](of []T, text func(i int, v T) string) string {
	var b strings.Builder
	for i, v := range of {
		b.WriteString(text(i, v))
	}
	return b.String()
}

// KernelName names a kernel after what it computes and for what, so that profilers, records and the
// kernel's text use one name.
func KernelName(parts ...any) string {
	var all []string
	for _, p := range parts {
		all = append(all, fmt.Sprint(p))
	}
	return Identifier(strings.Join(all, "_"))
}

// Identifier turns a name into an identifier of CUDA C++.
func Identifier(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, s)
}
