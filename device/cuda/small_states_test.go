package cuda_test

import (
	"fmt"
	"testing"

	"rnnbench/impl"
	"rnnbench/impl/impltest"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestSmallStates: with one input, states are small, and so are the arguments of tangents. Their errors are
// judged by the mean of many states. A tangent that was off by a few units in the last place of 1 failed here.
func TestSmallStates(t *testing.T) {
	d, _ := emulated(t)
	all := map[string][]*cell.Cell{"scan": {cell.GILR, cell.QRNN}}
	for _, c := range diagonals(t) {
		if len(c.States) > 1 {
			all["persistent"] = append(all["persistent"], c)
		}
	}
	for name, cells := range all {
		for _, c := range cells {
			t.Run(fmt.Sprint(c), func(t *testing.T) {
				p := rnn.Problem{Cell: c, Input: 1, Hidden: 1024, Layers: 1, Batch: 1, Steps: 64}
				impltest.Run(t, d, fixed{impl.Lookup(name), nil}, []rnn.Problem{p})
			})
		}
	}
}
