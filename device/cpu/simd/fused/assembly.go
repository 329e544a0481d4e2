package fused

import (
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused/catalog"
	"rnnbench/rnn/cell"
)

// A table holds the assembly of one kind of function.
type table[F any] map[simd.Level]map[catalog.Key]routine[F]

// A routine is an assembly function with the hash of the program that it was written for.
type routine[F any] struct {
	hash uint64
	run  F
}

// find returns the assembly of p, a program of c. It returns nil if there is none, or if it was
// written for another version of the program.
func (t table[F]) find(l simd.Level, c *cell.Cell, pass Pass, p cell.Program) (run F) {
	if r, ok := t[l.Base()][catalog.Key{Cell: c.Name, Pass: pass}]; ok && r.hash == catalog.Hash(p) {
		return r.run
	}
	return run
}

// The functions that assembly implements.
type (
	kernelFunc     func(v [][]float32, n int)
	loopFunc       func(v []Vector, at []uintptr, n, rows, steps, stream, way int, packs []Pack)
	recurrenceFunc func(s *Steps)
)

// An assembly is the interpreter of one level and the function that lists its handlers.
type assembly struct {
	run      func(c *Code, v *[]float32, size, n, rows, steps int)
	handlers func(table []uintptr)
}
