package cpu

import (
	"rnnbench/device/cpu/gemm"
	"rnnbench/device/cpu/simd"
	"rnnbench/device/cpu/simd/fused"
)

// This file decides when one call of assembly runs all steps of a band or of a sequence.

// inOneCall reports whether one call runs all steps of a band.
func (w *persistent) inOneCall(bands int) bool {
	if w.interpreted() && bands > 1 {
		return false
	}
	return w.batch == 1 && w.recurrence != nil && (w.input != nil || w.calls(w.largest(bands)))
}

// inBands reports whether one call of k may run all steps of one of several bands.
func inBands(k *fused.Recurrence) bool { return k != nil && !k.Alone() }

// interpreted reports whether a call interprets the cell. Then one worker runs all units.
func (w *persistent) interpreted() bool { return w.recurrence != nil && w.recurrence.Alone() }

// calls reports whether all steps of so many units of one sequence are faster in one call than as
// products and cells. If weights exceed L2, products of successive steps read them from alternate
// ends. With AVX2, one call keeps sums of only one strip of each gate in registers. Products of a
// step read more strips side by side, which pays if weights come from far away.
func (w *persistent) calls(units int) bool {
	const far = 4
	switch bytes := w.bytes(units); {
	case w.program.device.kernels.Level() >= simd.AVX512:
		return bytes <= gemm.CacheOf(w.program.device.gemm)
	case bytes <= nearest():
		return true
	case len(w.weights) == 1:
		return bytes <= far*nearest()
	default:
		return 4*bytes < 3*gemm.DetectL2()
	}
}

// oneByOne reports whether a worker runs each of rows sequences in one call, rather than each step
// for all of them. It does so if the nearest cache holds the weights, or if there are few sequences
// to read them for. Starting a call takes as long as a step or two. With AVX-512, tiles of several
// sequences are faster than calls once there are more than three lines of units, or four with one
// gate.
func (w *persistent) oneByOne(rows int) bool {
	const few, lines = 4, 3
	wide := w.program.device.kernels.Level() >= simd.AVX512
	switch {
	case w.recurrence == nil || rows > 1 && w.steps < few:
		return false
	case wide && rows >= enoughByVectors && (w.hidden > (lines+1)*line || w.hidden > lines*line && len(w.weights) > 1):
		return false
	case w.near(w.hidden):
		return true
	case wide:
		return rows == 1 || rows <= enoughByVectors && w.near(w.hidden*2/3)
	}
	return rows == 1 && len(w.weights) > 1 && w.calls(w.hidden)
}

// pairs reports whether a band of so many units computes two vectors at once. With AVX-512 this
// pays for near weights, which are read as fast as states are broadcast, unless the band also forms
// an input product. It always pays for a single recurrent product, whose weights are then read from
// two places. With AVX2, two vectors are a strip, which is read once for both; layers of two near
// strips and several gates were slower.
func (w *persistent) pairs(units int) bool {
	switch {
	case len(w.weights) == 1:
		return true
	case w.program.device.kernels.Level() < simd.AVX512:
		return w.hidden != 2*line || !w.near(units)
	}
	return w.near(units) && (w.input == nil || w.input.helped)
}

// near reports whether the nearest cache holds the weights of so many units.
func (w *persistent) near(units int) bool { return w.bytes(units) <= nearest() }

// bytes returns the bytes of the weights of so many units.
func (w *persistent) bytes(units int) int { return 4 * len(w.weights) * w.hidden * units }
