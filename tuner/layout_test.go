package tuner

import (
	"runtime"
	"testing"

	"rnnbench/rnn"
	"rnnbench/rnn/cell"
)

// TestHostMemory holds the estimate of what inputs and the reference take to what
// they do, of long sequences of few units above all, for which it is not small.
func TestHostMemory(t *testing.T) {
	for _, p := range []rnn.Problem{
		{Cell: cell.GILR, Input: 8, Hidden: 8, Layers: 1, Batch: 1, Steps: 50000},
		{Cell: cell.LSTM, Input: 16, Hidden: 8, Layers: 2, Batch: 3, Steps: 5000, Pass: rnn.Train},
		{Cell: cell.GRU, Input: 64, Hidden: 64, Layers: 1, Batch: 64, Steps: 50},
		{Cell: cell.RNNTanh, Input: 100, Hidden: 8, Layers: 1, Batch: 4, Steps: 2000, OneHot: true, Output: 50},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		distinct, checked := sample(p)
		rnn.Reference(rnn.NewData(checked, 1, distinct, "normal"))
		runtime.ReadMemStats(&after)
		took, said := float64(after.TotalAlloc-before.TotalAlloc), float64(hostMemory(p))
		if said < took/2 || said > 2*took {
			t.Errorf("%v: %.3g bytes were allocated, and %.3g estimated", p, took, said)
		}
	}
}
