package table

import (
	"fmt"
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/record/compare"
)

// TestChangeOfTheTimes: where a change leaves out what moved all points alike, the table also has the
// change from the time before to the time now.
func TestChangeOfTheTimes(t *testing.T) {
	run := func(label string, factor float64) record.Set {
		s := record.Set{Label: label}
		for i := range 10 {
			r := record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: 64 + i, Precision: "fp32"}, Impl: record.Impl{Name: "naive", Label: "naive"}, Device: "cpu", Status: record.OK, Samples: &record.Samples{}}
			for k := range 10 {
				r.Samples.Wall = append(r.Samples.Wall, 124e-6*factor*(1+0.001*float64((i+k)%5)))
			}
			st, _ := record.Summarize(r.Samples.Wall, 0)
			r.Stats = &st
			s.Records = append(s.Records, r)
		}
		return s
	}
	side := func(label string, factors ...float64) compare.Side {
		var sets []record.Set
		for _, f := range factors {
			sets = append(sets, run(label, f))
		}
		return compare.Sides(sets)[0]
	}
	for _, c := range []struct {
		name string
		now  []float64
		want bool
	}{
		{"all moved, no more than runs differ", []float64{0.8, 0.72, 1}, true},
		{"nothing moved", []float64{1.1, 0.9, 1}, false},
	} {
		list, err := compare.Runs(side("before", 1, 1.1, 0.9), []compare.Side{side("after", c.now...)}, compare.Usual())
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := Changes(list, compare.Usual(), nil).Write(&b, "table", Options{}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		raw := fmt.Sprintf("%+.1f %%", 100*(list[0].Changes[0].New.Seconds()/list[0].Changes[0].Base.Seconds()-1))
		if strings.Contains(text, "of the times") != c.want || c.want && !strings.Contains(text, raw) {
			t.Errorf("%s (%s):\n%s", c.name, raw, text)
		}
	}
}
