//go:build !amd64 || noasm

package simd

func detect() Level { return Generic }

func slow() bool { return false }

func newKernels(Level) *Kernels { return newGeneric() }
