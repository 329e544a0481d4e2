package table

import (
	"bytes"
	"strings"
	"testing"

	"rnnbench/record"
)

// TestWideIntervals: an interval of more than the time itself is "over 100 %" in tables of records and
// of comparisons, beside others in percent.
func TestWideIntervals(t *testing.T) {
	var recs []record.Record
	for name, hi := range map[string]float64{"wide": 131.43, "narrow": 1.02} {
		lo := 0.99
		recs = append(recs, record.Record{Status: record.OK, Device: "cpu", Impl: record.Impl{Name: name, Label: name},
			Stats: &record.Stats{N: 6, Median: 1, Lo: &lo, Hi: &hi}, Rate: &record.Rate{}})
	}
	all, err := Records(recs, "")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := all.Write(&b, "markdown", Options{}); err != nil || strings.Count(b.String(), "| over 100 % |") != 1 || strings.Count(b.String(), " 2.0 % |") != 1 {
		t.Errorf("%v\n%s", err, &b)
	}
	for i := range recs {
		want := map[string]string{"wide": "1.00 s ± over 100 %", "narrow": "1.00 s ± 2.0 %"}[recs[i].Impl.Name]
		if c := timeCell(&recs[i]); c.Text != want {
			t.Errorf("%q, want %q", c.Text, want)
		}
	}
}
