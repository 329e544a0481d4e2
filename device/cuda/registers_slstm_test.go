package cuda_test

import (
	"strings"
	"testing"

	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestSpillsSLSTM: sLSTM, which has the longest program of all cells, does not spill either, as one
// head in the shapes of FlashRNN's measurements (Pöppel et al. 2024): 12 heads of 64 units, 3 of
// 256, 1 of 768.
func TestSpillsSLSTM(t *testing.T) {
	c := hopper(t)
	for i, hidden := range []int{64, 256, 768} {
		for _, back := range []bool{false, true} {
			if testing.Short() && i > 0 {
				continue
			}
			l := devicetest.Layer{Cell: cell.SLSTM, Hidden: hidden, Batch: 16, Steps: 1024, Train: !back, Backward: back, Precision: schedule.BF16}
			t.Run(l.String(), func(t *testing.T) {
				t.Parallel()
				launches, texts := sources(t, l, nil)
				for i, launch := range launches {
					if !strings.HasPrefix(launch.Name, "persistent") {
						continue
					}
					if n := recorded(t, c, stackRecord, launch, texts[i]); n > 0 {
						t.Errorf("%s has %d bytes of stack", launch.Name, n)
					}
				}
			})
		}
	}
}
