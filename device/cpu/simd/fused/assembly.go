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

// find returns the assembly of p, whatever cell has that program. It returns nil if there is none.
func (t table[F]) find(l simd.Level, p cell.Program) (run F) {
	hash := catalog.Hash(p)
	for _, r := range t[l.Base()] {
		if r.hash == hash {
			return r.run
		}
	}
	return run
}

// The functions that assembly implements.
type (
	kernelFunc     func(v []Vector, at []uintptr, n, rows int)
	loopFunc       func(v []Vector, at []uintptr, n, rows, steps, stream int, packs []Pack)
	recurrenceFunc func(s *Steps)
)

// An assembly is the interpreter of one level and the function that lists its handlers.
type assembly struct {
	run      func(c *Code, v *[]float32, size, n, rows, steps int)
	handlers func(table []uintptr)
}
