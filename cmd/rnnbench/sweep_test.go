package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

func TestDryRun(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "sweep --dry-run --impl naive,cudnnstyle -H 64,256,512 -B 1 -T 10 --max-memory 5MiB")
	o.want(t, exit.Done, []string{"6 records = 3 hidden × 2 techniques; 4 of them skipped (memory); about", "memory: at most", "5.00 MiB available"}, nil)
	if withoutBusy(o.errors) != "" {
		t.Errorf("stderr: %s", o.errors)
	}
	var rows []struct {
		Status string
		Reason *string
		Memory *int64 `json:"mem_bytes"`
	}
	o = rnnbench(t, "sweep --dry-run --impl naive,cudnnstyle -o json -H 64,256,512 -B 1 -T 10 --max-memory 5MiB")
	if err := json.Unmarshal([]byte(o.out), &rows); err != nil || len(rows) != 6 || rows[0].Status != "planned" || rows[5].Status != "skipped" || *rows[5].Memory < 5<<20 {
		t.Errorf("%v: %s", err, o.out)
	}
	if exists(config.Dir) {
		t.Error("a dry run made a results folder")
	}
	rnnbench(t, "reproduce appleyard-table1 --quick --dry-run").want(t, exit.Done, []string{"7 records"}, nil)
}

// TestHuge: sizes far beyond any machine are declined immediately, with numbers, before anything
// is laid out step by step.
func TestHuge(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"sweep -H 8 -B 1 -T 1000000000 --max-memory 1GiB --impl naive,cudnnstyle,scc",
		"sweep -H 8 -B 1000000000 -T 2 --max-memory 1GiB",
		"sweep -H 60000 -B 1 -T 2 --max-memory 1GiB --layers 1000 --impl naive,persistent",
	} {
		rnnbench(t, line).want(t, exit.Error, []string{"skipped"}, []string{"no point succeeded"})
	}
	rnnbench(t, "show --out out").want(t, exit.Done, []string{"needs ", "1.00 GiB may be used"}, nil)
}

func TestPrintConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "sweep --print-config -H 64:256:x2 --effort quick --where hidden<=128 --no-verify")
	o.want(t, exit.Done, []string{"hidden = '64:256:x2'", "verify = false", "dir = 'out'"}, nil)
	if err := os.WriteFile("c.toml", []byte(o.out), 0o666); err != nil {
		t.Fatal(err)
	}
	if again := rnnbench(t, "sweep --print-config --config c.toml"); again.out != o.out {
		t.Errorf("a printed configuration reads back otherwise:\n%s%s", again.out, again.errors)
	}
	t.Setenv("RNNBENCH_RESULTS", "elsewhere")
	rnnbench(t, "sweep --print-config").want(t, exit.Done, []string{"dir = 'elsewhere'"}, nil)
	rnnbench(t, "sweep --print-config --out here").want(t, exit.Done, []string{"dir = 'here'"}, nil)
	t.Setenv("RNNBENCH_ROUND", "3")
	rnnbench(t, "sweep --print-config").want(t, exit.Done, nil, []string{"warning:", "did you mean RNNBENCH_ROUNDS?"})
}

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, tiny+" --label first")
	o.want(t, exit.Done, []string{"naive", "cudnnstyle", "over naive"}, []string{
		"4 records = 2 hidden × 2 techniques; about", "[1/4] lstm forward H=8 B=2 T=3 L=1 naive", "[4/4]", "4 records in out/", "4 ok"})
	if strings.ContainsAny(o.out+o.errors, "\r\x1b") {
		t.Error("a stream that is no terminal got control characters")
	}
	m, recs, _, err := record.Read(config.Dir)
	if err != nil || len(recs) != 4 || m.Label != "first" || m.Exit == nil || *m.Exit != exit.Done || m.Finished == nil || m.Scope.Records != 4 || m.Counts[record.OK] != 4 {
		t.Fatalf("%v: %d records, manifest %+v", err, len(recs), m)
	}
	if d := m.Devices[0]; d.Peak == nil || *d.Peak <= 0 || d.Facts["simd"] == "" || d.Key != recs[0].Device {
		t.Errorf("device %+v", d)
	}
	if !slices.Contains(m.Argv, "--label") {
		t.Errorf("argv %q", m.Argv)
	}

	o = rnnbench(t, tinyGrid+" -q -o csv --impl naive,plain=cudnnstyle:fused=0")
	o.want(t, exit.Done, []string{"cell,pass,hidden", ",plain,cudnnstyle,"}, nil)
	if o.errors != "" {
		t.Errorf("-q printed %q", o.errors)
	}

	show := func(line string, out ...string) string {
		t.Helper()
		o := rnnbench(t, line)
		o.want(t, exit.Done, out, nil)
		return o.out
	}
	show("show", "plain")
	show("show "+m.Run, "cudnnstyle")
	rnnbench(t, "show --baseline plane").want(t, exit.Usage, nil, []string{`--baseline: unknown technique "plane": did you mean plain?`})
	rnnbench(t, "report --baseline nothere -f r.html").want(t, exit.Usage, nil, []string{`--baseline: unknown technique "nothere": choose among naive, plain`})
	show("show --pivot hidden,impl --metric speedup", "speed-up over naive")
	show("show --baseline plain", "over plain")
	if o := rnnbench(t, "plot --where impl=zzzzzz -f x.svg"); strings.Count(o.errors, "naive") != 1 {
		t.Errorf("techniques are listed twice: %s", o.errors)
	}
	show("show --pivot hidden,impl -o markdown", "|")
	show("show -o benchfmt", "BenchmarkRNN/impl=naive/")
	show("show --where hidden>8", "H=16")
	if s := show("show -o csv --where impl=plain"); strings.Count(s, "\n") != 3 || strings.Contains(s, ",naive,naive") {
		t.Errorf("--where impl=plain: %s", s)
	}
	o = rnnbenchWith(t.Context(), "", "show", "-o", "csv", "--filter", "/impl:(naive OR other) -/hidden:8")
	o.want(t, exit.Done, nil, nil)
	if strings.Count(o.out, "\n") != 2 {
		t.Errorf("--filter: %s", o.out)
	}
	rnnbench(t, "show --where hidden>99").want(t, exit.Error, nil, []string{"select none of 4 records"})
	jsonl := show("show -o jsonl")
	for line := range strings.Lines(jsonl) {
		var r record.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Schema != record.Schema {
			t.Errorf("%v: %s", err, line)
		}
	}
	rnnbenchWith(t.Context(), jsonl, "show", "-").want(t, exit.Done, []string{"plain"}, nil)
	var rows []map[string]any
	if err := json.Unmarshal([]byte(show("show -o json")), &rows); err != nil || len(rows) != 4 {
		t.Errorf("-o json: %v", err)
	}
	// Two runs of the same points do not hide each other.
	show("show a=out/"+m.Run+" out", "a: naive", "20")
	rnnbench(t, "show --pivot hidden,hiden").want(t, exit.Usage, nil, []string{"hiden"})

	o = rnnbench(t, "plot -f a.svg -f b.png --x hidden")
	o.want(t, exit.Done, nil, []string{"wrote a.svg", "wrote b.png"})
	svg, err := os.ReadFile("a.svg")
	if err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("a.svg: %v", err)
	}
	show("plot", "<svg")
	for _, kind := range []string{"speedup", "heatmap", "winner", "roofline"} {
		show("plot -f - --kind "+kind, "<svg")
	}
	rnnbench(t, "plot -f nowhere/a.svg").want(t, exit.Error, nil, []string{"nowhere"})
}

// TestLabel: requested knobs show wherever a technique is named.
func TestLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = tinyGrid + " --impl naive,cudnnstyle:fused=0"
	rnnbench(t, line).want(t, exit.Done, []string{"cudnnstyle:fused=0"}, []string{"[4/4]"})
	rnnbench(t, "show -o benchfmt").want(t, exit.Done, []string{"BenchmarkRNN/impl=cudnnstyle:fused_0/"}, nil)
	rnnbench(t, "show --where impl=cudnnstyle --baseline cudnnstyle").want(t, exit.Done, []string{"cudnnstyle:fused=0", "over cudnnstyle"}, nil)
	rnnbench(t, "plot").want(t, exit.Done, []string{"cudnnstyle:fused=0"}, nil)
	if o := rnnbench(t, "show -o csv out b=out --where impl=cudnnstyle:fused=0"); strings.Count(o.out, "\n") != 5 || strings.Contains(o.out, "naive") {
		t.Errorf("--where impl=cudnnstyle:fused=0: %s%s", o.out, o.errors)
	}

	// A run from before labels had knobs can be resumed and compared.
	rnnbench(t, line+" --out new").want(t, exit.Done, nil, nil)
	m, _, _, err := record.Read(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(config.Dir, m.Run, "records.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"label":"cudnnstyle:fused=0"`), []byte(`"label":"cudnnstyle"`))
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "sweep --resume out").want(t, exit.Done, nil, []string{"4 records in out/"})
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, text) {
		t.Errorf("%v: a record with its technique's bare name was measured again", err)
	}
	o := rnnbench(t, "compare a=out b=new --min-effect 900%")
	o.want(t, exit.Done, []string{"b against a: 4 "}, nil)
	if strings.Contains(o.out, "NEW") || strings.Contains(o.out, "GONE") {
		t.Errorf("records with and without knobs in the label are not compared:\n%s", o.out)
	}
}

// TestProfile runs each technique once, unchecked.
func TestProfile(t *testing.T) {
	t.Chdir(t.TempDir())
	profile := func(dir string) ([]record.Record, error) { // it is not the latest run
		runs, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(runs) != 1 {
			return nil, fmt.Errorf("%v: %w", runs, err)
		}
		_, recs, _, err := record.Read(runs[0])
		return recs, err
	}
	rnnbench(t, "sweep -H 8,16 -B 2 -T 3 --impl naive,cudnnstyle --profile").want(t, exit.Done, nil, []string{"4 ok"})
	recs, err := profile(config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if r.Stats.N != 1 || r.Samples.Iters[0] != 1 || r.Verify != nil || r.Rate.Peak != nil {
			t.Errorf("%s: %+v, verified %v, peak %v", r.Key(), r.Samples, r.Verify, r.Rate.Peak)
		}
	}
	rnnbench(t, "sweep -H 8 -B 2 -T 3 --impl naive --profile --rounds 3 --max-rounds 3 --out more").want(t, exit.Done, nil, []string{"1 ok"})
	if recs, err := profile("more"); err != nil || recs[0].Stats.N != 3 {
		t.Errorf("%v: %d rounds, want the 3 asked for", err, recs[0].Stats.N)
	}
}

func TestBudget(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --budget 1ns").want(t, exit.Done, nil, []string{"budget of 1ns exhausted", "2 of 4 records missing", "resumes the run"})
}

// TestReasonsOnce: if nothing succeeds, the hint does not repeat the table's reasons for skipped points.
func TestReasonsOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	const why = "lstm is not a linear recurrence"
	for _, command := range []string{"sweep" + quickly, "verify", "train --data adding --iterations 2"} {
		line := command + " --cell lstm -H 8 -B 2 -T 12 --impl scan"
		o := rnnbench(t, line)
		o.want(t, exit.Error, []string{why}, []string{"no point succeeded: 1 skipped"})
		if strings.Contains(o.errors, "hint: ") {
			t.Errorf("%s: the hint repeats the table: %s", line, o.errors)
		}
	}
	rnnbench(t, "sweep --cell lstm -H 8 -B 2 -T 12 --impl scan -o csv"+quickly).want(t, exit.Error, nil, []string{"hint: scan: " + why})
}
