package persistent_test

import (
	"testing"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
)

// TestWords: Words describes how a layer is divided without the names of constants, and covers
// every constant of every kernel.
func TestWords(t *testing.T) {
	for _, v := range persistent.Variants {
		if names := persistent.Unsaid(v); len(names) > 0 {
			t.Errorf("%s has constants without words: %v", v.Name, names)
		}
	}
	for name, want := range map[string]string{
		"mma":  "a group is a cluster of 16 blocks of 256 threads, and runs 3 sequences at a time; units per block: 32, places for sequences: 8, units per warp: 8, warps that share columns: 2, pieces of columns: 8, pieces in registers: 8, inputs per unit, read ahead: 4",
		"simt": "a group is 32 blocks of 256 threads, spread over the GPU, and runs 4 sequences at a time; units per block: 16, units per thread: 2, threads that share a unit's columns: 32, pieces of columns: 16, pieces in registers: 16",
	} {
		found := false
		for _, c := range persistent.Candidates(cell.LSTM, 512, 16, driver.Brain, nil, h200()) {
			found = found || c.Variant().Name == name && c.Words() == want
		}
		if !found {
			t.Errorf("no candidate by %s is told as: %s", name, want)
		}
	}
}
