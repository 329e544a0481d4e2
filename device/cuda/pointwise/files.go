// Package pointwise has the kernels that take an operation element by element or
// row by row: cells, sums of rows, look-ups in tables, softmax, transposes, fills.
package pointwise

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu
var kernels embed.FS

// file is a kernel of this package with words defined.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}
