package cpu

import (
	"math"
	"testing"

	"rnnbench/device/cpu/simd"
)

// TestScatterOfEqualTermsIsExactEnough: the rounding errors of equal terms add up, so that a row of the table must not
// be one sum of thousands. All shares together add each row of src once, and the next run finds chains as this one.
func TestScatterOfEqualTermsIsExactEnough(t *testing.T) {
	const term, before, stride = 0.1, 3, 1100
	for _, size := range [][3]int{{300, 7, 3}, {513, 33, 2}, {60001, 5, 3}, {5000, 1050, 1}} {
		rows, cols, symbols := size[0], size[1], size[2]
		w := &scatter{
			kernels: simd.Best(), program: &program{},
			index: matrix{data: make([]float32, rows), stride: 1, rows: rows, cols: 1},
			src:   matrix{data: make([]float32, rows*cols), stride: cols, rows: rows, cols: cols},
			table: matrix{data: make([]float32, symbols*stride), stride: stride, rows: symbols, cols: cols},
		}
		w.chain(2)
		count := make([]float64, symbols)
		for i := range rows {
			at := 0
			if i%8 == 0 {
				at = i / 8 % symbols
			}
			w.index.data[i] = float32(at)
			count[at]++
		}
		for i := range w.src.data {
			w.src.data[i] = term
		}
		for run := range 2 {
			for i := range w.table.data {
				w.table.data[i] = before
			}
			var s scratch
			for part := range 2 {
				w.share(part, 2, &s)
			}
			for i, v := range w.table.data {
				want := float64(before)
				if i%stride < cols {
					want += float64(float32(term)) * count[i/stride]
				}
				// Half a unit in the last place for each of 512 terms at most, or of 256 and as many sums.
				if off := math.Abs(float64(v)-want) / want; off > 512*0x1p-24 {
					t.Fatalf("%v, run %d: value %d is off by %.2g", size, run, i, off)
				}
			}
		}
	}
}
