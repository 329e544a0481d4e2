package persistent_test

import (
	"testing"

	"rnnbench/impl/persistent"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestWaveBlock: the default block of a wave takes the least time by the model of its length. Of T steps
// in L layers, blocks of b steps take T + (L-1)·b steps, and 6 more for each of T/b blocks. A single
// layer is one block.
func TestWaveBlock(t *testing.T) {
	for _, c := range []struct{ steps, layers int }{{600, 2}, {600, 3}, {600, 5}, {1000, 2}, {100, 4}, {5, 2}, {600, 1}} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 16, Hidden: 16, Layers: c.layers, Batch: 1, Steps: c.steps}
		_, s, err := rnn.Layout(persistent.Technique{}, p, knob.Params{"streams": 2 * c.layers})
		if err != nil {
			t.Fatal(err)
		}
		block := 0
		for op := range s.Operations() {
			if op, ok := op.(schedule.Persistent); ok {
				block = max(block, op.Steps)
			}
		}
		took := func(b int) float64 {
			return float64(c.steps+(c.layers-1)*b) + 6*float64(c.steps)/float64(b)
		}
		best := c.steps
		for b := 1; b <= c.steps; b++ {
			if took(b) < took(best) {
				best = b
			}
		}
		if block < best || block > best+1 { // the square root is rounded up
			t.Errorf("%d layers of %d steps run in blocks of %d, want %d or one more", c.layers, c.steps, block, best)
		}
	}
}

// TestProductsRunAhead: in a wave of several blocks, the input products of a block have room beside those
// of the block that is running. Elsewhere there is room for one block.
func TestProductsRunAhead(t *testing.T) {
	for _, c := range []struct{ streams, block, want int }{{4, 10, 2 * 10}, {4, 5, 2 * 5}, {4, 20, 20}, {1, 10, 10}} {
		p := rnn.Problem{Cell: cell.LSTM, Input: 16, Hidden: 16, Layers: 2, Batch: 3, Steps: 20}
		_, s, err := rnn.Layout(persistent.Technique{}, p, knob.Params{"streams": c.streams, "inputbatch": c.block})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, m := range s.Matrices {
			if m.Name == "x·W0" || m.Name == "x·W1" {
				found++
				if m.Rows != 3*c.want {
					t.Errorf("%d streams in blocks of %d: %s has %d rows, want %d", c.streams, c.block, m.Name, m.Rows, 3*c.want)
				}
			}
		}
		if found != 2 {
			t.Errorf("%d matrices of input products", found)
		}
	}
}
