package cpu

import (
	"testing"

	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
)

// TestVariantIsWhatMultiplies: a product's variant names the instructions that multiply it. They
// depend on precision and size.
func TestVariantIsWhatMultiplies(t *testing.T) {
	for _, c := range []struct {
		level          simd.Level
		format         simd.Format
		m, units, deep int
		want           string
	}{
		{simd.AMX, simd.BF16, 16, 512, 512, "amx"},
		{simd.AMX, simd.F32, 16, 512, 512, "avx512"},
		{simd.AMX, simd.F16, 16, 512, 512, "avx512"},
		{simd.AMX, simd.BF16, 1, 16, 24, "avx512"},         // too small
		{simd.AMX, simd.BF16, 1, 8192, 2048, "avx512bf16"}, // one row, with weights from far away
		{simd.AVX512BF16, simd.BF16, 16, 512, 512, "avx512bf16"},
	} {
		k := simd.Model(c.level)
		p := &program{device: &Device{planner: planner{workers: 1, kernels: k, gemm: gemm.New(k, 1<<20)}}}
		g := bandProduct(c.m, c.units, c.deep, c.format)
		if got := p.variant(&g); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
