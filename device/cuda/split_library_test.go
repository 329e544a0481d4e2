package cuda_test

import (
	"testing"

	"rnnbench/device/cuda"
	"rnnbench/rnn/schedule"
)

// TestPortions: the portions of a product have each of its terms exactly once.
func TestPortions(t *testing.T) {
	const m, n, k = 300, 130, 200
	for _, c := range []struct {
		transA, transB, kept bool
		m, n, k              int
		room                 int64
	}{
		{m: m, n: n, k: k, room: 1 << 30},
		{m: m, n: n, k: k, room: 1 << 19},
		{m: m, n: n, k: k, room: 1 << 19, kept: true},
		{m: k, n: n, k: m, room: 1 << 19, transA: true},
		{m: k, n: n, k: m, room: 1 << 18, transA: true, transB: true},
		{m: k, n: n, k: m, room: 1 << 18, kept: true},
	} {
		b := schedule.NewBuilder(1)
		view := func(trans bool, rows, cols int) schedule.View {
			if trans {
				rows, cols = cols, rows
			}
			return b.Matrix("m", rows, cols).All()
		}
		op := schedule.Gemm{A: view(c.transA, c.m, c.k), TransA: c.transA, B: view(c.transB, c.k, c.n), TransB: c.transB, C: view(false, c.m, c.n)}
		terms := make([]int, c.m*c.k)
		fresh := make([]bool, c.m)
		for i, p := range cuda.Portions(op, c.kept, c.room, 128) {
			rows, _, length := p.Sizes()
			row, at := p.A.Row, p.A.Col
			if c.transA {
				row, at = at, row
			}
			if bt := p.B.Row + p.B.Col; bt != at || p.C.Row != row || p.C.Rows != rows {
				t.Errorf("%+v: portion %d is %v", c, i, p)
			}
			for r := range rows {
				if p.Accumulate != fresh[row+r] {
					t.Errorf("%+v: portion %d accumulates: %v", c, i, p.Accumulate)
				}
				fresh[row+r] = true
				for j := range length {
					terms[(row+r)*c.k+at+j]++
				}
			}
		}
		for i, n := range terms {
			if n != 1 {
				t.Fatalf("%+v: term %d is there %d times", c, i, n)
			}
		}
	}
}
