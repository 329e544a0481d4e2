package cuda_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rnnbench/device/cuda"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// A chained is a schedule of consecutive split-K products, and the launches that it takes.
type chained struct {
	name     string
	launches string
	schedule *schedule.Schedule
}

// chains are such schedules: with operations that may stand between products of a chain, and with
// others.
func chains(t *testing.T) (all []chained) {
	t.Helper()
	const rows = 700
	for _, c := range []struct {
		name, launches string
		streams        int
		build          func(b *schedule.Builder, matrix func(rows, cols int) schedule.View)
	}{
		{"gradients of a layer", "sumrows largest largest rightpieces_several split_fp16 largest split_fp16 addparts_several", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, carry, sum := matrix(rows, 48), matrix(3, 20), matrix(1, 48)
				b.Do(0, schedule.Map{Op: cell.Add, Out: carry, A: carry, B: matrix(9, 20).Band(2, 3)})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 37), C: matrix(48, 37), Accumulate: true})
				b.Do(0, schedule.SumRows{A: d, Out: sum, Accumulate: true})
				b.Do(0, schedule.Gemm{A: d.Columns(0, 36), TransA: true, B: matrix(rows+1, 40).Band(1, rows), C: matrix(36, 40)})
				b.Do(0, schedule.Map{Op: cell.Mul, Out: carry, A: carry, B: sum.Columns(4, 20)})
			}},
		{"three products", "largest largest largest largest rightpieces_several split_fp16 split_fp16 split_fp16 addparts_several", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, c := matrix(rows, 48), matrix(48, 120)
				for i := range 3 {
					b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: c.Columns(40*i, 40)})
				}
			}},
		{"one adds to another", "largest largest rightpieces split_fp16 addparts largest rightpieces split_fp16 addparts", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, c := matrix(rows, 48), matrix(48, 40)
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: c})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: c, Accumulate: true})
			}},
		{"one multiplies another", "largest largest rightpieces split_fp16 addparts largest largest rightpieces split_fp16", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, c := matrix(rows, 48), matrix(48, 40)
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: c})
				b.Do(0, schedule.Gemm{A: matrix(48, 36), TransA: true, B: c, C: matrix(36, 40)})
			}},
		{"a sum of rows of each", "sumrows largest rightpieces split_fp16 addparts_several sumrows largest rightpieces split_fp16 addparts_several", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				for range 2 {
					d := matrix(rows, 48)
					b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
					b.Do(0, schedule.SumRows{A: d, Out: matrix(1, 48)})
				}
			}},
		{"a sum of other rows", "largest largest rightpieces split_fp16 addparts sumrows sumrows largest rightpieces split_fp16 addparts", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d := matrix(rows, 48)
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
				b.Do(0, schedule.SumRows{A: matrix(rows, 20), Out: matrix(1, 20)})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
			}},
		{"an addition to what is multiplied", "map_add largest largest rightpieces split_fp16 addparts", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d := matrix(rows, 48)
				b.Do(0, schedule.Map{Op: cell.Add, Out: d.Band(7, 2), A: d.Band(7, 2), B: matrix(2, 48)})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
			}},
		{"an addition to a right factor", "map_add largest largest largest rightpieces_several split_fp16 split_fp16 addparts_several", 1,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, right := matrix(rows, 48), matrix(rows, 40)
				b.Do(0, schedule.Map{Op: cell.Add, Out: right.Band(7, 2), A: right.Band(7, 2), B: matrix(2, 40)})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: right, C: matrix(48, 40)})
			}},
		{"another stream waits", "largest largest rightpieces split_fp16 addparts map_mul largest rightpieces split_fp16 addparts", 2,
			func(b *schedule.Builder, matrix func(rows, cols int) schedule.View) {
				d, c := matrix(rows, 48), matrix(48, 40)
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: c})
				b.Do(1, schedule.Map{Op: cell.Mul, Out: matrix(48, 40), A: c, B: c})
				b.Do(0, schedule.Gemm{A: d, TransA: true, B: matrix(rows, 40), C: matrix(48, 40)})
			}},
	} {
		b, n := schedule.NewBuilder(c.streams), 0
		c.build(b, func(rows, cols int) schedule.View {
			n++
			return b.Matrix(fmt.Sprint("m", n), rows, cols).All()
		})
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, chained{name: c.name, launches: c.launches, schedule: s})
	}
	return all
}

// TestChains: consecutive split-K products pack their right operands in one launch and add up their
// parts in another. A product that reads what another writes, or that another stream waits for,
// ends the chain.
func TestChains(t *testing.T) {
	d, _ := emulated(t)
	for i, c := range chains(t) {
		t.Run(c.name, func(t *testing.T) {
			launches, _, err := cuda.Sources(c.schedule, knob.Params{"split": 3}, h200())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, l := range launches {
				names = append(names, l.Name)
			}
			if got := strings.Join(names, " "); !strings.HasPrefix(got, c.launches) {
				t.Errorf("launches are\n%s, want\n%s", got, c.launches)
			}
			if !testing.Short() || i%5 == 0 {
				holdAll(t, d, c.schedule)
			}
		})
	}
}

// TestGPUChains holds them on a GPU.
func TestGPUChains(t *testing.T) {
	d := openGPU(t, time.Minute)
	for _, c := range chains(t) {
		t.Run(c.name, func(t *testing.T) { holdAll(t, d, c.schedule) })
	}
}
