package gemm

import (
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/launch"
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
	}
}
