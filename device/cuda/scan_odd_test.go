package cuda_test

import (
	"fmt"
	"math"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestScanOdd holds what scans leave whose rows begin anywhere, forward and backward, to what blocks leave that copy
// value by value.
func TestScanOdd(t *testing.T) {
	for i, test := range []struct {
		cell      *cell.Cell
		size      [3]int // steps, batch, hidden
		sms       int
		precision schedule.Precision
	}{
		{cell.Linear, [3]int{2051, 3, 7}, 5, schedule.FP32},
		{cell.Linear, [3]int{9203, 1, 1}, 5, schedule.FP32},
		{cell.Linear, [3]int{901, 3, 77}, 19, schedule.FP32},
		{cell.GILR, [3]int{601, 5, 100}, 41, schedule.FP32},
		{cell.SRU, [3]int{1111, 2, 5}, 5, schedule.FP32},
		{cell.SRU, [3]int{605, 3, 35}, 13, schedule.FP32},
		{cell.QRNN, [3]int{605, 1, 333}, 23, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{603, 1, 61}, 5, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{1033, 1, 3}, 3, schedule.FP32},
		{cell.GILR, [3]int{611, 23, 3}, 7, schedule.FP32},
		{cell.QRNN, [3]int{611, 31, 2}, 7, schedule.FP32},
		{cell.Linear, [3]int{611, 2, 19}, 7, schedule.FP32},
		{cell.GILR, [3]int{2057, 1, 5}, 5, schedule.BF16},
		{cell.SRU, [3]int{707, 3, 37}, 13, schedule.BF16},
		{cell.QRNN, [3]int{709, 12, 3}, 5, schedule.BF16},
		{cell.LSLSTM.Core, [3]int{601, 2, 33}, 9, schedule.BF16},
		{cell.LSLSTM.Core, [3]int{2003, 1, 7}, 3, schedule.BF16},
		{cell.Linear, [3]int{3001, 1, 9}, 29, schedule.BF16},
		{cell.Linear, [3]int{501, 7, 333}, 5, schedule.FP32},
		{cell.GILR, [3]int{131, 50, 3}, 2, schedule.FP32},
		{cell.SRU, [3]int{133, 3, 101}, 2, schedule.FP32},
		{cell.QRNN, [3]int{300, 1, 77}, 2, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{61, 11, 35}, 2, schedule.FP32},
		{cell.LSLSTM.Core, [3]int{203, 3, 7}, 29, schedule.FP32},
		{cell.Linear, [3]int{500, 3, 7}, 1, schedule.FP32},
		{cell.GILR, [3]int{501, 3, 71}, 2, schedule.BF16},
		{cell.SRU, [3]int{263, 13, 3}, 1, schedule.BF16},
	} {
		_ = i
		t.Run(fmt.Sprint(test.cell, test.size, test.precision), func(t *testing.T) {
			within := 1e-4
			if test.precision == schedule.BF16 {
				within = 1.0 / 128
			}
			var want [][]float32
			for _, old := range []bool{true, false} {
				compiler, emulated := emulation(t, 1)
				var on driver.Driver = older{emulated}
				if !old {
					compiler, emulated = emulation(t, test.sms)
					on = emulated
				}
				s, _, _ := scansIn(t, test.precision, test.cell, test.size[0], test.size[1], test.size[2], true)
				kinds := [2]string{}
				for i, c := range cuts(t, s, nil, on.Properties()) {
					kinds[i] = c.kind
				}
				t.Log(kinds)
				d := cuda.New(on, compiler, "")
				got := left(t, d, on.Properties(), test.precision, test.cell, test.size, kinds)
				d.Close()
				if want == nil {
					want = got
					continue
				}
				for i, m := range got {
					for j, v := range m {
						if w := want[i][j]; !(math.Abs(float64(v-w)) <= within*(1+math.Abs(float64(w)))) {
							t.Fatalf("%v %v: element %d of matrix %d is %v, want %v", test.cell, test.size, j, i, v, w)
						}
					}
				}
			}
		})
	}
}
