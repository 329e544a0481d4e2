//go:build !amd64 || noasm

package fused

import "rnnbench/device/cpu/simd"

func assembly(simd.Level, string) func(v [][]float32, n int) { return nil }

func assembledLoop(simd.Level, string) func(v []Vector, at []uintptr, n, rows, steps, stream, way int) {
	return nil
}

func assembledSteps(simd.Level, string) func(s *Steps) { return nil }
