package cpu

import (
	"testing"

	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestProductsByTheSameWeightsTurnBack: every other product by the same weights reads them from
// their end, and the results are the same.
func TestProductsByTheSameWeightsTurnBack(t *testing.T) {
	const rows, depth, columns, times = 7, 257, 2049, 3
	for _, threads := range []int{1, 2, 3} {
		d, err := Open(Options{Threads: threads})
		if err != nil {
			t.Fatal(err)
		}
		b := schedule.NewBuilder(1)
		a, w, packed := b.Matrix("a", rows, depth), b.Matrix("w", depth, columns), b.Packed("packed", depth, columns)
		b.Prepare(schedule.Pack{Src: w.All(), Dst: packed.All()})
		var out []*schedule.Matrix
		for range times {
			c := b.Matrix("c", rows, columns)
			b.Do(0, schedule.Gemm{A: a.All(), B: packed.All(), C: c.All()})
			out = append(out, c)
		}
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		compiled, err := d.Compile(s, knob.Params{})
		if err != nil {
			t.Fatal(err)
		}
		p := compiled.(*program)
		for i, n := range p.nodes {
			if back := i%2 == 1; n.backward != back || n.work.(*product).Backward != back {
				t.Errorf("%d workers: product %d goes backward: %v and %v, want %v", threads, i, n.backward, n.work.(*product).Backward, back)
			}
		}
		for _, m := range []*schedule.Matrix{a, w} {
			v := make([]float32, m.Elements())
			for i := range v {
				v[i] = float32(i%13 - 6)
			}
			if err := p.Write(m, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Prepare(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(1); err != nil {
			t.Fatal(err)
		}
		first, other := make([]float32, rows*columns), make([]float32, rows*columns)
		for i, m := range out {
			if err := p.Read(m, other); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				copy(first, other)
			}
			for j, v := range other {
				if v != first[j] || i == 0 && v != exactSum(j/columns, j%columns, depth, columns) {
					t.Fatalf("%d workers: product %d has %v at %d", threads, i, v, j)
				}
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// exactSum returns an element of the products of TestProductsByTheSameWeightsTurnBack.
func exactSum(row, column, depth, columns int) float32 {
	sum := 0
	for k := range depth {
		sum += ((row*depth+k)%13 - 6) * ((k*columns+column)%13 - 6)
	}
	return float32(sum)
}
