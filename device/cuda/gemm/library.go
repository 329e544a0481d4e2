package gemm

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// Product describes op to the vendor's library.
func Product(t *launch.Target, op schedule.Gemm) *driver.Product {
	m, n, k := op.Sizes()
	return &driver.Product{
		M: m, N: n, K: k, A: t.At(op.A), B: t.At(op.B), C: t.At(op.C),
		LdA: op.A.M.Cols, LdB: op.B.M.Cols, LdC: op.C.M.Cols,
		TransA: op.TransA, TransB: op.TransB, Accumulate: op.Accumulate,
		Operands: t.Element(op.A), Result: t.Element(op.C), TF32: t.Precision == schedule.TF32,
		Pick: t.Knobs["pick"] != 0,
	}
}

// PickKnob is the knob of how the library chooses its algorithms.
func PickKnob() knob.Knob {
	return knob.Knob{Name: "pick", Doc: "the library's algorithm for each product: 1: the fastest of those it names, which are tried; 0: the one it recommends", Values: []int{0, 1}}
}
