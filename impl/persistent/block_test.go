package persistent_test

import (
	"strings"
	"testing"

	"rnnbench/impl/persistent"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestBlockFits: input products are computed in blocks of at most 2 GiB and about equal length.
// Products that fit are one block. A block length that the knob sets is kept.
func TestBlockFits(t *testing.T) {
	large := rnn.Problem{Cell: cell.LSTM, Input: 1024, Hidden: 1024, Layers: 1, Batch: 512, Steps: 1667, Precision: schedule.FP16}
	small, network, wave := large, large, large
	small.Batch = 64
	network.Layers, network.Direction = 5, rnn.Alternating
	wave.Layers, wave.Batch, wave.Steps = 2, 4096, 600
	for _, c := range []struct {
		name     string
		problem  rnn.Problem
		knobs    knob.Params
		longest  int // steps of a block
		launches int
	}{
		{"large", large, nil, 239, 7},
		{"small", small, nil, 1667, 1},
		{"asked for", large, knob.Params{"inputbatch": 1667}, 1667, 1},
		{"network", network, nil, 239, 5 * 7},
		{"wave", wave, knob.Params{"streams": 4}, 32, 2 * 19},
	} {
		_, s, err := rnn.Layout(persistent.Technique{}, c.problem, c.knobs)
		if err != nil {
			t.Fatal(err)
		}
		var longest, launches int
		steps := map[*schedule.Matrix]int{}
		for op := range s.Operations() {
			if op, ok := op.(schedule.Persistent); ok {
				launches++
				longest = max(longest, op.Steps)
				steps[op.R[0].M] += op.Steps
			}
		}
		if longest != c.longest || launches != c.launches {
			t.Errorf("%s: %d operations of up to %d steps, want %d of %d", c.name, launches, longest, c.launches, c.longest)
		}
		for of, n := range steps {
			if n != c.problem.Steps {
				t.Errorf("%s: a layer runs %d of %d steps (%s)", c.name, n, c.problem.Steps, of.Name)
			}
		}
		for _, m := range s.Matrices {
			if c.knobs["inputbatch"] == 0 && strings.Contains(m.Name, "x·W") && 4*m.Elements() > 4<<30 {
				t.Errorf("%s: %s takes %d MiB", c.name, m.Name, 4*m.Elements()>>20)
			}
		}
	}
}
