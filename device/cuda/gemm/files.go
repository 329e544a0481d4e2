// Package gemm forms products C = A·B in four ways. The vendor's library multiplies them, or their
// split factors in half precision. A kernel of our own splits the left factor as it multiplies
// (split_fp16.go), and another reads packed weights once for products of few rows (skinny.go).
// SplitPlan and SkinnyPlan choose.
package gemm

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

// Scales returns the kernel text for absmax caches.
func Scales() string { return file("scales").Text }
