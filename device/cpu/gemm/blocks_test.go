package gemm

import (
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestShallowProductsPack: rows of Bᵀ are read in place only if they are few for their length. Dot
// products of 21 elements took 3 to 6 times as long as packing and tiles.
func TestShallowProductsPack(t *testing.T) {
	k, err := simd.For(simd.Generic)
	if err != nil {
		t.Fatal(err)
	}
	e := New(k, 0)
	for _, c := range []struct {
		rows, depth int
		want        way
	}{{1, 8, byDots}, {1, 7, blocked}, {16, 21, blocked}, {16, 128, byDots}, {32, 255, blocked}, {32, 256, byDots}, {33, 4096, blocked}} {
		p := Product{M: c.rows, N: 525, K: c.depth, B: Matrix{Trans: true}}
		if got := e.way(&p, c.rows); got != c.want {
			t.Errorf("%d rows of %d elements: way %d, want %d", c.rows, c.depth, got, c.want)
		}
	}
}
