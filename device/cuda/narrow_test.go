package cuda_test

import (
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// narrows runs steps of cells, of every every-th, as products of few rows, alone
// and with their cells, and with split factors.
func narrows(t *testing.T, d device.Device, hidden, every int) {
	params := []knob.Params{
		{"narrow": 1},
		{"narrow": 3},
		{"narrow": 1, "narrowwidth": 48},
		{"narrow": 1, "narrowwidth": 64, "narrowrows": 16},
		{"narrow": 3, "narrowwidth": 32},
		{"narrow": 2, "split": 1},
	}
	var cases []devicetest.Case
	for i, c := range cell.All() {
		if c.Recurrent == 0 {
			continue
		}
		for j, k := range params {
			for back := range 2 {
				if (i+j+back)%every != 0 {
					continue
				}
				l := devicetest.Layer{Cell: c, Hidden: hidden + 3*(j%2), Batch: 3 + 18*(j%2), Steps: 3, Train: j%2 == 0, Backward: back == 1, Precision: schedule.Precision((i + j) % 4)}
				if k["split"] > 0 {
					l.Precision = schedule.FP32
				}
				cases = append(cases, devicetest.Case{Layer: l, Knobs: k, Stepwise: true})
			}
		}
	}
	devicetest.Layers(t, d, cases)
}

func TestNarrow(t *testing.T) {
	every := 5
	if testing.Short() {
		every = 11
	}
	d, _ := emulated(t)
	narrows(t, d, 37, every)
}

// TestGPUNarrow runs them on a GPU.
func TestGPUNarrow(t *testing.T) {
	every := 2
	if testing.Short() {
		every = 3
	}
	narrows(t, openGPU(t, time.Minute), 133, every)
}
