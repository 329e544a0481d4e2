// Package fused runs the point-wise program of a cell over its units in one pass.
//
// Generated assembly runs the programs that package catalog lists and keeps all intermediate values
// in registers. An interpreter runs any other program, operation by operation: on vector levels in
// assembly, over blocks of vector registers (see catalog.Handler), otherwise with the kernels of
// package simd. Both compute the same bits. The package
// has no notion of rows, strides or workers.
package fused

import (
	"unsafe"

	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A Pass is one of a cell's programs.
type Pass = catalog.Pass

// The passes.
const (
	Inference       = catalog.Inference
	Forward         = catalog.Forward
	Backward        = catalog.Backward
	Compose         = catalog.Compose
	ComposeBackward = catalog.ComposeBackward
)

// A Kernel runs one program at one level. It is immutable and safe for concurrent use.
type Kernel struct {
	program cell.Program
	vectors []cell.Ref
	run     kernelFunc // nil: interpret
	machine *machine   // interprets code; nil: interpret steps
	code    *Code
	steps   []step
}

// New returns the kernel of a step of c: assembly of level l if there is any, otherwise the
// interpreter.
func New(l simd.Level, c *cell.Cell, pass Pass) *Kernel {
	p := catalog.OfStep(c, pass)
	return madeKernels.of(l, p, func() *Kernel {
		if run := kernelTable.find(l, p); run != nil {
			return &Kernel{program: p, vectors: catalog.Vectors(p), run: run}
		}
		return interpreter(l, p)
	})
}

var madeKernels memo[*Kernel]

// interpreter returns a kernel that interprets p.
func interpreter(l simd.Level, p cell.Program) *Kernel {
	k := &Kernel{program: p, vectors: catalog.Vectors(p)}
	if m := machines()[l.Base()]; m != nil {
		k.machine, k.code = m, m.code(p, k.vectors, 0)
	}
	if k.code == nil {
		k.steps = k.compile(l)
	}
	return k
}

// Block is the number of units that are worth a call of Run.
const Block = 256

// Function reports whether op needs a series or a division, not just an instruction or two.
func Function(op cell.Op) bool {
	switch op {
	case cell.Div, cell.Sigmoid, cell.Tanh, cell.Exp, cell.Softplus, cell.Sqrt, cell.SoftplusGrad, cell.SqrtGrad:
		return true
	}
	return false
}

// Assembled reports whether k runs assembly.
func (k *Kernel) Assembled() bool { return k.run != nil }

// Vectors lists the vectors that Run takes: those that the program reads, by first use, and then
// those that it only writes.
func (k *Kernel) Vectors() []cell.Ref { return k.vectors }

// Run runs the program for units 0 … n-1 of each row. v[i] is the vector of Vectors()[i]. Two vectors
// may be the same if the program reads neither after it has written one. They must not overlap in
// part. at is memory for one word per vector.
func (k *Kernel) Run(v []Vector, at []uintptr, n, rows int) {
	v = v[:len(k.vectors)]
	for i := range v {
		v[i].check(n, rows, 1)
	}
	switch {
	case n == 0 || rows == 0 || len(v) == 0: // an empty program has no vectors
	case k.run != nil:
		k.run(v, at[:len(v)], n, rows)
	case k.code != nil:
		k.machine.run(k.code, &v[0].Data, int(unsafe.Sizeof(v[0])), n, rows, 1)
	default:
		k.interpretRows(v, n, rows, 1)
	}
}
