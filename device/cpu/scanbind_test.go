package cpu

import (
	"testing"

	"rnnbench/device/cpu/simd"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// TestLanesOfFewChannels: scans whose channels fill at most half of a vector run in lanes if they have
// enough steps; others do not.
func TestLanesOfFewChannels(t *testing.T) {
	for _, c := range []struct {
		level                simd.Level
		hidden, batch, steps int
		want                 int
	}{
		{simd.AVX512, 1, 1, 1000, 64}, {simd.AVX512, 1, 1, 200, 16}, {simd.AVX512, 1, 1, 63, 1}, {simd.AVX512, 2, 4, 1000, 32},
		{simd.AVX512, 8, 1, 1000, 16}, {simd.AVX512, 9, 1, 1000, 1}, {simd.AVX512, 1, 9, 1000, 1}, {simd.AVX512, 8, 2, 1000, 1},
		{simd.AVX2, 4, 1, 1000, 16}, {simd.AVX2, 5, 1, 1000, 1}, {simd.Generic, 4, 9, 1000, 16}, {simd.Generic, 5, 9, 1000, 1},
	} {
		if c.level > simd.Detect() {
			continue
		}
		d, err := Open(Options{Threads: 2, Level: &c.level})
		if err != nil {
			t.Fatal(err)
		}
		b := schedule.NewBuilder(1)
		rows := c.steps * c.batch
		op := schedule.Scan{Sequence: schedule.Sequence{Cell: cell.Linear, Steps: c.steps, X: b.Matrix("x", rows, 2*c.hidden).All(),
			BX: b.Matrix("bias", 1, 2*c.hidden).All(), State: []schedule.View{b.Matrix("h", rows+c.batch, c.hidden).All()}}}
		got := 1
		if l := d.scanOf(op, nil).lanes; l != nil {
			got = l.count
		}
		if got != c.want {
			t.Errorf("%v: %d channels of %d sequences run in %d lanes over %d steps, want %d", c.level, c.hidden, c.batch, got, c.steps, c.want)
		}
		op.Keep = b.Matrix("keep", rows+c.batch, 1).All()
		if w := d.scanOf(op, nil); w.lanes != nil {
			t.Errorf("%v: sequences begin anew in %d lanes", c.level, w.lanes.count)
		}
		d.Close()
	}
}

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
