package quantity

import (
	"fmt"
	"testing"

	"rnnbench/results"
)

// TestFastest: one point has a lead, several have winners, and a lone technique has neither.
func TestFastest(t *testing.T) {
	record := func(hidden int, name string, seconds float64) *results.Record {
		r := &results.Record{Point: results.Point{Hidden: hidden}, Impl: results.Impl{Name: name, Label: name}, Status: results.Skipped}
		if seconds > 0 {
			lo, hi := 0.95*seconds, 1.05*seconds
			r.Status, r.Stats = results.OK, &results.Stats{Median: seconds, Lo: &lo, Hi: &hi}
		}
		return r
	}
	trained := record(8, "naive", 2)
	trained.Training = &results.Training{Iterations: 5}
	few := record(8, "scan", 3)
	few.Stats.Lo, few.Stats.Hi = nil, nil
	var many []*results.Record
	for hidden := range 8 {
		many = append(many, record(hidden, "naive", 3), record(hidden, fmt.Sprint("own", hidden), 1))
	}
	for _, c := range []struct {
		recs []*results.Record
		want string
	}{
		{nil, ""},
		{[]*results.Record{record(8, "naive", 2)}, ""},
		{[]*results.Record{record(8, "naive", 2), record(8, "scan", 0)}, ""},
		{[]*results.Record{record(8, "naive", 2), record(9, "persistent", 1)}, ""},
		{[]*results.Record{trained, record(8, "persistent", 1)}, ""},
		{[]*results.Record{record(8, "naive", 2), record(8, "persistent", 1)}, "fastest: persistent; the next, naive, takes 2.00× as long"},
		{[]*results.Record{record(8, "naive", 1), record(8, "persistent", 1.25)}, "fastest: naive; the next, persistent, takes 25.0 % longer"},
		{[]*results.Record{record(8, "naive", 1), record(8, "persistent", 1.06)}, "fastest: naive; the next, persistent, takes 6.0 % longer, but their confidence intervals overlap"},
		{[]*results.Record{record(8, "naive", 1), record(8, "scan", 1.004)}, "fastest: naive; the next, scan, takes 0.4 % longer, which is too little to matter"},
		{[]*results.Record{record(8, "naive", 1), few}, "fastest: naive; the next, scan, takes 3.00× as long, by too few samples to be sure"},
		{
			[]*results.Record{record(8, "naive", 1), record(8, "scan", 2), record(9, "naive", 1), record(9, "scan", 1.01), record(10, "naive", 3), record(10, "scan", 2), record(11, "scan", 2)},
			"fastest at 3 points: naive at 2, scan at 1; the lead is clear at 2",
		},
		{many, "fastest at 8 points: own0 at 1, own1 at 1, own2 at 1, own3 at 1, others at 4; the lead is clear at 8"},
	} {
		if got := Fastest(c.recs); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
