package quantity

import (
	"fmt"
	"testing"

	"rnnbench/record"
)

// TestFastest: one point has a lead, several have winners, and a lone technique has neither.
func TestFastest(t *testing.T) {
	newRecord := func(hidden int, name string, seconds float64) *record.Record {
		r := &record.Record{Point: record.Point{Hidden: hidden}, Impl: record.Impl{Name: name, Label: name}, Status: record.Skipped}
		if seconds > 0 {
			lo, hi := 0.95*seconds, 1.05*seconds
			r.Status, r.Stats = record.OK, &record.Stats{Median: seconds, Lo: &lo, Hi: &hi}
		}
		return r
	}
	trained := newRecord(8, "naive", 2)
	trained.Training = &record.Training{Iterations: 5}
	few := newRecord(8, "scan", 3)
	few.Stats.Lo, few.Stats.Hi = nil, nil
	var many []*record.Record
	for hidden := range 8 {
		many = append(many, newRecord(hidden, "naive", 3), newRecord(hidden, fmt.Sprint("own", hidden), 1))
	}
	for _, c := range []struct {
		recs []*record.Record
		want string
	}{
		{nil, ""},
		{[]*record.Record{newRecord(8, "naive", 2)}, ""},
		{[]*record.Record{newRecord(8, "naive", 2), newRecord(8, "scan", 0)}, ""},
		{[]*record.Record{newRecord(8, "naive", 2), newRecord(9, "persistent", 1)}, ""},
		{[]*record.Record{trained, newRecord(8, "persistent", 1)}, ""},
		{[]*record.Record{newRecord(8, "naive", 2), newRecord(8, "persistent", 1)}, "fastest: persistent, 2.00× (1.81–2.21×) as fast as naive; they were not measured in turns"},
		{[]*record.Record{newRecord(8, "naive", 1), newRecord(8, "persistent", 1.25)}, "fastest: naive, 1.25× (1.13–1.38×) as fast as persistent; they were not measured in turns"},
		{[]*record.Record{newRecord(8, "naive", 1), newRecord(8, "persistent", 1.06)}, "tie: naive is 1.06× (0.96–1.17×) as fast as persistent; they were not measured in turns"},
		{[]*record.Record{newRecord(8, "naive", 1), newRecord(8, "scan", 1.004)}, "tie: naive is 1.00× (0.91–1.11×) as fast as scan; they were not measured in turns"},
		{[]*record.Record{newRecord(8, "naive", 1), few}, "unsure: naive was 3.00× as fast as scan, in too few samples"},
		{[]*record.Record{newRecord(8, "naive", 1), newRecord(8, "scan", 1.05), newRecord(9, "naive", 1), newRecord(9, "scan", 1.05)}, "none is clearly the fastest at any of 2 points"},
		{turns(newRecord(8, "naive", 1), newRecord(8, "scan", 1.05)), "fastest: naive, 1.05× as fast as scan"},
		{turns(newRecord(8, "naive", 1), newRecord(8, "scan", 1.05), spread(newRecord(8, "cudnnstyle", 1.06))), "tie: naive is 1.06× (0.95–1.18×) as fast as cudnnstyle"},
		{turns(newRecord(8, "naive", 1), newRecord(8, "scan", 1.004)), "tie: naive and scan differ by less than 1 %"},
		{
			[]*record.Record{newRecord(8, "naive", 1), newRecord(8, "scan", 2), newRecord(9, "naive", 1), newRecord(9, "scan", 1.01), newRecord(10, "naive", 3), newRecord(10, "scan", 2), newRecord(11, "scan", 2)},
			"fastest at 3 points: naive at 1, scan at 1, a tie or unsure at 1",
		},
		{many, "fastest at 8 points: own0 at 1, own1 at 1, own2 at 1, own3 at 1, others at 4"},
	} {
		if got := Fastest(c.recs); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// turns gives records samples that were taken in turns in rounds of very different speed, so that only
// the ratios of rounds tell techniques apart.
func turns(recs ...*record.Record) []*record.Record {
	for _, r := range recs {
		var times []float64
		for i := range 9 {
			times = append(times, r.Stats.Median*(1+0.1*float64(i-4)))
		}
		if r.Samples != nil {
			for i := range times {
				times[i] *= r.Samples.Wall[i]
			}
		}
		s, _ := record.Summarize(times, 0)
		s.Median = r.Stats.Median
		r.Run, r.Cost.Measure, r.Samples, r.Stats = "one", 1, &record.Samples{Wall: times}, &s
	}
	return recs
}

// spread lets turns make the samples of r noisy.
func spread(r *record.Record) *record.Record {
	r.Samples = &record.Samples{Wall: []float64{0.9, 1.1, 0.9, 1.11, 1, 1.11, 0.9, 1.1, 0.9}}
	return r
}
