package impltest

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// Ragged returns problems in precision p whose sequences have lengths of their own: every cell,
// direction and kind of input and output, with lengths of 1, equal ones and all different.
// Precisions other than fp32 get a third each, always another. With -short they are an eighth of the
// training problems, and a twelfth in other precisions.
func Ragged(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		for j, lengths := range []rnn.Lengths{"1+2+2*4+6", "3*1+4+5", "4*5", "uniform:50%@2"} {
			if !testing.Short() && precision != rnn.FP32 && (i+j)%3 != int(precision)%3 {
				continue
			}
			p := rnn.Problem{
				Cell: c, Input: 3 + 4*(j%3), Hidden: 5 + 2*(i%4), Layers: 1 + (i/3+j)%3, Batch: 5, Steps: 6,
				Lengths: lengths, Direction: rnn.Direction((i + j) % 4), Precision: precision,
			}
			switch lengths {
			case "3*1+4+5":
				p.Steps, p.Direction = 5, rnn.FromFirst
			case "4*5":
				p.Batch, p.Steps = 4, 5
			case "uniform:50%@2":
				p.Batch, p.Steps = 11, 9
			}
			switch (i + j/2) % 4 {
			case 1:
				p.Output = 6
			case 2:
				p.Output, p.OneHot = 3, c.Window == 1
			case 3:
				p.Symbols, p.Embedding, p.Output, p.Groups, p.Weighted = 5, 2, 6, 2, true
			}
			if c.Recurrent > 0 && (i+j)%5 == 0 {
				p.Hidden, p.Heads = 6, 3
			}
			if !testing.Short() {
				ps = append(ps, p)
			}
			if p.Pass = rnn.Train; !testing.Short() || i%4 == j && (precision == rnn.FP32 && i/4%2 == 0 || precision != rnn.FP32 && i/4%3 == int(precision)%3) {
				ps = append(ps, p)
			}
		}
	}
	return ps
}
