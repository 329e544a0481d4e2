package cpu

import (
	"slices"
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// lookedUp returns a schedule with a table of 9 rows that is zeroed and written to by a scatter.
// With a second scatter, it is an ordinary table.
func lookedUp(t *testing.T, twice bool) (s *schedule.Schedule, table, index, src *schedule.Matrix) {
	t.Helper()
	b := schedule.NewBuilder(2)
	table, index, src = b.Matrix("table", 9, 40), b.Matrix("index", 4, 1), b.Matrix("src", 4, 40)
	b.Do(0, schedule.Map{Op: cell.Zero, Out: table.All()})
	b.Do(1, schedule.Scatter{Index: index.All(), Src: src.All(), Table: table.All()})
	if twice {
		b.Do(0, schedule.Scatter{Index: index.All(), Src: src.All(), Table: table.All()})
	}
	s, err := b.Schedule()
	if err != nil {
		t.Fatal(err)
	}
	return s, table, index, src
}

// TestZeroing: in every run, a table is zero except in the rows that the run names. This holds also
// after the host has written to the table, and after an index that is out of range.
func TestZeroing(t *testing.T) {
	for _, twice := range []bool{false, true} {
		for _, threads := range []int{1, 3} {
			s, table, index, src := lookedUp(t, twice)
			d, err := Open(Options{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			p, err := d.Compile(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if n := len(p.(*program).zeroed); (n == 1) == twice {
				t.Errorf("written to twice: %t: %d tables are zeroed by rows", twice, n)
			}
			ones := slices.Repeat([]float32{1}, src.Elements())
			write := func(m *schedule.Matrix, values []float32) {
				if err := p.Write(m, values); err != nil {
					t.Fatal(err)
				}
			}
			write(src, ones)
			for i, rows := range [][]float32{{0, 3, 3, 8}, {1, 1, 1, 1}, {8, 7, 99, 7}, {4, 5, 6, 2}, {0, 0, 1, 2}} {
				if i == 0 || i == 4 {
					write(table, slices.Repeat([]float32{7}, table.Elements()))
				}
				write(index, rows)
				bad := slices.Max(rows) >= 9
				if _, err := p.Run(1 + i%2); (err != nil) != bad {
					t.Fatalf("rows %v: %v", rows, err)
				}
				want := make([]float32, table.Elements())
				for _, row := range rows {
					for j := range 40 {
						if row < 9 {
							want[int(row)*40+j]++
						}
						if row < 9 && twice {
							want[int(row)*40+j]++
						}
					}
				}
				got := make([]float32, len(want))
				if err := p.Read(table, got); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("rows %v, %d threads: the table is %v, want %v", rows, threads, got, want)
				}
			}
		}
	}
}

// TestTouchedAlike: squares and updates that skip zero rows give the same bits as those that read
// all.
func TestTouchedAlike(t *testing.T) {
	for _, by := range []schedule.Update{{Rule: schedule.SGD}, {Rule: schedule.SGD, Nesterov: true}, {Rule: schedule.Adam}} {
		var first []float32
		for _, known := range []bool{false, true} {
			b := schedule.NewBuilder(1)
			rates, index := b.Matrix("rates", 1, schedule.RateColumns), b.Matrix("index", 3, 1)
			grad, param, sums := b.Matrix("grad", 11, 70), b.Matrix("param", 11, 70), b.Matrix("sums", 1, 4)
			squares := schedule.Squares{A: grad.All(), Out: sums.All()}
			update := schedule.Update{Rule: by.Rule, Nesterov: by.Nesterov, Param: param.All(), Grad: grad.All(), Rates: rates.All(), Squares: sums.All(), Beta1: 0.5, Beta2: 0.75, Epsilon: 0.1}
			moments := []*schedule.Matrix{b.Matrix("mean", 11, 70)}
			if by.Rule == schedule.Adam {
				moments = append(moments, b.Matrix("square", 11, 70))
			}
			for _, m := range moments {
				update.Moment = append(update.Moment, m.All())
			}
			if known {
				squares.Rows, update.Rows = index.All(), index.All()
			}
			b.Do(0, squares)
			b.Do(0, update)
			s, err := b.Schedule()
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(Options{Threads: 2})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			p, err := d.Compile(s, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			values := make([]float32, grad.Elements())
			for i := range values {
				values[i] = float32(i%13) / 8
			}
			gradient := make([]float32, len(values))
			for _, row := range []int{2, 10} {
				copy(gradient[row*70:][:70], values)
			}
			write := func(m *schedule.Matrix, values []float32) {
				if err := p.Write(m, values); err != nil {
					t.Fatal(err)
				}
			}
			write(rates, []float32{0.1, 1, 1, 3})
			write(index, []float32{10, 2, 10})
			write(grad, gradient)
			for _, m := range append(moments, param) {
				write(m, values)
			}
			if _, err := p.Run(2); err != nil {
				t.Fatal(err)
			}
			var got []float32
			for _, m := range append(moments, param, sums) {
				part := make([]float32, m.Elements())
				if err := p.Read(m, part); err != nil {
					t.Fatal(err)
				}
				got = append(got, part...)
			}
			if !known {
				first = got
			} else if !slices.Equal(got, first) {
				t.Errorf("%v, Nesterov %t: other bits", by.Rule, by.Nesterov)
			}
		}
	}
}
