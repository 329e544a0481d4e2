package quantity

import (
	"testing"

	"rnnbench/record"
)

// timed returns a record with a median and an interval; lo 0: no interval.
func timed(name string, hidden int, median, lo, hi float64, warnings ...string) *record.Record {
	r := &record.Record{Status: record.OK, Stats: &record.Stats{Median: median}, Warnings: warnings}
	r.Impl.Name, r.Point.Hidden = name, hidden
	if lo > 0 {
		r.Stats.Lo, r.Stats.Hi = &lo, &hi
	}
	return r
}

func TestStanding(t *testing.T) {
	noisy := record.WarnNoisy
	failed := &record.Record{Status: record.Failed}
	for _, c := range []struct {
		name string
		recs []*record.Record
		want Standing
		line string
	}{
		{"overlapping and noisy",
			[]*record.Record{timed("naive", 1, 2, 1, 5, noisy), timed("scan", 1, 1, 0.5, 3, noisy), timed("naive", 2, 2, 1, 3, noisy), timed("scan", 2, 8, 7, 9)},
			Standing{2, 1, 3, 4}, "1 of 2 winners are clear; 3 of 4 records are noisy: run rnnbench doctor"},
		{"half of them noisy", []*record.Record{timed("naive", 1, 2, 1, 5, noisy), timed("scan", 1, 1, 0.5, 3)}, Standing{1, 0, 1, 2}, ""},
		{"closer than 1 %", []*record.Record{timed("naive", 1, 1, 1, 1), timed("scan", 1, 1.001, 1.001, 1.001)}, Standing{1, 0, 0, 2}, ""},
		{"no intervals", []*record.Record{timed("naive", 1, 1, 0, 0), timed("scan", 1, 9, 0, 0)}, Standing{1, 0, 0, 2}, ""},
		{"no rival", []*record.Record{timed("naive", 1, 1, 0.5, 2, noisy), failed}, Standing{0, 0, 1, 1}, "1 of 1 record is noisy: run rnnbench doctor"},
		{"one winner", []*record.Record{timed("naive", 1, 1, 0.9, 1.1, noisy), timed("scan", 1, 9, 8, 10, noisy)}, Standing{1, 1, 2, 2}, "1 of 1 winner is clear; 2 of 2 records are noisy: run rnnbench doctor"},
		{"nothing", nil, Standing{}, ""},
	} {
		got := StandingOf(c.recs)
		if got != c.want || got.Headline() != c.line {
			t.Errorf("%s: %+v, %q; want %+v, %q", c.name, got, got.Headline(), c.want, c.line)
		}
	}
}
