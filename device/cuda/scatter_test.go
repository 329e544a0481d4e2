package cuda_test

import (
	"testing"
	"time"

	"rnnbench/rnn/schedule"
)

// scatters is a schedule of sums into tables, of rows for less and more than a round of the kernel, and
// of more columns than a block has threads.
func scatters(t *testing.T) *schedule.Schedule {
	t.Helper()
	b := schedule.NewBuilder(1)
	for _, rows := range []int{1, 1024, 1025, 2500} {
		for _, cols := range []int{3, 300} {
			index, from, table := b.Matrix("class", rows, 1).All(), b.Matrix("from", rows, cols+2).All(), b.Matrix("table", 7, cols).All()
			b.Do(0, schedule.Scatter{Index: index, Src: from.Columns(1, cols), Table: table})
		}
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScatter holds sums into tables to double precision, TestGPUScatter on a GPU.
func TestScatter(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, scatters(t))
}

func TestGPUScatter(t *testing.T) { holdAll(t, openGPU(t, time.Minute), scatters(t)) }
