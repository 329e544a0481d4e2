package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// manyRuns writes so many runs below dir, which differ in their commits and times. slow gives the ratio by
// which a record of a run takes longer.
func manyRuns(t *testing.T, dir string, runs int, slow func(run int, r *record.Record) float64) {
	t.Helper()
	rnnbench(t, "sweep -H 8,16,24,32 -B 2 -T 3 --impl naive,cudnnstyle --out one"+quickly).want(t, exit.Done, nil, nil)
	s, _, err := record.ReadAll([]string{"one"})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for run := range runs {
		m := s[0].Manifest
		m.Environment.Tool.Revision = fmt.Sprintf("%040x", (run+1)<<24)
		m.Environment.Tool.Time = fmt.Sprintf("2026-11-%02dT10:00:00Z", 1+run)
		m.Environment.Tool.Dirty = new(bool)
		at := filepath.Join(dir, "nested", fmt.Sprintf("run-%02d", run))
		text, err := json.Marshal(m)
		if err == nil {
			err = os.MkdirAll(at, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(at, "manifest.json"), text, 0o644)
		}
		if err == nil {
			err = writeTimes(at, s[0].Records, func(r *record.Record) float64 {
				return 1e-3 * slow(run, r) * (1 + 0.005*rng.NormFloat64())
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// writeTimes writes records to the run's folder at, with other times in seconds.
func writeTimes(at string, records []record.Record, seconds func(r *record.Record) float64) error {
	var lines bytes.Buffer
	out := json.NewEncoder(&lines)
	for _, r := range records {
		s := seconds(&r)
		r.Samples = &record.Samples{Iters: []int{1, 1, 1}, Wall: []float64{s, 1.001 * s, 1.002 * s}}
		st, _ := record.Summarize(r.Samples.Wall, 0)
		r.Stats, r.Rate = &st, nil
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(at, "records.jsonl"), lines.Bytes(), 0o644)
}

func TestHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	manyRuns(t, "nightly", 12, func(run int, r *record.Record) float64 {
		if run >= 6 && r.Point.Hidden == 24 && r.Impl.Name == "naive" {
			return 1.2
		}
		return 1
	})
	rnnbench(t, "history nightly").want(t, exit.Done, []string{"0000000000", "SLOWER", "12 runs of", "8 lines: 1 with a step, 7 STEADY, 0 CANNOT TELL"}, nil)
	rnnbench(t, "history nightly --where hidden!=24").want(t, exit.Done, []string{"No step was found", "With fewer than 8 points"}, nil)
	rnnbench(t, "history nightly --all --by date -o csv").want(t, exit.Done, []string{"STEADY"}, nil)
	rnnbench(t, "history nightly --fail-on faster").want(t, exit.Done, nil, nil)
	rnnbench(t, "history nightly -o json -f steps.svg --fail-on slower,faster").want(t, exit.Changed, []string{`"since": "0000000000"`, `"ratio": 1.`}, []string{"--fail-on: 1 SLOWER", "wrote steps.svg"})
	if text, err := os.ReadFile("steps.svg"); err != nil || !strings.Contains(string(text), "A step begins with run 7") {
		t.Errorf("the figure does not tell the step: %v", err)
	}
	sides := "compare old=RUN0,RUN1,RUN2,RUN3 new=RUN6,RUN7,RUN8,RUN9"
	sides = strings.ReplaceAll(sides, "RUN", "nightly/nested/run-0")
	rnnbench(t, sides+" -o junit --fail-on slower").want(t, exit.Changed, []string{`failures="1"`, `<failure message="SLOWER +2`}, nil)
	rnnbench(t, sides+" -o benchfmt").want(t, exit.Done, []string{"\nrun: old\n", "\nrun: new\n", "BenchmarkRNN/impl=naive/"}, nil)
	for _, c := range []struct{ command, message string }{
		{"history nowhere", "cannot search nowhere"},
		{"history nightly/nested/run-03", "no device has more than one"},
		{"history nightly --fail-on late", `unknown verdict "late"`},
		{"history nightly --alpha 3x", `--alpha: "3x"`},
		{"history nightly -f steps.doc", "unknown format"},
		{"history nightly --git HEAD", "exclude each other"},
		{"history nightly --where hidden=7", "select none"},
	} {
		if o := rnnbench(t, c.command); o.code == exit.Done || !strings.Contains(o.errors, c.message) {
			t.Errorf("%s: exit code %d, %s", c.command, o.code, o.errors)
		}
	}
	// One run is broken, one is a shard's: the others are told.
	if err := os.WriteFile("nightly/nested/run-03/records.jsonl", []byte(`{"schema": "other"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "history nightly").want(t, exit.Done, []string{"11 runs of"}, []string{"run-03 is left out"})
}

// TestHistoryOfBranch reads runs from a branch of a repository.
func TestHistoryOfBranch(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "")
		os.Unsetenv(name)
	}
	rnnbench(t, "history --git HEAD").want(t, exit.Error, nil, []string{"is not in a git repository"})
	manyRuns(t, "runs", 9, func(int, *record.Record) float64 { return 1 })
	for _, args := range []string{"init -q -b runs .", "add runs", "-c user.name=a -c user.email=a@b commit -q -m runs"} {
		if out, err := exec.Command("git", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.RemoveAll("runs"); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "history --git runs:runs/").want(t, exit.Done, []string{"9 runs of", "No step was found"}, nil)
	rnnbench(t, "history --git runs").want(t, exit.Done, []string{"9 runs of"}, nil)
	rnnbench(t, "history --git other").want(t, exit.Error, nil, []string{`"other" is not a commit`})
	rnnbench(t, "history --git runs:none").want(t, exit.Error, nil, []string{"runs has no folder none"})
	rnnbench(t, "history --git=--help").want(t, exit.Error, nil, []string{"is not a revision"})
}
