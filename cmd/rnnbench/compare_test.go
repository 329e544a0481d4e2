package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

// TestCompare compares runs whose records were changed on purpose.
func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --label first -q").want(t, exit.Done, nil, nil)
	m, recs, _, err := record.Read(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, change func(i int, r *record.Record)) {
		t.Helper()
		var text bytes.Buffer
		for i, r := range recs {
			samples := make([]float64, 12)
			for j := range samples {
				samples[j] = 1e-3 * (1 + 0.0001*float64(j))
			}
			r.Samples = &record.Samples{Wall: samples}
			if change != nil {
				change(i, &r)
			}
			st, _ := record.Summarize(r.Samples.Wall, 0)
			r.Stats = &st
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(append(line, '\n'))
		}
		if err := os.WriteFile(name, text.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rnnbench(t, "compare out").want(t, exit.Done, nil, []string{"warning: both sides are run " + m.Run + ": a run compared with itself shows no change"})
	rnnbench(t, "compare a=out b="+m.Run+" c=out").want(t, exit.Done, nil, []string{"warning: both sides are run"})
	write("base.jsonl", nil)
	write("same.jsonl", nil)
	write("slow.jsonl", func(i int, r *record.Record) {
		if i == 0 {
			for j := range r.Samples.Wall {
				r.Samples.Wall[j] *= 1.2
			}
		}
	})
	write("broken.jsonl", func(i int, r *record.Record) {
		if why := "off by 3"; i == 1 {
			r.Status, r.Reason = record.Incorrect, &why
		}
	})
	write("other.jsonl", func(_ int, r *record.Record) { r.Point.Cell = "gru" })
	write("elsewhere.jsonl", func(_ int, r *record.Record) { r.Device = "abacus" })
	for _, c := range []struct {
		line        string
		code        int
		out, errors []string
	}{
		{"a=base.jsonl b=same.jsonl --fail-on slower,broken", exit.Done, []string{"b against a: 4 SAME."}, nil},
		{"a=base.jsonl b=slow.jsonl", exit.Done, []string{"SLOWER", "+20.0 %", "1 SLOWER, 3 SAME", "Largest slowdowns: ", "One run per side"}, nil},
		{"a=base.jsonl,same.jsonl b=slow.jsonl,slow.jsonl", exit.Done, []string{"b against a: 1 SLOWER, 3 SAME"}, nil},
		{"base.jsonl,same.jsonl same.jsonl,base.jsonl", exit.Done, []string{"4 SAME"}, nil},
		{"a=base.jsonl,nosuch.jsonl b=slow.jsonl", exit.Error, nil, []string{"nosuch.jsonl"}},
		{"a=base.jsonl a=base.jsonl b=slow.jsonl b=slow.jsonl", exit.Done, []string{"1 SLOWER, 3 SAME"}, nil},
		{"a=base.jsonl b=slow.jsonl --fail-on slower", exit.Changed, []string{"SLOWER"}, []string{"--fail-on: 1 SLOWER"}},
		{"a=base.jsonl b=slow.jsonl --fail-on broken", exit.Done, nil, nil},
		{"a=base.jsonl b=slow.jsonl --min-effect 30% --fail-on slower", exit.Done, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=same.jsonl c=broken.jsonl --fail-on broken --only broken", exit.Changed, []string{"off by 3", "c against a: 1 BROKEN"}, []string{"1 BROKEN"}},
		{"base.jsonl base.jsonl", exit.Done, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=other.jsonl", exit.Changed, nil, []string{"nothing overlaps: no cell is in both"}},
		{"a=base.jsonl a=same.jsonl", exit.Changed, nil, []string{"nothing to compare with a"}},
		{"a=base.jsonl b=elsewhere.jsonl", exit.Usage, nil, []string{"abacus", "hint: add --across-devices"}},
		{"a=base.jsonl b=elsewhere.jsonl --across-devices", exit.Done, []string{"4 SAME"}, nil},
		{"a=base.jsonl b=slow.jsonl --where hidden>99", exit.Error, nil, []string{"select none of 8 records"}},
		{m.Run, exit.Done, []string{"first #2 against first"}, nil},
	} {
		rnnbench(t, "compare "+c.line).want(t, c.code, c.out, c.errors)
	}
	var rows []struct{ Ratio *float64 }
	o := rnnbench(t, "compare base.jsonl slow.jsonl -o json")
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 4 || *rows[0].Ratio < 1.19 {
		t.Errorf("%v: %s", err, o.out)
	}
}

// TestRunsByLabel: a label names the latest run that has it, unless the word is a path or an id.
func TestRunsByLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, hidden := range []string{"5", "6", "7"} {
		label := "first"
		if hidden == "7" {
			label = "then"
		}
		rnnbench(t, "sweep -q -B 1 -T 2 --impl naive,cudnnstyle -H "+hidden+quickly+" --label "+label).want(t, exit.Done, nil, nil)
	}
	rnnbench(t, "show first").want(t, exit.Done, []string{"H=6"}, nil)
	if o := rnnbench(t, "__complete show fi"); strings.Count(o.out, "first\n") != 1 {
		t.Errorf("labels are not completed: %s", o.out)
	}
	rnnbench(t, "show then").want(t, exit.Done, []string{"H=7"}, nil)
	rnnbench(t, "compare first then").want(t, exit.Changed, nil, []string{"first and then: nothing overlaps"})
	rnnbench(t, "compare a=first,then b=first").want(t, exit.Done, []string{"b against a", "GONE"}, nil)
	rnnbench(t, "sweep --resume first").want(t, exit.Done, []string{"H=6"}, nil)
	rnnbench(t, "show nobody").want(t, exit.Error, nil, []string{"nothing to read at nobody", "hint: runs in out are named by id or label"})
	rnnbench(t, "sweep -q -B 1 -T 2 --impl naive -H 9 --out first"+quickly).want(t, exit.Done, nil, nil)
	rnnbench(t, "show first").want(t, exit.Done, []string{"H=9"}, nil)
	rnnbench(t, "merge then first").want(t, exit.Usage, nil, []string{"is no shard: its plan was not divided", "hint: to put whole runs together, name them all"})
}

// TestLabelsNameRuns: every command that takes runs takes labels with characters that mean something
// elsewhere.
func TestLabelsNameRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	labels := []string{"a=b", "a/b", "a,b", "a b"}
	for _, label := range labels {
		rnnbenchWith(t.Context(), "", append(strings.Fields(tiny+" -q"), "--label", label)...).want(t, exit.Done, nil, nil)
	}
	for _, label := range labels {
		for _, args := range [][]string{
			{"show", label, "-o", "csv"}, {"show", "mine=" + label, "-o", "csv"}, {"compare", label, label}, {"compare", "old=a b", "old=" + label, "new=" + label},
			{"plot", label, "-f", "p.svg"}, {"report", label, "-f", "r.html"}, {"sweep", "--resume", label},
		} {
			if o := rnnbenchWith(t.Context(), "", args...); o.code != exit.Done {
				t.Errorf("%q: exit code %d: %s", args, o.code, o.errors)
			}
		}
		rnnbenchWith(t.Context(), "", "merge", label).want(t, exit.Usage, nil, []string{"is no shard"})
	}
	rnnbench(t, tiny+" --label=-x").want(t, exit.Usage, nil, []string{`--label: "-x" would be read as a flag`})
}
