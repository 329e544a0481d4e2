//go:build !amd64 || noasm

package fused

// There is no assembly.
var (
	kernelTable     table[kernelFunc]
	loopTable       table[loopFunc]
	recurrenceTable table[recurrenceFunc]
)
