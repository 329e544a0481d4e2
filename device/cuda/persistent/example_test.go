package persistent_test

import (
	"fmt"

	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
)

// Which kernel runs for an LSTM of 512 units, in bf16, with 16 sequences, on an H200? What is the
// best configuration of each other variant?
func ExampleCandidates() {
	seen := map[string]bool{}
	for _, c := range persistent.Candidates(cell.LSTM, 512, 16, driver.Brain, nil, h200()) {
		if v := c.Variant(); !seen[v.Name] {
			seen[v.Name] = true
			fmt.Printf("%-8s %5.0f cycles: %s\n", v.Name, c.Cycles(), v.Exchange)
		}
	}
	// Output:
	// mma       1790 cycles: pushed to the blocks of a cluster, or as words through the L2 cache
	// mma-poll  2633 cycles: each warp polls the words that it needs in the L2 cache
	// simt      3164 cycles: pushed to the blocks of a cluster, or as words through the L2 cache
	// mma-bulk  4117 cycles: the copy engine copies all states of a turn
}

// The weights of 3,072 units in bf16 are 75 MB, more than fit on the chip.
func ExampleCandidates_beyondTheChip() {
	seen := map[string]bool{}
	for _, c := range persistent.Candidates(cell.LSTM, 3072, 8, driver.Brain, nil, h200()) {
		if v := c.Variant(); !seen[v.Name] {
			seen[v.Name] = true
			fmt.Printf("%-8s %5.0f cycles: %s\n", v.Name, c.Cycles(), v.Exchange)
		}
	}
	// Output:
	// mma-stream 13701 cycles: each warp polls the words that it needs in the L2 cache
}

// Two warpgroups multiply all of 96 sequences at once.
func ExampleCandidates_manySequences() {
	seen := map[string]bool{}
	for _, c := range persistent.Candidates(cell.LSTM, 1696, 96, driver.Brain, nil, h200()) {
		if v := c.Variant(); !seen[v.Name] && len(seen) < 2 {
			seen[v.Name] = true
			fmt.Printf("%-8s %5.0f cycles: %s\n", v.Name, c.Cycles(), v.Exchange)
		}
	}
	// Output:
	// mma-wide 22980 cycles: the copy engine copies states in portions, as blocks finish them
	// mma-bulk 32156 cycles: the copy engine copies all states of a turn
}
