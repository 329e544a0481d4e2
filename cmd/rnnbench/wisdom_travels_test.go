package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/wisdom"
)

// latestRun reads the records of the latest run.
func latestRun(t *testing.T) []record.Record {
	t.Helper()
	_, recs, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// TestOtherMachinesWinnersFirst: the winner of another machine is no choice of auto here. Tune tries it first, even
// if it turns more knobs than --depth allows.
func TestOtherMachinesWinnersFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tinyTune).want(t, exit.Done, nil, nil)
	recs := latestRun(t)
	i := slices.IndexFunc(recs, func(r record.Record) bool {
		return strings.HasPrefix(r.Impl.Label, "cudnnstyle:") && r.Status == record.OK
	})
	if i < 0 {
		t.Fatal("no setting of cudnnstyle ran")
	}
	b, err := wisdom.Read("w.toml")
	if err != nil {
		t.Fatal(err)
	}
	b.Entries[0].Device, b.Entries[0].Impl, b.Entries[0].Knobs = "cpu-of-somebody-else", recs[i].Impl.Name, recs[i].Impl.Knobs
	if err := b.Write("w.toml"); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "wisdom lookup -H 8 -B 2 -T 3 --wisdom w.toml -o csv").want(t, exit.Done, []string{",predicted,0,"}, nil)
	o := rnnbench(t, strings.Replace(tinyTune, "--depth 1", "--depth 0", 1)+" --fresh --max-evals 1")
	o.want(t, exit.Done, nil, []string{"winners of other machines are tried first at 1 of 1 point"})
	timed := 0
	for _, r := range latestRun(t) {
		if r.Samples != nil && len(r.Samples.Wall) > 0 {
			if timed++; r.Key() != recs[i].Key() {
				t.Errorf("%s ran, want %s first", r.Impl.Label, recs[i].Impl.Label)
			}
		}
	}
	if timed != 1 {
		t.Errorf("%d candidates ran, want 1", timed)
	}
	rnnbench(t, "wisdom show --wisdom w.toml -o csv").want(t, exit.Done, []string{"cpu-of-somebody-else,", "workers "}, nil)
}

// TestPinnedWisdom: two processes choose alike at the points of a file that nobody may write, also while
// they would race elsewhere, and leave it as it is.
func TestPinnedWisdom(t *testing.T) {
	tinyBook(t, nil)
	before, err := os.ReadFile("w.toml")
	if err != nil {
		t.Fatal(err)
	}
	pinned := " --wisdom w.toml --wisdom-read-only"
	process := func(line string) string {
		t.Helper()
		var said strings.Builder
		cmd := exec.Command(os.Args[0], strings.Fields(line+pinned)...)
		cmd.Env, cmd.Stderr = append(os.Environ(), beProgram+"=1"), &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v: %s", line, err, said.String())
		}
		return string(out)
	}
	const lookup = "wisdom lookup -H 8,12,16 -B 2 -T 3 -o json"
	first := process(lookup)
	if strings.Count(first, "cudnnstyle:fused=0") != 3 {
		t.Errorf("the file is not followed: %s", first)
	}
	process("sweep -q -H 8,300 -B 2 -T 3 --impl auto --auto race" + quickly)
	process("tune -q -H 8,300 -B 2 -T 3 --impl naive,cudnnstyle --depth 0 --max-rounds 2 --min-time 0s --min-iters 1 --max-evals 4 --allow-failures")
	if second := process(lookup); second != first {
		t.Errorf("another process chooses otherwise:\n%s\n%s", first, second)
	}
	if after, err := os.ReadFile("w.toml"); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, %v", err)
	}
	rnnbench(t, tinyTune+" --wisdom-read-only --wisdom none.toml").want(t, exit.Usage, nil, []string{"file none.toml does not exist"})
}

// TestStaleIsShown: wisdom show and a choice say which entries another version of the program found, or
// other libraries of this machine. Of another machine's entries, show knows the program alone.
func TestStaleIsShown(t *testing.T) {
	tinyBook(t, func(b *wisdom.Book) {
		b.Entries[0].Tool, b.Entries[0].Libraries = "v0.0.1", map[string]string{"workers": "99"}
	})
	rnnbench(t, "wisdom lookup -H 8 -B 2 -T 3 --wisdom w.toml -o csv").want(t, exit.Done, []string{"stale: rnnbench v0.0.1, now ", "workers 99, now "}, nil)
	const known = "driver not known here"
	o := rnnbench(t, "wisdom show --wisdom w.toml -o csv")
	o.want(t, exit.Done, []string{"stale", "rnnbench v0.0.1, now ", "workers 99, now "}, nil)
	if strings.Contains(o.errors, known) {
		t.Error(o.errors)
	}
	b, err := wisdom.Read("w.toml")
	if err != nil {
		t.Fatal(err)
	}
	theirs := b.Entries[0]
	theirs.Device, theirs.Tool = "cuda-of-somebody-else", version()
	b.Entries[0].Tool = version()
	b.Put(theirs)
	if err := b.Write("w.toml"); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "wisdom show --wisdom w.toml").want(t, exit.Done, nil, []string{known + " for 1 entry of other machines"})
	rnnbench(t, "wisdom prune --stale --wisdom w.toml").want(t, exit.Done, []string{"workers 99, now "}, []string{known, "1 entry removed, 1 stay"})
}
