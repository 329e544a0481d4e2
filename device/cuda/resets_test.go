package cuda_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// groupResets are layers whose sequences begin anew, by every kernel of groups of blocks.
func groupResets(t *testing.T, d device.Device, hidden, share, every int) {
	params, tensors, turns, backs := groupSettings(share)
	cells := []*cell.Cell{cell.LSTM, cell.GRU, cell.LSTMPeephole}
	precisions := []schedule.Precision{schedule.FP32, schedule.BF16, schedule.FP16}
	var cases []devicetest.Case
	for i, k := range slices.Concat(params, tensors, turns) {
		l := devicetest.Layer{Cell: cells[i%3], Hidden: hidden, Batch: 3 + 18*(i%2), Steps: 5, Train: i%4 < 2, Resets: true, Precision: precisions[i/2%3]}
		cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
	}
	for i, k := range backs {
		l := devicetest.Layer{Cell: cells[i%3], Hidden: hidden, Batch: 3 + 18*(i%2), Steps: 5, Backward: true, Resets: true, Precision: precisions[i/2%3]}
		cases = append(cases, devicetest.Case{Layer: l, Knobs: k})
	}
	devicetest.Layers(t, d, sample(cases, every))
}

// TestGroupResets runs them on the emulator.
func TestGroupResets(t *testing.T) {
	every := 2
	if testing.Short() {
		every = 16
	}
	d, _ := emulated(t)
	groupResets(t, d, 37, 4, every)
}

// TestSpillsResets: the kernels of agents' layers keep their values in registers where sequences begin anew, too.
func TestSpillsResets(t *testing.T) {
	c := hopper(t)
	for i, one := range []*cell.Cell{cell.LSTM, cell.GRU} {
		for j, precision := range []schedule.Precision{schedule.FP32, schedule.BF16} {
			for _, back := range []bool{false, true} {
				if testing.Short() && i != j {
					continue
				}
				l := devicetest.Layer{Cell: one, Hidden: 256, Batch: 128, Steps: 128, Train: !back, Backward: back, Resets: true, Precision: precision}
				t.Run(l.String(), func(t *testing.T) {
					t.Parallel()
					launches, texts := sources(t, l)
					for i, launch := range launches {
						if !strings.HasPrefix(launch.Name, "persistent") {
							continue
						}
						if !strings.HasSuffix(launch.Name, "_resets") {
							t.Errorf("%s does not read resets", launch.Name)
						}
						if n := recorded(t, c, stackRecord, launch, texts[i]); n > 0 {
							t.Errorf("%s has %d bytes of stack", launch.Name, n)
						}
					}
				})
			}
		}
	}
}

// TestGPUGroupResets runs all on a GPU.
func TestGPUGroupResets(t *testing.T) { groupResets(t, openGPU(t, time.Minute), 131, 32, 1) }
