// Package fused runs the point-wise program of a cell over its units in one pass.
//
// Generated assembly runs the programs of package cell and keeps all intermediate values in
// registers. An interpreter in plain Go runs any other program, level or machine. The package
// knows no rows, strides or workers.
package fused

import (
	"strings"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
)

// A Kernel runs one program at one level. It is immutable and safe for concurrent use.
type Kernel struct {
	program cell.Program
	vectors []cell.Ref
	run     func(v [][]float32, n int) // nil: interpret
	steps   []step
}

// New returns the kernel of p: assembly of level l if there is any, else the interpreter.
func New(l simd.Level, p cell.Program) *Kernel {
	k := &Kernel{program: p, vectors: vectors(p), run: assembly(l, text(p))}
	if k.run == nil {
		k.steps = k.compile()
	}
	return k
}

// Assembled reports whether k runs assembly.
func (k *Kernel) Assembled() bool { return k.run != nil }

// Vectors lists the vectors that Run takes: those that the program reads, in the order of first
// use, then those that it only writes.
func (k *Kernel) Vectors() []cell.Ref { return k.vectors }

// Run runs the program for units 0 … n-1. v[i] is the vector of Vectors()[i], n units or longer.
// Two vectors may be the same if the program reads neither after it has written one; they may
// not overlap in part.
func (k *Kernel) Run(v [][]float32, n int) {
	v = v[:len(k.vectors)]
	for _, s := range v {
		_ = s[:n]
	}
	if k.run != nil {
		k.run(v, n)
		return
	}
	k.interpret(v, n)
}

// vectors is the order of operands, which the generator repeats.
func vectors(p cell.Program) []cell.Ref {
	reads, writes := p.Vectors()
	known := map[cell.Ref]bool{}
	for _, r := range reads {
		known[r] = true
	}
	for _, w := range writes {
		if !known[w] {
			reads = append(reads, w)
		}
	}
	return reads
}

// text identifies a program.
func text(p cell.Program) string {
	var lines []string
	for _, in := range p {
		lines = append(lines, in.String())
	}
	return strings.Join(lines, "; ")
}
