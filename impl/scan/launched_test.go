package scan_test

import (
	"testing"

	"rnnbench/impl/scan"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestLaunchedBlock: a launched block has all steps, or as many as have products of at most 4 GiB; with
// gradients, products count twice.
func TestLaunchedBlock(t *testing.T) {
	const most = 4 << 30
	for _, c := range []struct {
		steps int
		pass  rnn.Pass
		whole bool
	}{{1000, rnn.Forward, true}, {4096, rnn.Forward, true}, {4097, rnn.Forward, false}, {2048, rnn.Train, true}, {2049, rnn.Train, false}, {100_000, rnn.Train, false}} {
		p := rnn.Problem{Cell: cell.GILR, Input: 8, Hidden: 2048, Layers: 1, Batch: 64, Steps: c.steps, Pass: c.pass}
		step := 4 * p.Batch * p.Hidden * len(p.Cell.Gates) // 1 MiB
		if c.pass == rnn.Train {
			step *= 2
		}
		block := scan.Technique{}.LaunchedKnobs(p)[0].Values[0]
		if want := most / step; c.whole && block != 0 || !c.whole && block != want {
			t.Errorf("%d steps, %v: a block of %d, want all %t or %d", c.steps, c.pass, block, c.whole, want)
		}
	}
}
