package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/config"
)

func TestReproduce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := &trigger{word: "[7/7]", f: cancel} // whether it is seen does not matter: all is measured
	code := run(ctx, strings.Fields("reproduce appleyard-table1 --quick --no-verify"+strings.Replace(quickly, "2", "1", 2)), strings.NewReader(""), &stdout, stderr)
	if code != exit.Done && code != exit.Interrupted {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	m, recs, _, err := record.Read(config.Dir)
	if err != nil || len(recs) != 7 || m.Label != "appleyard-table1" {
		t.Fatalf("%v: %d records", err, len(recs))
	}
	report, err := os.ReadFile(filepath.Join(config.Dir, m.Run, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	figure := regexp.MustCompile(`\]\((.*\.svg)\)`).FindSubmatch(report)
	if figure == nil || !exists(filepath.Join(config.Dir, m.Run, string(figure[1]))) {
		t.Errorf("the report shows no figure:\n%s", report)
	}
	for _, from := range []string{"out", filepath.Join("out", "latest"), "again=out"} {
		rnnbench(t, "reproduce appleyard-table1 --from "+from).want(t, exit.Done, []string{"Paper"}, []string{".svg", "report.md"})
	}
	rnnbench(t, tiny+" --out swept").want(t, exit.Done, nil, nil)
	o := rnnbench(t, "reproduce appleyard-table1 --from swept")
	o.want(t, exit.Usage, nil, []string{"none of the 4 records in swept belongs to appleyard-table1", "hint: "})
	if reports, err := filepath.Glob("swept/*/report.md"); err != nil || len(reports) > 0 || o.out != "" {
		t.Errorf("a report on nothing: %v %v %s", reports, err, o.out)
	}
	// A run of another experiment keeps its report.
	for _, other := range []string{"appleyard-fig1", "diamos-memory", "hwang-graph"} {
		rnnbench(t, "reproduce "+other+" --from out").want(t, exit.Usage, nil, []string{"the run in out is from experiment appleyard-table1, not " + other, "hint: "})
	}
	if now, err := os.ReadFile(filepath.Join(config.Dir, m.Run, "report.md")); err != nil || !bytes.HasPrefix(now, []byte("# The optimization ladder")) {
		t.Errorf("%v: the report of appleyard-table1 is now\n%.200s", err, now)
	}
	rnnbench(t, "reproduce hwang-graph --from swept").want(t, exit.Usage, nil, []string{"none of the 4 records in swept belongs to hwang-graph"})

	// Points for which there was no time are measured later, into the same folder.
	line := "reproduce diamos-barrier --quick --no-verify --out sittings" + strings.Replace(quickly, "2", "1", 2)
	rnnbench(t, line+" --budget 1ns").want(t, exit.Done, nil, []string{"budget of 1ns exhausted", "hint: rnnbench reproduce diamos-barrier --resume sittings"})
	first, some, _, err := record.Read("sittings")
	if err != nil || len(some) == 0 || len(some) == first.Scope.Records {
		t.Fatalf("%v: %d records", err, len(some))
	}
	rnnbench(t, "reproduce appleyard-table1 --resume sittings").want(t, exit.Usage, nil, []string{"its plan ("})
	rnnbench(t, "reproduce diamos-barrier --resume sittings --budget 0s").want(t, exit.Done, nil, []string{"report.md"})
	again, all, _, err := record.Read("sittings")
	if err != nil || again.Run != first.Run || len(all) != first.Scope.Records {
		t.Fatalf("%v: %d of %d records in run %s after %s", err, len(all), first.Scope.Records, again.Run, first.Run)
	}

	// An experiment that measures nothing is a run as well.
	const figure2 = "hwang-graph-lstm-c-fig2.svg"
	rnnbench(t, "reproduce hwang-graph --out counted").want(t, exit.Done, []string{"peepholes"}, []string{figure2})
	rnnbench(t, "reproduce hwang-graph --out dry --dry-run").want(t, exit.Done, nil, []string{"nothing to measure"})
	rnnbench(t, "reproduce hwang-graph --from counted").want(t, exit.Done, []string{"peepholes"}, []string{figure2})
}

// TestReproduceShards: the shards of an experiment merge into one run. Its report covers all
// points and hides host names, and the run can be resumed.
func TestReproduceShards(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; TestShards of experiments divides every plan")
	}
	t.Chdir(t.TempDir())
	brief(t)
	const line = "reproduce diamos-barrier --quick --threads 1 --no-hostname"
	for i := 1; i <= 2; i++ {
		rnnbench(t, fmt.Sprintf("%s --shard %d/2", line, i)).want(t, exit.Done, nil, []string{"report.md"})
	}
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged into out", "15 records", "hint: rnnbench reproduce diamos-barrier --from out"})
	m, recs, _, err := record.Read("out")
	if err != nil || len(recs) != 15 || m.Scope.Records != 15 || len(m.Merged.Nodes) != 1 || m.Environment.Host.Name != "" {
		t.Fatalf("%d of %d records, nodes %v of host %q, %v", len(recs), m.Scope.Records, m.Merged.Nodes, m.Environment.Host.Name, err)
	}
	if slices.Contains(m.Argv, "--shard") || recs[0].Node.Name == "" || !strings.HasPrefix(recs[0].Node.Name, "node-") {
		t.Errorf("arguments %q, records of node %v", m.Argv, recs[0].Node)
	}
	rnnbench(t, "reproduce diamos-barrier --from out").want(t, exit.Done, []string{"The plan was divided into 2 shards."}, []string{"report.md"})
	rnnbench(t, "reproduce diamos-barrier --resume out/"+m.Run).want(t, exit.Done, nil, []string{"report.md"})
}

// TestReproduceAgain: a report says how far a second run differs from the first.
func TestReproduceAgain(t *testing.T) {
	const ladder, passes = "../../record/testdata/runs/appleyard-table1", "../../record/testdata/runs/appleyard-fig2"
	dir := t.TempDir()
	for name, run := range map[string]string{"one": ladder, "two": ladder, "other": passes} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(run)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	const said = "Measured twice, 2026-"
	rnnbench(t, "reproduce appleyard-table1 --from one").want(t, exit.Done, nil, nil)
	if text, err := os.ReadFile("one/report.md"); err != nil || strings.Contains(string(text), said) {
		t.Errorf("a report of one run says how far two are apart: %v", err)
	}
	rnnbench(t, "reproduce appleyard-table1 --from one --again two").want(t, exit.Done, []string{said, "the two runs differ by 0.0 % (median of "}, nil)
	if text, err := os.ReadFile("one/report.md"); err != nil || !strings.Contains(string(text), said) {
		t.Errorf("the report does not say how far two runs are apart: %v", err)
	}
	const versions = "They are of two versions of rnnbench."
	if text, err := os.ReadFile("one/report.md"); err != nil || strings.Contains(string(text), versions) {
		t.Errorf("two runs of one version are of two: %v", err)
	}
	text, err := os.ReadFile("two/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	text = regexp.MustCompile(`"vcs_revision": *"[^"]*"`).ReplaceAll(text, []byte(`"vcs_revision": "0123"`))
	if err := os.WriteFile("two/manifest.json", text, 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "reproduce appleyard-table1 --from one --again two").want(t, exit.Done, []string{versions}, nil)
	rnnbench(t, "reproduce appleyard-table1 --again two").want(t, exit.Usage, nil, []string{"--again needs a first run to compare with: add --from RUN"})
	rnnbench(t, "reproduce appleyard-table1 --from one --again none").want(t, exit.Error, nil, []string{"nothing to read at none"})
	rnnbench(t, "reproduce appleyard-table1 --from one --again other").want(t, exit.Usage, nil, []string{"is from experiment appleyard-fig2, not appleyard-table1"})
}

// TestReproduceNeedsGPU: a processor declines an experiment that needs a GPU.
func TestReproduceNeedsGPU(t *testing.T) {
	t.Chdir(t.TempDir())
	o := rnnbench(t, "reproduce cudnn-fp32")
	o.want(t, exit.NoDevice, nil, []string{"cudnn-fp32 compares with the vendor library", "--device cuda:0"})
	if _, err := os.Stat("out"); err == nil {
		t.Error("a run was begun")
	}
}
