package campaign

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
)

// TestNoise says how many winners are clear.
func TestNoise(t *testing.T) {
	w := &Winners{}
	for _, v := range [][2]float64{{-0.1, 0.3}, {0.1, 0.3}} {
		var recs []*record.Record
		for i, name := range []string{"naive", "cudnnstyle"} {
			recs = append(recs, &record.Record{
				Point: record.Point{Hidden: 8}, Impl: record.Impl{Name: name}, Status: record.OK, Warnings: []string{record.WarnNoisy},
				Stats: &record.Stats{Median: float64(1 + i)},
			})
		}
		w.Add(&tuner.Verdict{Records: recs,
			Result: &search.Result{Winner: 0, Second: 1, Medians: []float64{1, 1.1}, Left: make([]search.Reason, 2), Lo: &v[0], Hi: &v[1], Clear: v[0] > 0, Complete: true}})
	}
	if got, want := w.Noise(), "1 of 2 winners are clear; 2 of 2 records are noisy: run rnnbench doctor"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBehind: a table explains a runner-up with a negative lead.
func TestBehind(t *testing.T) {
	for _, lead := range []float64{0.1, -0.1} {
		w := &Winners{}
		rec := &record.Record{Point: record.Point{Hidden: 8}, Status: record.OK, Stats: &record.Stats{Median: 1}}
		w.Add(&tuner.Verdict{Records: []*record.Record{rec, rec},
			Result: &search.Result{Winner: 0, Second: 1, Lead: lead, Medians: []float64{1, 1 + lead}, Left: make([]search.Reason, 2), Complete: true}})
		if got := slices.Contains(w.Table().Notes, Behind); got != (lead < 0) {
			t.Errorf("a lead of %v is explained: %v", lead, got)
		}
	}
}

// TestUntimed: a budget that ends before a candidate was timed is told from candidates that cannot run.
func TestUntimed(t *testing.T) {
	v := &tuner.Verdict{Point: record.Point{Hidden: 8}, Result: &search.Result{Winner: -1, Second: -1}}
	list := &Winners{}
	list.Add(v)
	list.Add(&tuner.Verdict{Point: v.Point, Result: &search.Result{Winner: -1, Second: -1, Complete: true}})
	if list.Tuned() != 1 || list.Complete() || list.Cut != 0 || list.Untimed != 1 {
		t.Errorf("%+v", list)
	}
}

// TestDropped: tables and data say how many candidates were dropped by prediction.
func TestDropped(t *testing.T) {
	print := func(w *Winners, format string) string {
		t.Helper()
		var b bytes.Buffer
		if err := w.Table().Write(&b, format, table.Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, c := range []struct {
		dropped     int
		text, plain string
	}{{0, "", "0"}, {2290, "2290 dropped by prediction", "2290"}} {
		v := &tuner.Verdict{Point: record.Point{Hidden: 8}, Dropped: c.dropped, Result: &search.Result{Winner: -1, Second: -1, Complete: true}}
		tuned, planned := &Winners{}, &Winners{}
		tuned.Add(v)
		planned.AddCandidates(v.Point, 2349, 7, c.dropped)
		if got := print(tuned, "table"); strings.Contains(got, "dropped") != (c.dropped > 0) || !strings.Contains(got, c.text) {
			t.Errorf("%d: %s", c.dropped, got)
		}
		if got := print(planned, "table"); strings.Contains(got, "dropped by prediction") != (c.dropped > 0) {
			t.Errorf("%d: %s", c.dropped, got)
		}
		for _, w := range []*Winners{tuned, planned} {
			if got := strings.TrimSpace(print(w, "csv")); !strings.Contains(got, ",dropped\n") || !strings.HasSuffix(got, ","+c.plain) {
				t.Errorf("%d: %s", c.dropped, got)
			}
		}
	}
}

// TestUnsure: a winner of too few samples is called unsure in the table, and a lead of many times is a
// factor.
func TestUnsure(t *testing.T) {
	for _, clear := range []bool{false, true} {
		w := &Winners{}
		rec := &record.Record{Point: record.Point{Hidden: 8}, Status: record.OK, Stats: &record.Stats{Median: 1}}
		v := &tuner.Verdict{Records: []*record.Record{rec, rec},
			Result: &search.Result{Winner: 0, Second: 1, Lead: 130.43, Clear: clear, Medians: []float64{1, 131.43}, Left: make([]search.Reason, 2), Complete: clear}}
		w.Add(v)
		var b bytes.Buffer
		if err := w.Table().Write(&b, "table", table.Options{}); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		if strings.Contains(text, "unsure: too few samples") == clear || strings.Contains(text, "0 of 1 winner is clear") == clear || !strings.Contains(text, " 131× ") {
			t.Errorf("clear %t: %s", clear, text)
		}
		if e := v.Entry("hot", "", nil); e.Unsure == clear {
			t.Errorf("clear %t: the wisdom is unsure: %t", clear, e.Unsure)
		}
	}
}
