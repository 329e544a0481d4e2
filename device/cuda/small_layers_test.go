package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestSmallLayers: small layers run in single blocks where these were the fastest on an H100, and
// else in clusters. docs/notebook/persistent-sizes.md has the times.
func TestSmallLayers(t *testing.T) {
	for _, c := range []struct {
		layer   devicetest.Layer
		kernel  string
		cluster bool
	}{
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 32, Batch: 4, Backward: true}, "persistent_backward_simt", false},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 32, Batch: 12, Backward: true}, "persistent_backward_simt", false},
		{devicetest.Layer{Cell: cell.GRU, Hidden: 32, Batch: 4, Backward: true}, "persistent_backward_simt", false},
		{devicetest.Layer{Cell: cell.RNNTanh, Hidden: 60, Batch: 200, Backward: true}, "persistent_backward_simt", false},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 64, Batch: 4, Backward: true}, "persistent_backward_simt", true},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 64, Batch: 12, Backward: true}, "persistent_backward_simt", true},
		{devicetest.Layer{Cell: cell.RNNTanh, Hidden: 96, Batch: 28, Backward: true, Precision: schedule.FP16}, "persistent_backward_block", false},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 32, Batch: 4, Train: true}, "persistent_simt", false},
		{devicetest.Layer{Cell: cell.LSTM, Hidden: 64, Batch: 4, Train: true}, "persistent_simt", true},
	} {
		c.layer.Steps = 100
		t.Run(fmt.Sprint(c.layer), func(t *testing.T) {
			s, err := c.layer.Schedule(1)
			if err != nil {
				t.Fatal(err)
			}
			launches, _, err := cuda.Sources(s, nil, h200())
			if err != nil {
				t.Fatal(err)
			}
			l := launches[slices.IndexFunc(launches, func(l *driver.Launch) bool { return strings.HasPrefix(l.Name, "persistent_") })]
			if !strings.HasPrefix(l.Name, c.kernel) || (l.Cluster > 1) != c.cluster {
				t.Errorf("it runs as %s in clusters of %d, not as %s, in several blocks: %v", l.Name, l.Cluster, c.kernel, c.cluster)
			}
		})
	}
}
