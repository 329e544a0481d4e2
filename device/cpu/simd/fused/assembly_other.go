//go:build !amd64 || noasm

package fused

// This build has no assembly.
var (
	kernelTable     table[kernelFunc]
	loopTable       table[loopFunc]
	recurrenceTable table[recurrenceFunc]
)
