package fused

import (
	"fmt"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
)

// A step is an instruction whose operands are numbered: vectors first, and then temporaries.
type step struct {
	op        cell.Op
	out, a, b int
}

func (k *Kernel) compile() []step {
	place := map[cell.Ref]int{}
	for i, r := range k.vectors {
		place[r] = i
	}
	at := func(r cell.Ref) int {
		if r.Kind == cell.Temp {
			return len(k.vectors) + r.Index
		}
		return place[r]
	}
	steps := make([]step, len(k.program))
	for i, in := range k.program {
		steps[i] = step{op: in.Op, out: at(in.Out)}
		if args := in.Args(); len(args) > 0 {
			steps[i].a, steps[i].b = at(args[0]), at(args[len(args)-1])
		}
	}
	return steps
}

// interpret runs the program unit by unit.
func (k *Kernel) interpret(v [][]float32, n int) {
	const most = 64
	var values [most]float32
	places := len(v) + k.program.Temps()
	if places > most {
		panic(fmt.Sprintf("fused: program of %d vectors", places))
	}
	for u := range n {
		for _, s := range k.steps {
			a, b := values[s.a], values[s.b]
			if s.a < len(v) {
				a = v[s.a][u]
			}
			if s.b < len(v) {
				b = v[s.b][u]
			}
			out := apply(s.op, a, b)
			if s.out < len(v) {
				v[s.out][u] = out
			} else {
				values[s.out] = out
			}
		}
	}
}

// apply runs one operation. It ignores operands that the operation does not have.
func apply(op cell.Op, a, b float32) float32 {
	switch op {
	case cell.Zero:
		return 0
	case cell.Copy:
		return a
	case cell.Neg:
		return -a
	case cell.OneMinus:
		return 1 - a
	case cell.Add:
		return a + b
	case cell.Sub:
		return a - b
	case cell.Mul:
		return a * b
	case cell.Div:
		return a / b
	case cell.Sigmoid:
		return simd.Sigmoid(a)
	case cell.Tanh:
		return simd.Tanh(a)
	case cell.ReLU:
		return simd.ReLU(a)
	case cell.Exp:
		return simd.Exp(a)
	case cell.Softplus:
		return simd.Softplus(a)
	case cell.Sqrt:
		return simd.Sqrt(a)
	case cell.SigmoidGrad:
		return simd.SigmoidGrad(a, b)
	case cell.TanhGrad:
		return simd.TanhGrad(a, b)
	case cell.ReLUGrad:
		return simd.ReLUGrad(a, b)
	case cell.SoftplusGrad:
		return simd.SoftplusGrad(a, b)
	case cell.SqrtGrad:
		return simd.SqrtGrad(a, b)
	}
	panic(fmt.Sprintf("fused: no operation %v", op))
}
