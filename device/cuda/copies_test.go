package cuda_test

import (
	"fmt"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// carried is a schedule that ends as calls do: the last rows of states become the first. States
// have 16 or 32 bits; one is an odd number of 16-bit values, so no whole number of words.
func carried(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	b.SetPrecision(schedule.BF16)
	var states []schedule.View
	for i, cols := range []int{6, 10, 7} {
		h := b.Matrix(fmt.Sprint("h", i), 9, cols).All()
		states = append(states, h, b.Matrix(fmt.Sprint("c", i), 9, cols).All())
		b.Do(0, schedule.Gemm{A: h.Band(0, 3), B: b.Matrix(fmt.Sprint("w", i), cols, 40).All(), C: b.Matrix(fmt.Sprint("y", i), 3, 40).All()})
	}
	for _, s := range states {
		b.Do(0, schedule.Map{Op: cell.Copy, Out: s.Band(0, 3), A: s.Band(6, 3)})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCarriedStates: copies within matrices share one launch for any types, unless they are no
// whole words.
func TestCarriedStates(t *testing.T) {
	s := carried(t)
	launches, _, err := cuda.Sources(s, nil, h200())
	if err != nil {
		t.Fatal(err)
	}
	several, single := 0, 0
	for _, l := range launches {
		switch l.Name {
		case "copy_several":
			several += l.Grid[2]
		case "map_copy":
			single++
		}
	}
	if several+single != 6 || several < 4 || single > 2 {
		t.Errorf("%d copies share a launch and %d have their own", several, single)
	}
	if testing.Short() {
		t.Skip("not with -short: it compiles kernels")
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// TestGPUCarriedStates holds the same schedule on a GPU.
func TestGPUCarriedStates(t *testing.T) { holdAll(t, openGPU(t, time.Minute), carried(t)) }
