package cpu

import (
	"testing"

	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestMemoryBoundScanTakesHalfTheWorkers: in a memory-bound scan half of the workers take part, or
// as many as split time if that is more. In any other scan all take part.
func TestMemoryBoundScanTakesHalfTheWorkers(t *testing.T) {
	for _, c := range []struct {
		all, steps, cut int
		want            int
	}{
		{16, 1 << 24, 0, 8}, {16, 1 << 24, 3, 6}, {16, 1 << 24, 8, 8}, {16, 1 << 24, 16, 16}, {4, 1 << 24, 3, 3}, {3, 1 << 24, 0, 2}, {2, 1 << 24, 2, 2},
		{16, 100, 0, 16}, {16, 100, 3, 15}, {4, 100, 1024, 4},
	} {
		d, err := Open(Options{Threads: c.all})
		if err != nil {
			t.Fatal(err)
		}
		b := schedule.NewBuilder(1)
		const hidden = 256
		op := schedule.Scan{Sequence: schedule.Sequence{Cell: cell.Linear, Steps: c.steps, X: b.Matrix("x", c.steps, 2*hidden).All(),
			BX: b.Matrix("bias", 1, 2*hidden).All(), State: []schedule.View{b.Matrix("h", c.steps+1, hidden).All()}}}
		if w := d.scanOf(op, knob.Params{"scansplit": c.cut}); w.most != c.want {
			t.Errorf("%d of %d workers take part over %d steps with scansplit=%d, want %d", w.most, c.all, c.steps, c.cut, c.want)
		}
		d.Close()
	}
}
