package report

import (
	"testing"
	"time"

	"rnnbench/experiments"
	"rnnbench/experiments/study"
	"rnnbench/record"
)

// TestCoverage checks the rows of experiments with records, without any, and with a part of them.
func TestCoverage(t *testing.T) {
	ladder, err := experiments.Lookup("appleyard-table1")
	if err != nil {
		t.Fatal(err)
	}
	stacks, err := experiments.Lookup("cudnn-stacks")
	if err != nil {
		t.Fatal(err)
	}
	newRecord := func(seconds float64) record.Record {
		return record.Record{Status: record.OK, Point: record.Point{Cell: "lstm"}, Impl: record.Impl{Label: "a"}, Stats: &record.Stats{N: 12, Median: seconds}, Warnings: []string{record.WarnThrottled}}
	}
	dirty := true
	run := func(key, revision string, made int, recs ...record.Record) Reproduction {
		m := record.Manifest{Started: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Devices: []record.Device{{Key: key}}, Scope: record.Scope{Records: 3}}
		m.Environment.Tool = record.Tool{Revision: revision, Dirty: &dirty}
		for i := len(recs); i < made; i++ {
			more := newRecord(1)
			more.Point.Hidden = i
			recs = append(recs, more)
		}
		return Reproduction{Set: record.Set{Manifest: m, Records: recs}, Report: &study.Report{Reduced: made < 3}}
	}
	cpu := &Recorded{Reproduction: run("cpu-x-2t", "", 3, newRecord(1)), Again: []record.Record{newRecord(1.1)}}
	old := &Recorded{Reproduction: run("cuda-nvidia-h200", "", 3, newRecord(1))}
	old.Set.Manifest.Started = old.Set.Manifest.Started.AddDate(0, 0, -1)
	gpu := &Recorded{Reproduction: run("cuda-nvidia-h100", "0123456789abcdef", 2, newRecord(1))}
	gpu.Set.Manifest.Merged = &record.Merged{Count: 4}
	x := Recording{Experiment: ladder}
	for _, r := range []*Recorded{cpu, gpu, old} {
		x.Add(r)
	}
	earlier := &Recorded{Reproduction: run("cuda-nvidia-h100", "fedcba9876543210", 3, newRecord(1))}
	earlier.Set.Manifest.Started = old.Set.Manifest.Started
	whole, part := &Recorded{Reproduction: run("cuda-nvidia-h200", "0123", 3)}, &Recorded{Reproduction: run("cuda-nvidia-h100", "0123", 2)}
	part.Set.Manifest.Started = part.Set.Manifest.Started.AddDate(0, 0, 1)
	for _, order := range [][]*Recorded{{whole, part}, {part, whole}} {
		var y Recording
		y.Add(order[0])
		if y.Add(order[1]); y.GPU != whole {
			t.Error("of two runs of one commit, the less complete counts")
		}
	}
	// Three records of a training are of one part of the plan.
	training := &Recorded{Reproduction: run("cuda-nvidia-h100", "fedcba9876543210", 3, newRecord(1), newRecord(1), newRecord(1))}
	training.Set.Manifest.Started = old.Set.Manifest.Started
	wrong := &Recorded{Reproduction: run("cuda-nvidia-h100", "0123456789abcdef", 3, newRecord(1), record.Record{Status: record.Incorrect}, record.Record{Status: record.Failed, Point: record.Point{Cell: "lstm"}}, record.Record{Status: record.Timeout, Point: record.Point{Cell: "gru"}})}
	got := Coverage([]Recording{x, {stacks, nil, nil}, {stacks, nil, earlier}, {stacks, nil, training}, {stacks, nil, wrong}})
	for i, want := range [][]string{
		{"appleyard-table1", "yes", "medians of runs, where the paper does not say how it averages", "2026-12-01 on cpu-x-2t", "2026-12-01 on nvidia-h100, reduced size, in 4 shards, 2 of 3 planned", "12; 12", "100 %; 100 %", "two runs differ by 10.0 % (median of 1), 10.0 % at most", "earlier program; 0123456789 and changes"},
		{"cudnn-stacks", "no", "no paper", "–", "–", "", "", "", ""},
		{"cudnn-stacks", "yes", "no paper", "–", "2026-11-30 on nvidia-h100", "12", "100 %", "", "earlier program fedcba9876 and changes"},
		{"cudnn-stacks", "yes", "no paper", "–", "2026-11-30 on nvidia-h100, 1 of 3 planned", "12", "100 %", "", "earlier program fedcba9876 and changes"},
		{"cudnn-stacks", "yes", "no paper", "–", "2026-12-01 on nvidia-h100, 1 wrong answer, 2 failed", "12", "100 %", "", "0123456789 and changes"},
	} {
		for j, c := range got.Rows[i] {
			if c.Text != want[j] {
				t.Errorf("row %d, %s: %q, want %q", i, got.Columns[j].Name, c.Text, want[j])
			}
		}
	}
}
