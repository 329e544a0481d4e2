package cpu

import (
	"slices"
	"testing"
)

// TestTurns: workers that take turns begin by turns, and meet as others do. One that fails stops the others.
func TestTurns(t *testing.T) {
	for _, run := range []func(*pool, []int, func(int)) error{(*pool).on, (*pool).with} {
		p := newPool(3, hostTopology(), true)
		defer p.close()
		b := p.barrier(3, 0, 3)
		var order []int
		for range 2 {
			if err := run(p, p.seats(3), func(w int) {
				for range 2 {
					order = append(order, w)
					p.meet(b, w, 3)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		// The last to arrive continues at once.
		if want := []int{0, 1, 2, 2, 0, 1, 2, 1, 0, 0, 2, 1}; !slices.Equal(order, want) {
			t.Errorf("workers began steps in the order %v, want %v", order, want)
		}
		if err := run(p, p.seats(3), func(w int) {
			if w == 1 {
				panic("broken")
			}
			p.meet(b, w, 3)
		}); err == nil {
			t.Error("no error of a worker that fails")
		}
	}
}
