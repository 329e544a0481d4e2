package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/internal/exit"
)

// beProgram is an environment variable that makes the test binary act as rnnbench, whatever its
// arguments.
const beProgram = "BE_RNNBENCH"

// abSweep is a sweep that takes hardly any time.
const abSweep = " -- sweep -H 4,8 -B 1 -T 2 --impl naive,cudnnstyle --rounds 1 --max-rounds 1 --warmup 0s --min-time 0s --no-verify"

// TestTurns compares the program with itself and checks the saved runs.
func TestTurns(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	o := rnnbench(t, "compare --ab old="+os.Args[0]+" "+os.Args[0]+" --runs 3 --min-effect 900% --out runs"+abSweep)
	o.want(t, exit.Done, []string{"new against old: ", "Student's t-test"}, []string{"run 6 of 6: ", ", 4 records; took ", "runs in runs"})
	_, again, _ := strings.Cut(o.errors, "; rnnbench ")
	again, _, _ = strings.Cut(again, " compares them again")
	if o := rnnbench(t, again); o.code != exit.Done || !strings.Contains(o.out, "new against old: ") {
		t.Errorf("%s: exit code %d: %s", again, o.code, o.errors)
	}
	folders, err := filepath.Glob(filepath.Join("runs", "ab-*"))
	if err != nil || len(folders) != 1 {
		t.Fatal(folders, err)
	}
	rnnbench(t, "show "+folders[0]).want(t, exit.Error, nil, []string{" has several folders of runs: name a run, or one of ", filepath.Join(folders[0], "old")})
	for _, side := range []string{"old", "new"} {
		runs, err := filepath.Glob(filepath.Join("runs", "ab-*", side, "2*", "records.jsonl"))
		if err != nil || len(runs) != 3 {
			t.Errorf("%v: %d runs of %s", err, len(runs), side)
		}
	}
}

// TestTurnsFail: one side fails, and the command is interrupted.
func TestTurnsFail(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	self := os.Args[0]
	if err := os.WriteFile("text", []byte("no program"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{self + " nosuch" + abSweep, exit.Usage, "cannot run program new"},
		{self + " ./text" + abSweep, exit.Error, "new failed in run 1: "},
		{self + " " + self + " -- sweep --nosuch", exit.Usage, "failed in run 1: sweep has no flag --nosuch"},
		{self + " -- sweep", exit.Usage, "takes two programs and, after --, the sweep"},
		{self + " " + self + " -- tune", exit.Usage, "takes two programs and, after --, the sweep"},
		{self + " " + self + " --runs 2" + abSweep, exit.Usage, "--runs 2 is too few"},
		{"a=" + self + " a=" + self + abSweep, exit.Usage, "labels must differ and be valid folder names"},
		{self + " " + self + abSweep + " --out x", exit.Usage, "does not take --out"},
		{self + " " + self + abSweep + " --profile", exit.Usage, "does not take --profile"},
	} {
		rnnbench(t, "compare --ab "+c.line).want(t, c.code, nil, []string{c.want})
	}
	for _, line := range []string{"compare a b --runs 5", "compare a b" + abSweep} {
		rnnbench(t, line).want(t, exit.Usage, nil, []string{"need --ab"})
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &trigger{word: "run 2 of 14", f: cancel}
	code := run(ctx, strings.Fields("compare --ab "+self+" "+self+" --out kept"+abSweep), strings.NewReader(""), &strings.Builder{}, stderr)
	said := stderr.String()
	if code != exit.Interrupted || !strings.Contains(said, "rnnbench: interrupted\nhint: the 2 finished runs are saved: rnnbench compare base=kept/ab-") {
		t.Errorf("exit code %d: %s", code, said)
	}
}
