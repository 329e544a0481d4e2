package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/devicetest"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// groupResets are layers with resets, by every grouped kernel.
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
	every := 5
	if testing.Short() {
		every = 16
	}
	d, _ := emulated(t)
	groupResets(t, d, 37, 4, every)
}

// TestSpillsResets: with resets, the kernels of agents' layers also keep their values in registers.
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
					launches, texts := sources(t, l, nil)
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

// TestSpillsScanResets: so do scans, of an agent's layer and of few channels over many steps.
func TestSpillsScanResets(t *testing.T) {
	c := hopper(t)
	for _, one := range []*cell.Cell{cell.MinGRU, cell.GILR} {
		for i, size := range [][3]int{{1024, 128, 64}, {16, 256, 4096}, {1, 256, 1 << 16}} {
			for _, pass := range []string{"inference", "forward", "backward"} {
				if testing.Short() && (i > 0 || pass == "forward") {
					continue
				}
				t.Run(fmt.Sprint(one, pass, size), func(t *testing.T) {
					t.Parallel()
					launches, texts, err := cuda.Sources(scanningResets(t, one, pass, size), nil, h200())
					if err != nil {
						t.Fatal(err)
					}
					last := len(launches) - 1
					if n := recorded(t, c, stackRecord, launches[last], texts[last]); n > 0 || !strings.Contains(launches[last].Name, "resets") {
						t.Errorf("%s has %d bytes of stack", launches[last].Name, n)
					}
				})
			}
		}
	}
}

// scanningResets is scanning with resets.
func scanningResets(t *testing.T, c *cell.Cell, pass string, size [3]int) *schedule.Schedule {
	s := scanning(t, c, pass, size)
	keep := &schedule.Matrix{Name: "keep", Rows: (size[2] + 1) * size[0], Cols: 1, ID: len(s.Matrices)}
	s.Matrices = append(s.Matrices, keep)
	for i := range s.Nodes {
		switch op := s.Nodes[i].Op.(type) {
		case schedule.Scan:
			op.Keep = keep.All()
			s.Nodes[i].Op = op
		case schedule.ScanBackward:
			op.Keep = keep.All()
			s.Nodes[i].Op = op
		}
	}
	return s
}

// TestGPUGroupResets runs all on a GPU.
func TestGPUGroupResets(t *testing.T) { groupResets(t, openGPU(t, time.Minute), 131, 32, 1) }
