package plots

import (
	"testing"

	"rnnbench/record"
)

// TestWinnerIsClose: a lead is drawn as clear only if intervals are known and do not overlap, as tables count it.
func TestWinnerIsClose(t *testing.T) {
	timed := func(name string, median, lo, hi float64) *record.Record {
		r := &record.Record{Status: record.OK, Stats: &record.Stats{Median: median}}
		if r.Impl.Name = name; lo > 0 {
			r.Stats.Lo, r.Stats.Hi = &lo, &hi
		}
		return r
	}
	for _, c := range []struct {
		name string
		slow *record.Record
		want bool
	}{
		{"far behind", timed("slow", 2, 1.9, 2.1), false},
		{"overlapping", timed("slow", 2, 1.05, 2.1), true},
		{"closer than 1 %", timed("slow", 1.005, 1.2, 1.3), true},
		{"without an interval", timed("slow", 2, 0, 0), true},
	} {
		got := winner([]*record.Record{c.slow, timed("fast", 1, 0.9, 1.1)}, func(r *record.Record) string { return r.Impl.Name })
		if got.Close != c.want || got.Category != "fast" {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
