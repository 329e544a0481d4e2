package cpu

import (
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestSumsOfRowsJoinProducts: a product of the same rows computes their sums exactly if the results
// cannot depend on it.
func TestSumsOfRowsJoinProducts(t *testing.T) {
	const k, m, n = 70, 40, 20
	for _, test := range []struct {
		name  string
		ops   func(d, d2, in, dw, db *schedule.Matrix) []schedule.Op
		taken bool
	}{
		{"behind the product", func(d, _, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.SumRows{A: d.All(), Out: db.All()}}
		}, true},
		{"added, as the product is", func(d, _, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, true), schedule.SumRows{A: d.All(), Out: db.All(), Accumulate: true}}
		}, true},
		{"added, as the product is not", func(d, _, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.SumRows{A: d.All(), Out: db.All(), Accumulate: true}}
		}, false},
		{"another between", func(d, d2, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.Map{Op: cell.Neg, Out: d2.All(), A: d.All()}, schedule.SumRows{A: d.All(), Out: db.All()}}
		}, true},
		{"of other rows", func(d, d2, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.SumRows{A: d2.All(), Out: db.All()}}
		}, false},
		{"of rows that have changed", func(d, d2, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.Map{Op: cell.Neg, Out: d.All(), A: d2.All()}, schedule.SumRows{A: d.All(), Out: db.All()}}
		}, false},
		{"what was there is read", func(d, d2, in, dw, db *schedule.Matrix) []schedule.Op {
			return []schedule.Op{outer(d, in, dw, false), schedule.Map{Op: cell.Neg, Out: d2.All().Band(0, 1), A: db.All()}, schedule.SumRows{A: d.All(), Out: db.All()}}
		}, false},
	} {
		for _, streams := range []int{1, 2} {
			b := schedule.NewBuilder(streams)
			ops := test.ops(b.Matrix("d", k, m), b.Matrix("d2", k, m), b.Matrix("in", k, n), b.Matrix("dw", m, n), b.Matrix("db", 1, m))
			for i, op := range ops {
				stream := 0
				if i == len(ops)-1 {
					stream = streams - 1
				}
				b.Do(stream, op)
			}
			s, err := b.Schedule()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := len(sums(s)) == 1, test.taken && streams == 1; got != want {
				t.Errorf("%s, %d streams: done by the product %v, want %v", test.name, streams, got, want)
			}
		}
	}
}

func outer(d, in, dw *schedule.Matrix, accumulate bool) schedule.Gemm {
	return schedule.Gemm{A: d.All(), TransA: true, B: in.All(), C: dw.All(), Accumulate: accumulate}
}
