package cpu

import (
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestInPlace: weights that a run packs for one product are read as they are stored. Others stay
// packed, and so do weights that change before the product.
func TestInPlace(t *testing.T) {
	const m, k, n = 5, 7, 9
	for name, c := range map[string]struct {
		products int
		before   bool // the weights change between packing and product
		once     bool // packed ahead of all runs
		want     bool
	}{
		"one product":        {1, false, false, true},
		"two products":       {2, false, false, false},
		"changed before":     {1, true, false, false},
		"packed ahead":       {1, false, true, false},
		"packed for nothing": {0, false, false, false},
	} {
		b := schedule.NewBuilder(2)
		w, packed := b.Matrix("w", n, k), b.Packed("packed w", k, n)
		a, out := b.Matrix("a", m, k), b.Matrix("c", m, n)
		pack := schedule.Pack{Src: w.All(), Dst: packed.All(), Trans: true}
		if c.once {
			b.Prepare(pack)
		} else {
			b.Do(0, pack)
		}
		zero := schedule.Map{Op: cell.Zero, Out: w.All()}
		if c.before {
			b.Do(0, zero)
		}
		for i := range c.products {
			b.Do(1, schedule.Gemm{A: a.All(), B: packed.All(), C: out.All(), Accumulate: i > 0})
		}
		b.Do(0, zero)
		s, err := b.Schedule()
		if err != nil {
			t.Fatal(err)
		}
		got := inPlace(s)
		if (got != s) != c.want {
			t.Errorf("%s: the schedule has changed: %v, want %v", name, got != s, c.want)
			continue
		}
		if !c.want {
			continue
		}
		g, ok := got.Nodes[0].Op.(schedule.Gemm)
		if !ok || len(got.Nodes) != len(s.Nodes)-1 || g.B != w.All() || !g.TransB || len(got.Nodes[0].Wait) != 0 {
			t.Errorf("%s: the schedule is %+v", name, got.Nodes)
		}
		for _, at := range got.Nodes[1].Wait {
			if at != 0 {
				t.Errorf("%s: changing the weights waits for node %d, not for the product", name, at)
			}
		}
	}
}
