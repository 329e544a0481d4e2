package driver_test

import (
	"slices"
	"testing"

	"rnnbench/device/cuda/driver"
)

// TestNetworkLengths: networks with equal lengths compare equal, and Sequences returns the lengths.
func TestNetworkLengths(t *testing.T) {
	n := driver.Network{Batch: 3, Steps: 70000, Lengths: driver.LengthsOf([]int{70000, 300, 1})}
	if same := n; same != n || !slices.Equal(n.Sequences(), []int32{70000, 300, 1}) || n.Rows() != 70301 {
		t.Errorf("lengths are %v, of %d rows", n.Sequences(), n.Rows())
	}
	if n.Lengths = driver.LengthsOf(nil); !slices.Equal(n.Sequences(), []int32{70000, 70000, 70000}) {
		t.Errorf("of none, lengths are %v", n.Sequences())
	}
}

// TestNetworkRuns: a layer that runs both ways counts as two pseudo-layers. Layers above the first
// read the outputs of both directions side by side.
func TestNetworkRuns(t *testing.T) {
	for _, c := range []struct {
		both      bool
		runs, out int
		widths    []int
	}{
		{false, 3, 5, []int{4, 5, 5}},
		{true, 6, 10, []int{4, 4, 10, 10, 10, 10}},
	} {
		n := driver.Network{Both: c.both, Input: 4, Hidden: 5, Layers: 3}
		if n.Runs() != c.runs || n.Out() != c.out {
			t.Errorf("both ways %v: %d runs of %d features, want %d of %d", c.both, n.Runs(), n.Out(), c.runs, c.out)
		}
		for run, want := range c.widths {
			if n.Width(run) != want {
				t.Errorf("both ways %v: run %d reads %d features, want %d", c.both, run, n.Width(run), want)
			}
		}
	}
}
