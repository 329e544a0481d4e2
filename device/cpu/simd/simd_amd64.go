//go:build amd64 && !noasm

package simd

import (
	"github.com/klauspost/cpuid/v2"

	"rnnbench/device/cpu/simd/amx"
)

// maxI8Strips is the most strips of a tile of 8-bit integers, with any instruction set.
const maxI8Strips = 4

func detect() Level {
	c := &cpuid.CPU
	switch {
	case !c.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.BMI2, cpuid.F16C):
		return Generic
	case !c.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL):
		return AVX2
	case !c.Supports(cpuid.AVX512BF16):
		return AVX512
	case amx.Hardware() == nil:
		return AVX512BF16
	}
	return AMX
}

// slow reports whether the processor multiplies pairs of BF16 more slowly than single precision.
func slow() bool { return cpuid.CPU.VendorID == cpuid.Intel }

func newKernels(l Level) *Kernels {
	switch l {
	case AVX2:
		return complete(&Kernels{
			level:     AVX2,
			Functions: functionsAVX2(),
			Steps:     Steps{descend: descendAVX2, momentum: momentumAVX2, adam: adamAVX2, squares: squaresAVX2},
			Products: Products{
				tiles:     tilesAVX2(),
				dots:      dotsAVX2(),
				peak:      peakAVX2,
				peakFLOPs: 2 * 12 * 8,

				maxI8Strips: maxI8Strips,
				mostBits:    mostBitsAVX2,
				quantize:    quantizeAVX2,
			},
			Moves: Moves{
				stream:        streamAVX2,
				pack1:         pack1AVX2,
				pack4:         pack4AVX2,
				transpose:     transposeAVX2,
				transposeRows: 8,
				narrow:        [formats]func(dst, src []float32){F16: narrowF16AVX2, BF16: narrowBF16AVX2},
				widen:         [formats]func(dst, src []float32){F16: widenF16AVX2, BF16: widenBF16AVX2},
			},
		})
	case AVX512, AVX512BF16, AMX:
		k := &Kernels{
			level:     l,
			Functions: functionsAVX512(),
			Steps:     Steps{descend: descendAVX512, momentum: momentumAVX512, adam: adamAVX512, squares: squaresAVX512},
			Products: Products{
				tiles:     tilesAVX512(),
				dots:      dotsAVX512(),
				peak:      peakAVX512,
				peakFLOPs: 2 * 12 * 16,

				maxI8Strips: maxI8Strips,
				mostBits:    mostBitsAVX2,
				quantize:    quantizeAVX2,
			},
			Moves: Moves{
				stream:        streamAVX512,
				pack1:         pack1AVX512,
				pack4:         pack4AVX512,
				transpose:     transposeAVX512,
				transposeRows: 16,
				narrow:        [formats]func(dst, src []float32){F16: narrowF16AVX512, BF16: narrowBF16AVX512},
				widen:         [formats]func(dst, src []float32){F16: widenF16AVX512, BF16: widenBF16AVX512},
			},
		}
		if !cpuid.CPU.Supports(cpuid.AVX512VNNI) {
			k.tiles[I8] = tilesAVX2()[I8]
		}
		if l >= AVX512BF16 {
			k.roundRow, k.peakPairs = roundRowAVX512, peakPairsAVX512
		}
		if l >= AMX {
			k.unit = amx.Hardware()
		}
		return complete(k)
	}
	return newGeneric()
}

// complete derives the limits of the tables.
func complete(k *Kernels) *Kernels {
	for m := range k.tiles[F32] {
		for s, f := range k.tiles[F32][m] {
			if f != nil {
				k.maxRows = max(k.maxRows, m)
				k.maxStrips[m] = max(k.maxStrips[m], s)
			}
		}
		if k.dots[m][1] != nil {
			k.maxDotRows = m
		}
	}
	return k
}

func functionsAVX2() Functions {
	return Functions{
		add:          addAVX2,
		sub:          subAVX2,
		mul:          mulAVX2,
		div:          divAVX2,
		oneMinus:     oneMinusAVX2,
		relu:         reluAVX2,
		sigmoid:      sigmoidAVX2,
		tanh:         tanhAVX2,
		sigmoidGrad:  sigmoidGradAVX2,
		tanhGrad:     tanhGradAVX2,
		reluGrad:     reluGradAVX2,
		exp:          expAVX2,
		softplus:     softplusAVX2,
		sqrt:         sqrtAVX2,
		softplusGrad: softplusGradAVX2,
		sqrtGrad:     sqrtGradAVX2,
		scale:        scaleAVX2,
		expSum:       expSumAVX2,
		sum:          sumAVX2,
		most:         mostAVX2,
	}
}

func functionsAVX512() Functions {
	return Functions{
		add:          addAVX512,
		sub:          subAVX512,
		mul:          mulAVX512,
		div:          divAVX512,
		oneMinus:     oneMinusAVX512,
		relu:         reluAVX512,
		sigmoid:      sigmoidAVX512,
		tanh:         tanhAVX512,
		sigmoidGrad:  sigmoidGradAVX512,
		tanhGrad:     tanhGradAVX512,
		reluGrad:     reluGradAVX512,
		exp:          expAVX512,
		softplus:     softplusAVX512,
		sqrt:         sqrtAVX512,
		softplusGrad: softplusGradAVX512,
		sqrtGrad:     sqrtGradAVX512,
		scale:        scaleAVX512,
		expSum:       expSumAVX512,
		sum:          sumAVX512,
		most:         mostAVX512,
	}
}
