package quantity

import (
	"slices"
	"testing"

	"rnnbench/record"
)

// TestLaunches: groups that took turns count once, and those with far slower launches than the rest of their run are
// named.
func TestLaunches(t *testing.T) {
	group := func(run string, hidden int, launch float64) []*record.Record {
		var list []*record.Record
		for _, impl := range []string{"naive", "persistent"} {
			r := &record.Record{Run: run, Device: "cuda-x", Status: record.OK, Impl: record.Impl{Name: impl, Label: impl}}
			if r.Point = (record.Point{Cell: "gru", Pass: "forward", Hidden: hidden, Input: hidden, Batch: 2, Steps: 3, Layers: 1, Precision: "bf16"}); launch > 0 {
				r.Launch = &launch
			}
			list = append(list, r)
		}
		return list
	}
	quiet := slices.Concat(group("a", 8, 3e-6), group("a", 16, 2.5e-6), group("a", 32, 3.7e-6))
	for name, c := range map[string]struct {
		recs  []*record.Record
		usual string
		slow  []string
	}{
		"unknown":       {group("a", 8, 0), "", nil},
		"one group":     {group("a", 8, 3e-6), "Just before the samples, it took 3.00 µs.", nil},
		"alike":         {quiet, "Just before each of 3 groups that took turns, it took 2.50 µs to 3.70 µs, 3.00 µs in the median.", nil},
		"no usual time": {slices.Concat(group("a", 8, 3e-6), group("a", 16, 9e-6)), "Just before each of 2 groups that took turns, it took 3.00 µs to 9.00 µs, 3.00 µs in the median.", nil},
		"one is slow": {slices.Concat(quiet, group("a", 64, 4e-6)), "Just before each of 4 groups that took turns, it took 2.50 µs to 4.00 µs, 3.00 µs in the median.",
			[]string{"Launches took over 1.25 times the usual 3.00 µs before 1 of 4 groups: 4.00 µs before gru forward H=64 B=2 T=3 L=1 bf16."}},
		"another host": {slices.Concat(quiet, group("b", 8, 6e-6), group("b", 16, 6.1e-6), group("b", 32, 6.2e-6)), "Just before each of 6 groups that took turns, it took 2.50 µs to 6.20 µs, 3.70 µs in the median.", nil},
	} {
		if got := Launches(c.recs); got != c.usual {
			t.Errorf("%s: %q, want %q", name, got, c.usual)
		}
		if got := SlowLaunches(c.recs); !slices.Equal(got, c.slow) {
			t.Errorf("%s: %q, want %q", name, got, c.slow)
		}
		if got := Doubts(c.recs); len(got) != len(c.slow) {
			t.Errorf("%s: tables and figures say %q", name, got)
		}
	}
}
