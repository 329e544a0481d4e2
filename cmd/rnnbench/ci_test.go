package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// ciSweep is a sweep that takes hardly any time.
const ciSweep = "-- sweep -H 4,8 -B 1 -T 2 --impl naive --rounds 1 --max-rounds 1 --warmup 0s --min-time 0s --no-verify"

// ciBuilt builds the repository of slowdown.
var ciBuilt = []string{"--build", "sh build.sh", "--built", "made"}

// ci runs rnnbench ci in the repository of slowdown.
func ci(t *testing.T, line string) outcomeOf {
	t.Helper()
	return rnnbenchWith(t.Context(), "", slices.Concat([]string{"ci"}, ciBuilt, strings.Fields(line+" "+ciSweep))...)
}

// TestCI finds that HEAD takes half as long again, and writes all files. It is interrupted once.
func TestCI(t *testing.T) {
	commits := slowdown(t)
	const line = "--base HEAD~7 --max-runs 4 --fail-on slower,broken -o ci"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &trigger{word: "head: run 1", f: cancel}
	args := slices.Concat([]string{"ci"}, ciBuilt, strings.Fields(line+" "+ciSweep))
	if code := run(ctx, args, strings.NewReader(""), &strings.Builder{}, stderr); code != exit.Interrupted || !strings.Contains(stderr.String(), "the same command goes on from there") {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	before, err := filepath.Glob("ci/*/2*/records.jsonl")
	if err != nil || len(before) == 0 {
		t.Fatal(before, err)
	}
	o := ci(t, line)
	o.want(t, exit.Changed, []string{"SLOWER", "this machine shows changes of "}, []string{"going on with ci", "head: run 4", "--fail-on: 2 SLOWER"})
	after, err := filepath.Glob("ci/*/2*/records.jsonl")
	if err != nil || len(after) < 8 || len(after) > 9 { // one may be of the interrupted turn
		t.Errorf("%d runs: %v", len(after), err)
	}
	for _, at := range before {
		if !slices.Contains(after, at) {
			t.Errorf("the finished run %s is lost", at)
		}
	}
	summary := written(t, "summary.md")
	for _, word := range []string{"### rnnbench: 2 SLOWER\n", "head HEAD (" + commits[7] + ") against base HEAD~7 (" + commits[0] + ")", "| SLOWER", "n 4 runs of each program, which took "} {
		if !strings.Contains(summary, word) {
			t.Errorf("the summary lacks %q:\n%s", word, summary)
		}
	}
	var rows []struct{ Verdict string }
	if err := json.Unmarshal([]byte(written(t, "comparison.json")), &rows); err != nil || len(rows) != 2 || rows[0].Verdict != "SLOWER" {
		t.Errorf("%v: %+v", err, rows)
	}
	var tests struct {
		Suites []struct {
			Failures int `xml:"failures,attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(written(t, "junit.xml")), &tests); err != nil || tests.Suites[0].Failures != 2 {
		t.Errorf("%v: %+v", err, tests)
	}
	if text := written(t, "benchmarks.txt"); !strings.Contains(text, "run: base\n") || !strings.Contains(text, "run: head\n") {
		t.Error(text)
	}
	if !strings.Contains(written(t, "comparison.md"), "| SLOWER") {
		t.Error("comparison.md lists no verdict")
	}
	if left, _ := filepath.Glob("ci/tree"); left != nil {
		t.Error("the working tree is left")
	}
	// All runs are there, so the same command answers at once; the folder takes no other comparison.
	ci(t, line).want(t, exit.Changed, []string{"SLOWER"}, []string{"going on with ci"})
	summary = written(t, "summary.md")
	ci(t, "--base HEAD~6 -o ci").want(t, exit.Usage, nil, []string{"ci holds runs of something else"})
	if again := written(t, "summary.md"); again != summary {
		t.Errorf("another comparison changed the summary: %s", again)
	}
}

// written is a file of the folder ci.
func written(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("ci", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCIFaults: what cannot be compared is said in one sentence, also in the summary of a job that began.
func TestCIFaults(t *testing.T) {
	slowdown(t)
	const small = " --max-runs 1"
	for _, c := range []struct {
		line    string
		code    int
		message string
	}{
		{"", exit.Usage, "ci needs --base"},
		{"--base nosuch", exit.Usage, `--base: "nosuch" is not a commit`},
		{"--base ./nosuch", exit.Usage, "--base: no program is at ./nosuch"},
		{"--base HEAD --budget 0s", exit.Usage, "must be more than 0"},
		{"--base HEAD~7 --head HEAD~5", exit.Error, "head HEAD~5 ("},
		{"--base HEAD~7 --see x", exit.Usage, "--see: "},
		{"--base HEAD~7 --head HEAD~6 -o one", exit.Done, "warning: the budget has time for 1 run of each program"},
	} {
		if o := ci(t, c.line+small); o.code != c.code || !strings.Contains(o.errors, c.message) {
			t.Errorf("%s: exit code %d, %s", c.line, o.code, o.errors)
		}
	}
	summary, err := os.ReadFile("rnnbench-ci/summary.md")
	if err != nil || !strings.Contains(string(summary), "nothing was compared") || !strings.Contains(string(summary), "commit 2 is broken") {
		t.Errorf("%v: %s", err, summary)
	}
	if err := os.WriteFile("build.sh", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	ci(t, "--base HEAD~7").want(t, exit.Usage, nil, []string{"--head: changed files of the working tree are not in HEAD"})
	repository, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	ci(t, "--base HEAD~7").want(t, exit.Usage, nil, []string{"is not in a git repository"})
	if out, err := exec.Command("git", "clone", "-q", "--depth=1", "file://"+repository, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ci(t, "--base HEAD~7").want(t, exit.Usage, nil, []string{"--base: HEAD~7 is not in this shallow repository"})
}

// TestCIPrograms compares programs that are there. Another program at the same path is another comparison.
func TestCIPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	program := func(name, takes string) {
		t.Helper()
		text := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", takesVariable, takes, os.Args[0])
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program("old", "3ms")
	program("new", "2ms")
	const line = "--base old --head ./new --max-runs 3 --fail-on slower -o ci"
	ci(t, line).want(t, exit.Done, []string{"FASTER"}, nil)
	if s := written(t, "summary.md"); !strings.Contains(s, "### rnnbench: 2 FASTER\n") || !strings.Contains(s, "head new against base old") {
		t.Error(s)
	}
	program("new", "4ms")
	ci(t, line).want(t, exit.Usage, nil, []string{"holds runs of something else"})
}
