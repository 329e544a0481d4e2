package cuda_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// sums is a schedule of sums of rows, in parts or not, whose columns are read four at a time or
// singly. The kernel that finds a factor's largest value begins one of them.
func sums(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	for i, size := range [][2]int{{700, 132}, {700, 131}, {300, 128}, {127, 260}, {1, 400}, {1030, 127}} {
		from := b.Matrix(fmt.Sprint("a", i), size[0], size[1]+8).All()
		for k, at := range []int{0, 3, 4} {
			b.Do(0, schedule.SumRows{A: from.Columns(at, size[1]), Out: b.Matrix(fmt.Sprint("sum", i, k), 1, size[1]).All(), Accumulate: k > 0})
		}
	}
	left := b.Matrix("left", 600, 140).All()
	b.Do(0, schedule.Gemm{A: left, TransA: true, B: b.Matrix("right", 600, 36).All(), C: b.Matrix("c", 140, 36).All()})
	b.Do(0, schedule.SumRows{A: left, Out: b.Matrix("of the left", 1, 140).All(), Accumulate: true})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSums holds them to double precision, and checks how they are read.
func TestSums(t *testing.T) {
	s := sums(t)
	launches, texts, err := cuda.Sources(s, knob.Params{"split": 3}, h200())
	if err != nil {
		t.Fatal(err)
	}
	wide, largest := 0, 0
	for i, l := range launches {
		if l.Name != "sumrows" {
			continue
		}
		if strings.Contains(texts[i], "#define V 4") {
			wide++
		}
		if strings.Contains(texts[i], "#define LARGEST 1") {
			largest++
		}
	}
	if wide != 13 || largest != 1 {
		t.Errorf("%d sums read four columns at a time, want 13, %d look for the largest value, want 1", wide, largest)
	}
	d, _ := emulated(t)
	holdAll(t, d, s)
}

// TestGPUSums holds them on a GPU.
func TestGPUSums(t *testing.T) { holdAll(t, openGPU(t, time.Minute), sums(t)) }
