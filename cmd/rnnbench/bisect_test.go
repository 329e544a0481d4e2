package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// takesVariable makes a program write that its runs took this time, give or take a few percent. So tests
// of what is slower do not depend on the machine.
const takesVariable = "RUNS_TAKE"

// runRetimed is run, which then writes its records again as if each run took that time.
func runRetimed(args []string, takes string) int {
	code := run(context.Background(), args, os.Stdin, os.Stdout, os.Stderr)
	if code != exit.Done {
		return code
	}
	each, err := time.ParseDuration(takes)
	if err != nil {
		panic(err)
	}
	s, _, err := record.ReadAll([]string{args[slices.Index(args, "--out")+1]})
	if err != nil {
		panic(err)
	}
	rng := rand.New(rand.NewPCG(1, uint64(s[0].Manifest.Started.UnixNano())))
	err = writeTimes(s[0].Dir, s[0].Records, func(*record.Record) float64 { return each.Seconds() * (1 + 0.02*rng.Float64()) })
	if err != nil {
		panic(err)
	}
	return code
}

// times are what the program of each commit takes for a run; "": it cannot be built.
var times = []string{"2ms", "2ms", "", "2ms", "3ms", "3ms", "", "3ms"}

// slowdown makes a repository with a commit for each of times, and enters it. It returns the commits' names.
func slowdown(t *testing.T) (commits []string) {
	t.Helper()
	for _, name := range []string{"git", "sh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not installed")
		}
	}
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "") // restored at the end
		os.Unsetenv(name)
	}
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %s", args, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", ".")
	for i, each := range times {
		build := fmt.Sprintf("printf '#!/bin/sh\\n%s=%s exec %s \"$@\"\\n' > made; chmod 755 made\n", takesVariable, each, os.Args[0])
		if each == "" {
			build = "echo commit " + fmt.Sprint(i) + " is broken >&2; exit 1\n"
		}
		if err := os.WriteFile("build.sh", []byte(build), 0o666); err != nil {
			t.Fatal(err)
		}
		git("add", "build.sh")
		git("commit", "-q", "--allow-empty", "-m", fmt.Sprintf("commit %d", i))
		commits = append(commits, git("rev-parse", "HEAD")[:10])
	}
	return commits
}

const bisected = "--built made --runs 3 --max-runs 5 -- sweep -H 4,8 -B 1 -T 2 --impl naive --rounds 1 --max-rounds 1 --warmup 0s --min-time 0s --no-verify"

// TestBisect finds the commit from which on each run takes half as long again. It is interrupted once.
func TestBisect(t *testing.T) {
	commits := slowdown(t)
	args := append([]string{"bisect", "HEAD~7", "HEAD", "--build", "sh build.sh"}, strings.Fields(bisected)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &trigger{word: "run 2 of 6", f: cancel}
	if code := run(ctx, args, strings.NewReader(""), &strings.Builder{}, stderr); code != exit.Interrupted || !strings.Contains(stderr.String(), "the same command goes on from there") {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	before := runsBelow(t)
	o := rnnbenchWith(t.Context(), "", args...)
	o.want(t, exit.Done, []string{"SLOWER", "slower since " + commits[4] + "  commit 4", "not slower:  " + commits[3]}, []string{"going on with out/bisect-"})
	after := runsBelow(t)
	for _, at := range before {
		if !slices.Contains(after, at) {
			t.Errorf("the finished run %s is lost", at)
		}
	}
	if left, _ := filepath.Glob("out/bisect-*/tree"); left != nil {
		t.Errorf("the working tree is left: %s", left)
	}
	// Everything is measured, so the same search answers at once.
	if o := rnnbenchWith(t.Context(), "", args...); o.code != exit.Done || strings.Contains(o.errors, "in turns: run") {
		t.Errorf("again: exit code %d, %s", o.code, o.errors)
	}
}

// runsBelow lists the finished runs below out.
func runsBelow(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("out/bisect-*/*/*/*/records.jsonl")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	return list
}

func TestBisectFaults(t *testing.T) {
	slowdown(t)
	build := "--build=sh build.sh"
	sweep := strings.Fields(bisected)
	dash := slices.Index(sweep, "--")
	for _, c := range []struct {
		args    []string
		code    int
		message string
	}{
		{[]string{"HEAD", "HEAD~3"}, exit.Usage, "HEAD is no ancestor of HEAD~3"},
		{[]string{"HEAD", "HEAD"}, exit.Usage, "are the same commit"},
		{[]string{"nosuch", "HEAD"}, exit.Usage, `"nosuch" is not a commit`},
		{[]string{"HEAD"}, exit.Usage, "takes a good and a bad commit"},
		{[]string{"HEAD~1", "HEAD"}, exit.Error, "it cannot be built"},
		{[]string{"HEAD~4", "HEAD~3"}, exit.Done, ""},
		{[]string{"HEAD~7", "HEAD~4", "--programs=sh,sh"}, exit.Usage, "takes a good and a bad commit, or --programs"},
		{[]string{"HEAD~7", "HEAD~6", "--min-effect=900%"}, exit.Changed, "cannot tell: after 5 runs no point is slower"},
		{[]string{"--programs=nosuch,other"}, exit.Usage, "cannot run program nosuch"},
		{[]string{"--programs=sh"}, exit.Usage, "two programs or more"},
		{[]string{"HEAD~1", "HEAD", "--max-runs=2"}, exit.Usage, "takes at least 3 runs"},
	} {
		o := rnnbenchWith(t.Context(), "", slices.Concat([]string{"bisect", build}, sweep[:dash], c.args, sweep[dash:])...)
		if o.code != c.code || !strings.Contains(o.errors, c.message) {
			t.Errorf("%s: exit code %d, %s", c.args, o.code, o.errors)
		}
	}
}

// TestBisectPrograms searches programs, whose names mean something elsewhere.
func TestBisectPrograms(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(beProgram, "1")
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	var names []string
	for i, each := range []string{"2ms", "2ms", "3ms"} {
		name := fmt.Sprintf("./a=%d b", i)
		text := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", takesVariable, each, os.Args[0])
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	args := slices.Concat([]string{"bisect", "--programs", strings.Join(names, ",")}, strings.Fields(bisected))
	rnnbenchWith(t.Context(), "", args...).want(t, exit.Done, []string{"slower since 3-a_2_b", "not slower:  2-a_1_b"}, nil)
}
