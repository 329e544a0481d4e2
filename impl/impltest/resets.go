package impltest

import (
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// Resetting returns problems in precision p whose sequences begin anew at few, many or all steps:
// every cell without a window, every direction and kind of input and output. Precisions other than
// fp32 get a third each, always another. With -short it returns a quarter of the training problems,
// and an eighth in other precisions.
func Resetting(precision rnn.Precision) []rnn.Problem {
	var ps []rnn.Problem
	for i, c := range cell.All() {
		if c.Window > 1 {
			continue // Layout declines it
		}
		for j, percent := range []int{30, 10, 100, 50} {
			if !testing.Short() && precision != rnn.FP32 && (i+j)%3 != int(precision)%3 {
				continue
			}
			p := rnn.Problem{
				Cell: c, Input: 3 + 4*(j%3), Hidden: 5 + 6*(i%4), Layers: 1 + (i/3+j)%3, Batch: []int{5, 1, 2, 17}[j], Steps: []int{6, 19, 4, 7}[j],
				Resets: percent, Direction: rnn.Direction((i + j) % 4), Precision: precision,
			}
			if j == 1 { // the most steps
				p.Layers = 1
			}
			switch (i + j/2) % 4 {
			case 1:
				p.Output = 6
			case 2:
				p.Output, p.OneHot = 3, true
			case 3:
				p.Symbols, p.Embedding, p.Output, p.Groups, p.Weighted = 5, 2, 6, 2, true
			}
			if c.Recurrent > 0 && (i+j)%5 == 0 {
				p.Hidden, p.Heads = 6, 3
			}
			if !testing.Short() {
				ps = append(ps, p)
			}
			if p.Pass = rnn.Train; !testing.Short() || i%4 == j && (precision == rnn.FP32 || i/4%2 == int(precision)%2) {
				ps = append(ps, p)
			}
		}
	}
	return ps
}
