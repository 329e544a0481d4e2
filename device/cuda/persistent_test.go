package cuda_test

import (
	"fmt"
	"testing"

	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
)

// TestGroups runs tilings of cells on the emulator, at sizes that fill neither
// the last thread nor the last block.
func TestGroups(t *testing.T) {
	d, _ := emulated(t)
	params := []knob.Params{
		{"resident": 1},
		{"resident": 2},
		{"resident": 3},
		{"resident": 1, "cluster": 4, "samples": 1, "tile": 1, "lanes": 8},
		{"resident": 1, "cluster": 2, "samples": 2, "tile": 2, "lanes": 16},
		{"resident": 1, "cluster": 8, "samples": 8, "tile": 1, "lanes": 4},
		{"resident": 1, "cluster": 2, "samples": 4, "tile": 2, "lanes": 8},
		{"resident": 2, "groups": 2, "samples": 1, "tile": 1, "lanes": 16},
		{"resident": 2, "groups": 4, "samples": 4, "tile": 4, "lanes": 32},
	}
	for i, c := range cell.All() {
		if c.Recurrent == 0 {
			continue
		}
		for j, k := range params {
			if testing.Short() && (i+j)%5 != 0 {
				continue
			}
			l := devicetest.Layer{Cell: c, Hidden: 37, Batch: 3 + 6*(j%2), Steps: 4, Train: j%2 == 0}
			t.Run(fmt.Sprint(l, " ", k), func(t *testing.T) { devicetest.Persistent(t, d, l, k) })
		}
	}
}
