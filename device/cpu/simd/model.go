package simd

import (
	"math"

	"rnnbench/device/cpu/simd/amx"
)

// Model returns kernels in plain Go that multiply BF16 like a level above AVX512, on any machine.
// They are for tests, since they are hundreds of times slower.
func Model(l Level) *Kernels {
	k := newGeneric()
	k.level = l
	k.roundRow, k.peakPairs = roundRowGeneric, func(int) {}
	for m := 1; m <= k.maxRows; m++ {
		k.tiles[Pairs][m][1] = tilePairsGeneric
	}
	if l >= AMX {
		k.unit = amx.Model()
	}
	return k
}

func roundRowGeneric(dst, src []float32) {
	for at := 0; at < len(src); at += amx.StepK {
		var block [amx.StepK]float32
		copy(block[:], src[at:])
		for i := range amx.TileWords {
			dst[at/2+i] = math.Float32frombits(uint32(ToBF16(block[2*i])) | uint32(ToBF16(block[2*i+1]))<<16)
		}
	}
}

func tilePairsGeneric(t *Tile) {
	for m := range t.Rows {
		for s := range t.Strips {
			w := StripWidth
			if s == t.Strips-1 {
				w = t.Last
			}
			for j := range w {
				sum := float32(0)
				for k := range t.K {
					x, y := t.A[m*t.ARow+k*t.ACol], t.B[s*t.BStrip+k*t.BStep+j]
					sum = amx.Pair(math.Float32bits(x), math.Float32bits(y), sum)
				}
				put(t.C[m*t.CRow+s*StripWidth+j:][:1], [4]float32{sum}, t.Accumulate)
			}
		}
	}
}
