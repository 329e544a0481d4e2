//go:build !amd64 || noasm

package fused

import "rnnbench/device/cpu/simd"

// This build has no assembly.
var (
	kernelTable     table[kernelFunc]
	loopTable       table[loopFunc]
	recurrenceTable table[recurrenceFunc]
	interpreters    map[simd.Level]assembly
)
