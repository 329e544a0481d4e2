// Package gemm forms products, C = A·B: by the vendor's library, by its
// half-precision products of split factors, by a kernel that splits the left
// factor as it multiplies (split_fp16.go), or, of few rows, by a kernel that reads
// packed weights once (skinny.go). SplitPlan and SkinnyPlan say which is when.
package gemm

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

// Scales is the text that knows of the absmax cache of a factor.
func Scales() string { return file("scales").Text }
