package persistent_test

import (
	"testing"

	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
)

// TestWithin: for which cells states stay within ±1, and for which only if they are within ±1
// already.
func TestWithin(t *testing.T) {
	for c, want := range map[*cell.Cell]int{cell.LSTM: 1, cell.LSTMPeephole: 1, cell.RNNTanh: 1, cell.RNNReLU: 0, cell.GRU: 2, cell.SRU: 0} {
		if got := persistent.Within(c); got != want {
			t.Errorf("%v: %d, not %d", c, got, want)
		}
	}
}
