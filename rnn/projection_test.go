package rnn

import (
	"testing"

	"rnnbench/rnn/cell"
)

// TestProjectionCounts: a step multiplies a row by the projection once. R and the layers above are
// as narrow as the outputs. Training takes three times as much.
func TestProjectionCounts(t *testing.T) {
	p := Problem{Cell: cell.LSTM, Input: 3, Hidden: 8, Projection: 5, Layers: 2, Batch: 7, Steps: 11, Output: 2}
	for direction, want := range map[Direction]int64{
		FromFirst: 2 * 77 * (32*(3+5) + 5*8 + 32*(5+5) + 5*8 + 2*5),
		BothWays:  2 * 77 * (2*(32*(3+5)+5*8) + 2*(32*(10+5)+5*8) + 2*10),
	} {
		p.Direction, p.Pass = direction, Forward
		if got := p.FLOPs(); got != want {
			t.Errorf("%v: %d operations, want %d", direction, got, want)
		}
		if p.Pass = Train; p.FLOPs() != 3*want {
			t.Errorf("%v: %d operations where training, want %d", direction, p.FLOPs(), 3*want)
		}
	}
}
