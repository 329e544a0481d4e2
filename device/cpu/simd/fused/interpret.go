package fused

import (
	"fmt"
	"slices"
	"sync"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
)

// A step is an operation whose operands are numbered: vectors first, and then temporaries.
type step struct {
	run       func(out, a, b []float32)
	operands  int
	out, a, b int
}

// compile returns the steps of a program that no assembly interprets.
func (k *Kernel) compile(l simd.Level) []step {
	kernels, err := simd.For(l)
	if err != nil {
		kernels, _ = simd.For(simd.Generic) // every machine has it
	}
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
		args := in.Args()
		steps[i] = step{run: Operation(&kernels.Functions, in.Op, in.Value), operands: len(args), out: at(in.Out)}
		if len(args) > 0 {
			steps[i].a, steps[i].b = at(args[0]), at(args[len(args)-1])
		}
	}
	return steps
}

// StepUnits is how many units each operation computes at a time where no assembly interprets a program.
const StepUnits = 64

// stepTemps holds memory for temporaries between interpretations. A scan of few channels interprets
// so many short rows that memory for each would take most of the time.
var stepTemps = sync.Pool{New: func() any { return new([]float32) }}

// interpretRows interprets the program in Go for each row of each step.
func (k *Kernel) interpretRows(v []Vector, n, rows, steps int) {
	temps := stepTemps.Get().(*[]float32)
	defer stepTemps.Put(temps)
	*temps = slices.Grow((*temps)[:0], k.program.Temps()*min(n, StepUnits))
	row := make([][]float32, len(v))
	for s := range steps {
		for r := range rows {
			for i := range v {
				w := &v[i]
				row[i] = w.Data[w.From+s*(w.Step+(rows-1)*w.Row)+r*w.Row:][:n]
			}
			k.interpret(row, (*temps)[:cap(*temps)], n)
		}
	}
}

// interpret runs the program operation by operation, over a few units at a time. temps is memory for
// the temporaries.
func (k *Kernel) interpret(v [][]float32, temps []float32, n int) {
	units := min(n, StepUnits)
	for from := 0; from < n; from += units {
		to := min(from+units, n)
		at := func(i int) []float32 {
			if i < len(v) {
				return v[i][from:to]
			}
			return temps[(i-len(v))*units:][:to-from]
		}
		for i := range k.steps {
			s := &k.steps[i]
			var a, b []float32
			if s.operands > 0 {
				a, b = at(s.a), at(s.b)
			}
			s.run(at(s.out), a, b)
		}
	}
}

// Operation returns the kernel of op. It ignores operands that op does not have. value is that of Const.
func Operation(k *simd.Functions, op cell.Op, value float32) func(out, a, b []float32) {
	unary := func(f func(dst, a []float32)) func(out, a, b []float32) {
		return func(out, a, _ []float32) { f(out, a) }
	}
	switch op {
	case cell.Zero:
		return func(out, _, _ []float32) { clear(out) }
	case cell.Const:
		return func(out, _, _ []float32) {
			for i := range out {
				out[i] = value
			}
		}
	case cell.Copy:
		return unary(k.Copy)
	case cell.Neg:
		return func(out, a, _ []float32) { k.Scale(out, a, -1) }
	case cell.OneMinus:
		return unary(k.OneMinus)
	case cell.Add:
		return k.Add
	case cell.Sub:
		return k.Sub
	case cell.Mul:
		return k.Mul
	case cell.Div:
		return k.Div
	case cell.Sigmoid:
		return unary(k.Sigmoid)
	case cell.Tanh:
		return unary(k.Tanh)
	case cell.ReLU:
		return unary(k.ReLU)
	case cell.Exp:
		return unary(k.Exp)
	case cell.Softplus:
		return unary(k.Softplus)
	case cell.Sqrt:
		return unary(k.Sqrt)
	case cell.SigmoidGrad:
		return k.SigmoidGrad
	case cell.TanhGrad:
		return k.TanhGrad
	case cell.ReLUGrad:
		return k.ReLUGrad
	case cell.SoftplusGrad:
		return k.SoftplusGrad
	case cell.SqrtGrad:
		return k.SqrtGrad
	}
	panic(fmt.Sprintf("fused: no kernel for %v", op))
}
