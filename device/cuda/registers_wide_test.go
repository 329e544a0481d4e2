package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestSpillsWide: warpgroups keep weights in registers for any number of products.
func TestSpillsWide(t *testing.T) {
	c := hopper(t)
	partners := knob.Params{"resident": 9, "cluster": 2}
	for _, l := range []struct {
		devicetest.Layer
		knobs knob.Params
	}{
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 2048, Batch: 128, Steps: 50, Precision: schedule.BF16, Train: true}, nil},
		{devicetest.Layer{Cell: cell.RNNTanh, Hidden: 2176, Batch: 72, Steps: 478, Precision: schedule.BF16}, nil},
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 2560, Batch: 64, Steps: 50, Precision: schedule.BF16, Train: true}, nil},
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 3008, Batch: 43, Steps: 100, Precision: schedule.BF16}, partners},
		{devicetest.Layer{Cell: cell.RNNReLU, Hidden: 3008, Batch: 43, Steps: 100, Precision: schedule.BF16, Train: true}, partners},
	} {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			launches, texts := sources(t, l.Layer, l.knobs)
			wide := 0
			for i, launch := range launches {
				if !strings.Contains(texts[i], "mma_wide_layer(") {
					continue
				}
				wide++
				if n := recorded(t, c, stackRecord, launch, texts[i]); n > 0 {
					t.Errorf("%s has %d bytes of stack", launch.Name, n)
				}
			}
			if wide != 1 {
				t.Errorf("%d layers run by warpgroups; want 1", wide)
			}
		})
	}
}
