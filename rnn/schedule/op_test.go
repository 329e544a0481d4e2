package schedule

import "testing"

// TestBytes counts what operations move. Of a table of a thousand rows only the three that are looked up count.
func TestBytes(t *testing.T) {
	b := NewBuilder(1)
	table, index, rows := b.Matrix("table", 1000, 8).All(), b.Matrix("index", 3, 1).All(), b.Matrix("rows", 3, 8).All()
	for _, c := range []struct {
		op   Op
		want int64
	}{
		{Gather{Index: index, Table: table, Out: rows}, 4*3 + 2*4*3*8},
		{Scatter{Index: index, Src: rows, Table: table}, 4*3 + 3*4*3*8},
		{Gemm{A: rows, B: table, TransB: true, C: b.Matrix("product", 3, 1000).All()}, 4 * (3*8 + 1000*8 + 3*1000)},
	} {
		if got := Bytes(c.op); got != c.want {
			t.Errorf("%v moves %d bytes, want %d", c.op, got, c.want)
		}
	}
}
