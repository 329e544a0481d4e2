package cuda_test

import (
	"testing"
	"time"

	"rnnbench/rnn/cell"
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
	for _, c := range []struct{ rows, cols, table int }{{1025, 3, 1100}, {1100, 260, 1101}, {40, 5, 343}} {
		index := spread(b, c.rows)
		from, table := b.Matrix("from", c.rows, c.cols).All(), b.Matrix("table", c.table, c.cols+1).All()
		b.Do(0, schedule.Scatter{Index: index, Src: from, Table: table.Columns(1, c.cols)})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spread is a column of so many integers below 343.
func spread(b *schedule.Builder, rows int) schedule.View {
	sum := b.Matrix("spread", rows, 1).All()
	b.Do(0, schedule.Map{Op: cell.Zero, Out: sum})
	for range 3 { // seven times as much, and a digit
		twice := b.Matrix("twice", rows, 1).All()
		b.Do(0, schedule.Map{Op: cell.Add, Out: twice, A: sum, B: sum})
		for range 3 {
			b.Do(0, schedule.Map{Op: cell.Add, Out: sum, A: sum, B: twice})
		}
		b.Do(0, schedule.Map{Op: cell.Add, Out: sum, A: sum, B: b.Matrix("class", rows, 1).All()})
	}
	return sum
}

// TestScatter holds sums into tables to double precision, TestGPUScatter on a GPU.
func TestScatter(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, scatters(t))
}

func TestGPUScatter(t *testing.T) { holdAll(t, openGPU(t, time.Minute), scatters(t)) }
