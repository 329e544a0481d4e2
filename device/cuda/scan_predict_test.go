package cuda_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
)

// TestScanPredict holds what scans are expected to take to what they took on an H200, recorded in
// docs/notebook/performance.md: within a third for small ones, and 15 % for large ones.
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
