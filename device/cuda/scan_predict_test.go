package cuda_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
)

// TestScanPredict holds predicted times of scans to those measured on an H200, recorded in
// docs/notebook/scan.md: within a third for small ones, and 15 % for large ones.
func TestScanPredict(t *testing.T) {
	for _, test := range []struct {
		cell             *cell.Cell
		batch, hid, long int
		measured, within float64 // in inference
	}{
		{cell.GILR, 1, 16, 4096, 6.6e-6, 0.34}, {cell.GILR, 1, 16, 16384, 6.8e-6, 0.34}, {cell.GILR, 1, 64, 4096, 6.7e-6, 0.34},
		{cell.GILR, 1, 256, 1024, 4.9e-6, 0.34}, {cell.GILR, 1, 256, 200, 4.2e-6, 0.34}, {cell.GILR, 8, 256, 24, 3.8e-6, 0.34},
		{cell.Linear, 1, 256, 65536, 51.6e-6, 0.15}, {cell.Linear, 16, 256, 4096, 51.6e-6, 0.15}, {cell.Linear, 8, 1536, 16384, 569e-6, 0.15},
		{cell.Linear, 3, 77, 100003, 83.7e-6, 0.34}, {cell.GILR, 33, 501, 1009, 65.1e-6, 0.34}, {cell.GILR, 4096, 3, 1201, 53.1e-6, 0.34}, // rows that begin anywhere
	} {
		s, _, _ := scans(t, test.cell, test.long, test.batch, test.hid, false)
		seconds, err := cuda.Expected(s, nil, h200())
		if err != nil {
			t.Fatal(err)
		}
		if ratio := seconds[0] / test.measured; ratio < 1-test.within || ratio > 1+test.within {
			t.Errorf("%v %d × %d × %d: %.3g s, measured %.3g", test.cell, test.batch, test.hid, test.long, seconds[0], test.measured)
		}
	}
}

// TestScanPredictShares holds the predictions for large scans of unaligned rows to measurements on
// an H100. It compares the predicted share of memory's rate with the measured share of a copy's
// rate (docs/notebook/scan.md).
func TestScanPredictShares(t *testing.T) {
	const rate = 3.9e12 // bytes a second: the model's rate of memory
	for _, test := range []struct {
		size   [3]int     // batch, hidden, steps
		shares [3]float64 // in inference, kept, and backward
	}{
		{[3]int{33, 501, 1009}, [3]float64{0.93, 0.87, 0.92}},
		{[3]int{129, 1023, 127}, [3]float64{0.93, 0.86, 0.94}},
		{[3]int{401, 51, 1003}, [3]float64{0.94, 0.80, 0.94}},
		{[3]int{4096, 3, 1201}, [3]float64{0.94, 0.89, 0.94}},
		{[3]int{3, 77, 100003}, [3]float64{0.82, 0.78, 0.70}},
		{[3]int{5, 100, 30011}, [3]float64{0.80, 0.76, 0.76}},
		{[3]int{1, 229, 65521}, [3]float64{0.83, 0.79, 0.77}},
	} {
		for i, pass := range []string{"inference", "forward", "backward"} {
			s := scanning(t, cell.Linear, pass, test.size)
			seconds, err := cuda.Expected(s, nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			bytes := float64(cuda.Moved(s.Nodes[0].Op)) * float64(test.size[0]) * float64(test.size[1]) * float64(test.size[2])
			if share := bytes / rate / seconds[len(seconds)-1]; share/test.shares[i] < 0.85 || share/test.shares[i] > 1.15 {
				t.Errorf("%v %s: %.0f %% of memory's rate, and it had %.0f %% of a copy's", test.size, pass, 100*share, 100*test.shares[i])
			}
		}
	}
}
