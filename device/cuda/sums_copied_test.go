package cuda_test

import (
	"fmt"
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestCopiedSums: sums of rows also write the copy that the next operation makes. A copy of a part
// has a launch of its own, and so has one of sums that a product's launch adds up.
func TestCopiedSums(t *testing.T) {
	b := schedule.NewBuilder(1)
	matrix := func(name string, rows, cols int) schedule.View { return b.Matrix(name, rows, cols).All() }
	for i, size := range [][2]int{{300, 33}, {40, 31}, {260, 128}} {
		sum, copied := matrix(fmt.Sprint("sum", i), 1, size[1]), matrix(fmt.Sprint("copy", i), 1, size[1])
		b.Do(0, schedule.SumRows{A: matrix(fmt.Sprint("a", i), size[0], size[1]), Out: sum, Accumulate: i > 0})
		b.Do(0, schedule.Map{Op: cell.Copy, Out: copied, A: sum})
	}
	sum := matrix("sum", 1, 40)
	b.Do(0, schedule.SumRows{A: matrix("a", 30, 40), Out: sum})
	b.Do(0, schedule.Map{Op: cell.Copy, Out: matrix("part", 1, 20), A: sum.Columns(3, 20)})
	left, of := matrix("left", 600, 140), matrix("of the left", 1, 140)
	b.Do(0, schedule.Gemm{A: left, TransA: true, B: matrix("right", 600, 36), C: matrix("c", 140, 36)})
	b.Do(0, schedule.SumRows{A: left, Out: of})
	b.Do(0, schedule.Map{Op: cell.Copy, Out: matrix("again", 1, 140), A: of})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	for split, want := range map[int]int{2: 1, 3: 2} {
		launches, _, err := cuda.Sources(s, knob.Params{"split": split}, h200())
		if err != nil {
			t.Fatal(err)
		}
		copies := 0
		for _, l := range launches {
			if l.Name == "map_copy" {
				copies++
			}
		}
		if copies != want {
			t.Errorf("split=%d: %d copies are launches of their own, want %d", split, copies, want)
		}
	}
	if testing.Short() {
		t.Skip("not with -short: gradients of layers run the same")
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}
