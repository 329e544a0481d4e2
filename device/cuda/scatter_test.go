package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/driver"
	"rnnbench/device/cuda/lower"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// scatters is a schedule of sums into tables, with fewer and more rows than a round of the kernel,
// and with more columns than a block has threads.
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

// spread returns a column of so many integers below 343.
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

// TestTables: a run zeroes only those rows of a large table's gradient to which the previous run
// has added. What the host has written elsewhere does not stay.
func TestTables(t *testing.T) {
	d, _ := emulated(t)
	defer func(was int64) { lower.LeastTable = was }(lower.LeastTable)
	lower.LeastTable = 1 << 10
	holdTables(t, d, 71, 5, 36, 1030)
}

func TestGPUTables(t *testing.T) { holdTables(t, openGPU(t, time.Minute), 8300, 507, 520, 1030) }

// holdTables is the test for tables of so many rows and columns.
func holdTables(t *testing.T, d device.Device, rows int, columns ...int) {
	t.Helper()
	b := schedule.NewBuilder(1)
	index, other := b.Matrix("class", 9, 1), b.Matrix("class", 9, 1).All()
	for _, cols := range columns {
		table := b.Matrix("table", rows, cols).All()
		b.Do(0, schedule.Map{Op: cell.Zero, Out: table})
		b.Do(0, schedule.Scatter{Index: index.All(), Src: b.Matrix("from", 9, cols).All(), Table: table})
	}
	b.Do(0, schedule.Map{Op: cell.Copy, Out: index.All(), A: other}) // the next run has other rows
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	launches, _, err := cuda.Sources(s, nil, h200())
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(fmt.Sprint(names(launches)), "zero_rows"); n != len(columns) {
		t.Errorf("launches are %v: want rows of %d tables to be zeroed", names(launches), len(columns))
	}
	holdAll(t, d, s)
	for _, m := range s.Matrices {
		if m.Name == "table" {
			holdWritten(t, d, s, nil, m, 1, 2)
		}
	}
	holdWritten(t, d, s, nil, index, 0, 1)
}

// names returns the names of launches.
func names(all []*driver.Launch) (list []string) {
	for _, l := range all {
		list = append(list, l.Name)
	}
	return list
}

// TestScatter holds sums into tables to double precision, TestGPUScatter on a GPU.
func TestScatter(t *testing.T) {
	d, _ := emulated(t)
	holdAll(t, d, scatters(t))
}

func TestGPUScatter(t *testing.T) { holdAll(t, openGPU(t, time.Minute), scatters(t)) }

// TestScatterOfEqualTerms: a row of a table to which 20,000 equal ones are added is not one sum of them, whose rounding
// errors would add up.
func TestScatterOfEqualTerms(t *testing.T) {
	const rows, term = 20000, 0.1
	b := schedule.NewBuilder(1)
	index, from, table := b.Matrix("index", rows, 1), b.Matrix("from", rows, 2), b.Matrix("table", 2, 2)
	b.Do(0, schedule.Scatter{Index: index.All(), Src: from.All(), Table: table.All()})
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	d, _ := emulated(t)
	p, err := d.Compile(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sums := make([]float32, 4)
	err = errors.Join(p.Write(index, make([]float32, rows)), p.Write(from, slices.Repeat([]float32{term}, 2*rows)), p.Write(table, sums), p.Prepare())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(1); err != nil {
		t.Fatal(err)
	}
	if err := p.Read(table, sums); err != nil {
		t.Fatal(err)
	}
	for i, v := range sums {
		want := rows * float64(float32(term))
		if i/2 > 0 {
			want = 0
		}
		if off := math.Abs(float64(v) - want); off > 512*0x1p-24*want {
			t.Errorf("sum %d is %g, not %g", i, v, want)
		}
	}
}
