package cudnnstyle_test

import (
	"slices"
	"testing"

	"rnnbench/impl/cudnnstyle"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// TestLaunchedBatch: by default, one product on a GPU computes the inputs of all steps, or of so many
// that two blocks of all layers fit 2 GiB. The other values are those of a CPU.
func TestLaunchedBatch(t *testing.T) {
	for _, c := range []struct {
		problem rnn.Problem
		want    int
	}{
		{rnn.Problem{Cell: cell.LSTM, Input: 64, Hidden: 64, Layers: 1, Batch: 8, Steps: 1}, 0},
		{rnn.Problem{Cell: cell.LSTM, Input: 64, Hidden: 64, Layers: 3, Batch: 8, Steps: 50}, 0},
		{rnn.Problem{Cell: cell.LSTM, Input: 1024, Hidden: 1024, Layers: 1, Batch: 512, Steps: 256}, 0},
		{rnn.Problem{Cell: cell.LSTM, Input: 1024, Hidden: 1024, Layers: 1, Batch: 512, Steps: 257}, 128},
		{rnn.Problem{Cell: cell.LSTM, Input: 1024, Hidden: 1024, Layers: 4, Batch: 512, Steps: 257}, 32},
		{rnn.Problem{Cell: cell.GRU, Input: 1 << 14, Hidden: 1 << 14, Layers: 4, Batch: 1 << 14, Steps: 9}, 1},
	} {
		batch := func(launched bool) knob.Knob {
			return *knob.Find(rnn.KnobsOf(cudnnstyle.Technique{}, c.problem, launched), "inputbatch")
		}
		here, there := batch(false), batch(true)
		if there.Values[0] != c.want || !there.Accepts(c.want) {
			t.Errorf("%v: %d steps per product, want %d", c.problem, there.Values[0], c.want)
		}
		for _, v := range here.Values {
			if !slices.Contains(there.Values, v) {
				t.Errorf("%v: a GPU is not offered %d steps per product", c.problem, v)
			}
		}
		if sorted := slices.Sorted(slices.Values(there.Values)); len(slices.Compact(sorted)) != len(there.Values) {
			t.Errorf("%v: values are named twice: %v", c.problem, there.Values)
		}
	}
	served := rnn.Problem{Cell: cell.LSTM, Input: 64, Hidden: 64, Layers: 2, Batch: 1, Steps: 1}
	for calls, want := range []int{2, 1} {
		served.Calls = calls
		if k := knob.Find(rnn.KnobsOf(cudnnstyle.Technique{}, served, true), "streams"); k.Values[0] != want || len(k.Values) != 4 {
			t.Errorf("%d calls run on streams of %v, want %d first", calls, k.Values, want)
		}
	}
}
