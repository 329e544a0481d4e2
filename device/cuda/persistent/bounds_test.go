package persistent_test

import (
	"testing"

	"rnnbench/device/cuda/persistent"
	"rnnbench/rnn/cell"
)

// TestWithin: of which cells states stay within ±1, and of which only if they are.
func TestWithin(t *testing.T) {
	for c, want := range map[*cell.Cell]int{cell.LSTM: 1, cell.LSTMPeephole: 1, cell.RNNTanh: 1, cell.RNNReLU: 0, cell.GRU: 2, cell.SRU: 0} {
		if got := persistent.Within(c); got != want {
			t.Errorf("%v: %d, not %d", c, got, want)
		}
	}
}
