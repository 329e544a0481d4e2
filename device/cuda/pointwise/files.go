// Package pointwise has the kernels that work element by element or row by row: cells, sums of
// rows, look-ups in tables, softmax, transposes, fills and optimisers.
package pointwise

import (
	"embed"

	"rnnbench/device/cuda/codegen"
)

//go:embed *.cu
var kernels embed.FS

// file returns a kernel of this package with defines ahead of it.
func file(name string, defines ...any) codegen.Source {
	return codegen.File(kernels, name, defines...)
}
