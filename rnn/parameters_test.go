package rnn

import (
	"testing"

	"rnnbench/rnn/cell"
)

// TestParameters: the number of parameters is that of the values that are drawn for them.
func TestParameters(t *testing.T) {
	of := func(c *cell.Cell) Problem {
		return Problem{Cell: c, Pass: Train, Input: 9, Hidden: 6, Layers: 4, Batch: 2, Steps: 3}
	}
	for name, p := range map[string]Problem{
		"plain": of(cell.GRU), "linear": of(cell.QRNN2), "peepholes": of(cell.LSTM),
		"both ways":  func() Problem { p := of(cell.LSTM); p.Direction = BothWays; return p }(),
		"heads":      func() Problem { p := of(cell.LSTM); p.Heads = 3; return p }(),
		"narrowed":   func() Problem { p := of(cell.LSTM); p.Projection, p.Output = 4, 5; return p }(),
		"layer norm": func() Problem { p := of(cell.LSTM); p.Norm = NormLayer; return p }(),
		"embedding":  func() Problem { p := of(cell.GRU); p.Symbols, p.Embedding = 11, 5; return p }(),
		"one-hot":    func() Problem { p := of(cell.GRU); p.OneHot = true; return p }(),
		"whole": func() Problem {
			p := of(cell.RNNReLU)
			p.Norm, p.Skip, p.Lookahead, p.Conv, p.Dense, p.Output, p.Transcript = NormBatch, 2, 3, "4x3x5/2+2x3x3/2", 7, 5, 2
			return p
		}(),
		"without shortcuts": func() Problem { p := of(cell.RNNReLU); p.Lookahead, p.Output = 3, 5; return p }(),
	} {
		var drawn int64
		for _, x := range NewData(p, 1, 1, "zeros").Tensors {
			if !x.PerSequence {
				drawn += int64(len(x.Values))
			}
		}
		if got := Parameters(p); got != drawn {
			t.Errorf("%s: %d parameters, but %d are drawn", name, got, drawn)
		}
	}
}
