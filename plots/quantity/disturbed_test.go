package quantity

import (
	"slices"
	"strings"
	"testing"

	"rnnbench/record"
)

// disturbedAt is a record of one technique at a size.
func disturbedAt(hidden int, impl string, d *record.Disturbance) *record.Record {
	r := &record.Record{Run: "r", Device: "cpu-x", Status: record.OK, Stats: &record.Stats{Median: 1}, Impl: record.Impl{Name: impl, Label: impl}, Disturbance: d}
	r.Point = record.Point{Cell: "lstm", Pass: "forward", Precision: "fp32", Hidden: hidden, Input: hidden, Batch: 1, Steps: 1, Layers: 1}
	return r
}

// TestDisturbed: each kind of disturbance has one sentence, which counts points and names the worst
// first. Nothing is said where nothing is known or nothing happened.
func TestDisturbed(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	others := func(x float64, runs ...int) *record.Disturbance {
		return &record.Disturbance{Seconds: 1, Processors: 2, Own: v(1), Others: v(x), Stolen: v(0), Runs: runs}
	}
	held := func(x float64) *record.Disturbance {
		return &record.Disturbance{Seconds: 1, Processors: 2, Own: v(0.5), Others: v(0), Quota: v(0.5), Stopped: v(x)}
	}
	hot, robbed := int64(3), &record.Disturbance{Seconds: 1, Processors: 2, Stolen: v(0.4)}
	for _, c := range []struct {
		name string
		recs []*record.Record
		want []string
	}{
		{"unknown", []*record.Record{disturbedAt(8, "naive", nil)}, nil},
		{"quiet", []*record.Record{disturbedAt(8, "naive", others(0.01)), disturbedAt(16, "naive", held(0))}, nil},
		{"one point", []*record.Record{disturbedAt(8, "naive", others(0.9)), disturbedAt(8, "scc", others(0.9))}, []string{"Other programs used 0.9 of 2 processors."}},
		{"four of five", []*record.Record{
			disturbedAt(8, "naive", others(0.5)), disturbedAt(8, "scc", others(0.5)), disturbedAt(16, "naive", others(0.94, 47, 48)),
			disturbedAt(32, "naive", others(0.01)), disturbedAt(64, "naive", others(0.7, 47)), disturbedAt(128, "naive", others(0.3)),
		}, []string{"Other programs used up to 0.9 of 2 processors at 4 of 5 points, most at H=16, H=64, H=8. Other runs of rnnbench were among them (2, the first was process 47)."}},
		{"one of two", []*record.Record{disturbedAt(8, "naive", others(0)), disturbedAt(16, "naive", others(0.5, 47))},
			[]string{"Other programs used 0.5 of 2 processors at 1 of 2 points: H=16. Another run of rnnbench was among them (process 47)."}},
		{"a quota", []*record.Record{disturbedAt(8, "naive", held(0.3)), disturbedAt(16, "naive", held(0.62))},
			[]string{"The control group's quota (0.5 processors) stopped the program for up to 62 % of the time at 2 of 2 points, most at H=16, H=8."}},
		{"two kinds", []*record.Record{disturbedAt(8, "naive", robbed), disturbedAt(16, "naive", &record.Disturbance{Seconds: 1, Processors: 2, Heat: &hot})},
			[]string{"The hypervisor took away 0.4 of 2 processors at 1 of 2 points: H=8.", "Heat slowed processors down 3 times at 1 of 2 points: H=16."}},
	} {
		if got := Disturbed(c.recs); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if got := Doubts(c.recs); !slices.Equal(got, c.want) {
			t.Errorf("%s: tables and figures say %q", c.name, got)
		}
	}
}
