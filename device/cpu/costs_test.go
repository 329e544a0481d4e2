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

// TestRowsTakeTheLonger: rows of a cell take as long as computing them or as moving them, whichever is
// longer.
func TestRowsTakeTheLonger(t *testing.T) {
	prog := cell.LSTM.Forward
	bytes := int64(4 * vectorsOf(prog) * 8 * 256)
	for _, c := range []struct {
		name           string
		compute, bytes float64 // seconds of a line's instruction, bytes per second
	}{{"slow arithmetic", 1e-6, 1e15}, {"slow memory", 1e-15, 1e6}} {
		r := rates{line: c.compute, function: c.compute, tanh: c.compute, stream: [4]float64{c.bytes, c.bytes, c.bytes, c.bytes}}
		on := core{&r, caches{}}
		computing, moving := 8*16*on.instructions(prog), float64(bytes)/c.bytes
		if got, want := on.rows(prog, 8, 256, 0), max(computing, moving); got < 0.99*want || got > 1.01*want {
			t.Errorf("%s: %v s, want %v s of %v s to compute and %v s to move", c.name, got, want, computing, moving)
		}
	}
}
