package cpu

import (
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/schedule"
)

// TestLongLayersOfSmallSteps: workers that share a persistent operation meet at each step, so the cost of a
// step says whether sharing pays, however many steps there are.
func TestLongLayersOfSmallSteps(t *testing.T) {
	d, err := Open(Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for hidden, want := range map[int]int{4: 0, 256: 1} {
		a := newLayer(t, cell.LSTM, true, 5, hidden, 1, 1000, []int{0, 0}, nil)
		shared := 0
		for op := range a.s.Operations() {
			switch op.(type) {
			case schedule.Persistent, schedule.PersistentBackward:
				shared++
				if cost(op) < forkFLOPs {
					t.Fatalf("%d units: all steps cost %d, which shows nothing", hidden, cost(op))
				}
				if n := d.pieces(op, simd.F32); n != want {
					t.Errorf("%d units: %d pieces for a worker, want %d", hidden, n, want)
				}
			}
		}
		if shared != 1 {
			t.Errorf("%d persistent operations, want 1", shared)
		}
	}
}

// TestEvictsLastCache: all workers together write to 64 MiB or to twice the last cache, whichever is more,
// and each to twice its L2 besides.
func TestEvictsLastCache(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ l3, l2, workers, want int }{
		{100 * mib, 2 * mib, 4, 50*mib + 4*mib}, {8 * mib, mib, 2, 32*mib + 2*mib}, {-1, -1, 1, 64 * mib}, {32 * mib, 0, 1, 64 * mib},
	} {
		if got := evicts(c.l3, c.l2, c.workers); got != c.want {
			t.Errorf("a last cache of %d bytes, L2 of %d, %d workers: %d bytes each, want %d", c.l3, c.l2, c.workers, got, c.want)
		}
	}
}
