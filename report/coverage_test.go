package report

import (
	"testing"
	"time"

	"rnnbench/experiments"
	"rnnbench/results"
)

// TestCoverage holds what the table says of experiments with and without records.
func TestCoverage(t *testing.T) {
	ladder, err := experiments.Lookup("appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	stacks, err := experiments.Lookup("cudnn-stacks")
	if err != nil {
		t.Fatal(err)
	}
	record := func(seconds float64) results.Record {
		return results.Record{Status: results.OK, Point: results.Point{Cell: "lstm"}, Impl: results.Impl{Label: "a"}, Stats: &results.Stats{N: 12, Median: seconds}, Warnings: []string{results.WarnThrottled}}
	}
	dirty := true
	run := func(revision string, counted int, recs ...results.Record) Reproduction {
		m := results.Manifest{Started: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Plan: results.Plan{Records: 3}, Counts: map[results.Status]int{results.OK: counted}}
		m.Environment.Tool = results.Tool{Revision: revision, Dirty: &dirty}
		return Reproduction{Set: results.Set{Manifest: m, Records: recs}, Report: &experiments.Report{Reduced: counted < 3}}
	}
	cpu := &Recorded{Reproduction: run("", 3, record(1)), Again: []results.Record{record(1.1)}}
	gpu := &Recorded{Reproduction: run("0123456789abcdef", 2, record(1))}
	got := Coverage([]Recording{{ladder, cpu, gpu}, {stacks, nil, nil}})
	for i, want := range [][]string{
		{"appleyard-table1", "yes", "nothing", "2026-12-01", "2026-12-01, reduced size, 2 of 3 records", "12; 12", "100 %; 100 %", "two runs differ by 10.0 % (median of 1), 10.0 % at most", "earlier program; 0123456789 and changes"},
		{"cudnn-stacks", "no", "no paper", "–", "–", "", "", "", ""},
	} {
		for j, c := range got.Rows[i] {
			if c.Text != want[j] {
				t.Errorf("row %d, %s: %q, want %q", i, got.Columns[j].Name, c.Text, want[j])
			}
		}
	}
}
