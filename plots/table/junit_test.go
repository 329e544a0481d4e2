package table

import (
	"encoding/xml"
	"strings"
	"testing"

	"rnnbench/record"
	"rnnbench/record/compare"
)

// TestJUnit: a slower and a broken point are failures, an ambiguous one is skipped, and the rest passes.
func TestJUnit(t *testing.T) {
	of := func(hidden int, v compare.Verdict) compare.Change {
		r := &record.Record{Point: record.Point{Cell: "lstm", Pass: "forward", Hidden: hidden, Precision: "fp32"}, Impl: record.Impl{Name: "naive", Label: `a<b & "c"`}, Device: "cpu", Status: record.OK,
			Stats: &record.Stats{Median: 1e-3}}
		return compare.Change{Verdict: v, Base: r, New: r, Ratio: compare.Interval{Value: 1.2, Lo: 1.1, Hi: 1.3}, Why: "at\x01work"}
	}
	list := []compare.Comparison{{Base: "old", New: "new", Changes: []compare.Change{of(1, compare.Slower), of(2, compare.Broken), of(3, compare.Ambiguous), of(4, compare.Same), of(5, compare.Faster)}}}
	for _, c := range []struct {
		bad      []compare.Verdict
		failures int
	}{{nil, 2}, {[]compare.Verdict{compare.Faster}, 1}} {
		var b strings.Builder
		if err := JUnit(&b, list, c.bad); err != nil {
			t.Fatal(err)
		}
		var all junitSuites
		if err := xml.Unmarshal([]byte(b.String()), &all); err != nil {
			t.Fatalf("%v: %s", err, b.String())
		}
		s := all.Suites[0]
		if s.Tests != 5 || s.Failures != c.failures || s.Skipped != 1 || len(s.Cases) != 5 {
			t.Errorf("%v: %+v", c.bad, s)
		}
		if c.bad == nil && (s.Cases[0].Failure == nil || s.Cases[2].Skipped == nil || s.Cases[0].Failure.Text != "SLOWER +20.0 % (+10.0 % … +30.0 %): at\uFFFDwork" || !strings.HasSuffix(s.Cases[0].Name, `a<b & "c"`)) {
			t.Errorf("%+v", s.Cases)
		}
	}
}
