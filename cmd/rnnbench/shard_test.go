package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
	"rnnbench/tuner/wisdom"
)

// holdVariable makes a program that starts has started wait once it has said this word, until a signal comes. So
// it still runs when a test disturbs it, however late that is.
const holdVariable = "HOLDS_AT"

// hold returns a writer that waits, once word has been written to it, until a signal has interrupted the program.
func hold(word string) io.Writer {
	return &trigger{word: word, f: func() {
		for handled := false; !handled; time.Sleep(time.Millisecond) {
			signals.Lock()
			handled = signals.stop == nil
			signals.Unlock()
		}
	}}
}

// shardGrid is 16 points of two techniques. With slowly, a point takes part of a second, so that most tests
// disturb a shard within a point. Several threads would wait for each other on a busy machine.
const (
	shardGrid = "sweep -H 8:128:8 -B 2 -T 3 --impl naive,cudnnstyle --rounds 6 --max-rounds 6 --warmup 0s --threads 1"
	slowly    = " --min-time 50ms"
	fast      = " --min-time 0s"
)

// TestShards measures two shards in processes that are killed, asked to end, started twice and
// left without disk space. No record is lost or measured twice. The merged run has the records of
// an undivided run.
func TestShards(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	rnnbench(t, shardGrid+fast+" --out whole").want(t, exit.Done, nil, nil)
	t.Setenv("SLURMD_NODENAME", "v1")
	first, second := shardGrid+" --shard 1/2", shardGrid+" --shard 2/2"

	child, _ := starts(t, first+slowly, "[ 3/1")
	had := measured(t, "1-of-2", 1)
	rnnbench(t, first+fast).want(t, exit.Error, nil, []string{"shard 1/2 is being measured by process ", "hint: give every job another shard"})
	rnnbench(t, "merge out").want(t, exit.Failures, nil, []string{"no run was given of 1 of 2 shards: 2", "shard 1/2 is being measured: it has "})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	had = kept(t, had, measured(t, "1-of-2", 1))
	t.Setenv("SLURMD_NODENAME", "v3")
	child, said := starts(t, first+slowly, "[ 3/1") // a requeue
	had = kept(t, had, measured(t, "1-of-2", len(had)+1))
	terminate(t, child, said)
	rnnbench(t, first+fast).want(t, exit.Done, nil, nil)
	had = kept(t, had, measured(t, "1-of-2", len(had)+1))
	if a, b := had[0].Node.Name, had[len(had)-1].Node.Name; a != "v1" || b != "v3" || *had[0].Node.Shard != "1/2" {
		t.Errorf("the nodes of the records are %s and %s", a, b)
	}

	t.Setenv("SLURMD_NODENAME", "v2")
	fullDisk(t, second+fast, manifestSize(t, "1-of-2")+1024)
	rnnbench(t, second+fast).want(t, exit.Done, nil, nil)
	kept(t, nil, measured(t, "2-of-2", 1))
	rnnbench(t, second+fast).want(t, exit.Done, nil, nil) // there is nothing left
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged into out", "32 records"})
	alike(t, "whole", "out")
	rnnbench(t, "show out").want(t, exit.Done, []string{"node v1: ", "node v2: ", "node v3: "}, nil)
	rnnbench(t, "report out -f page.html").want(t, exit.Done, nil, nil)
	page, err := os.ReadFile("page.html")
	if err != nil || !strings.Contains(string(page), "<h3>Nodes</h3>") || !strings.Contains(string(page), "<li>node v1: ") {
		t.Errorf("the report does not compare the nodes: %v", err)
	}
}

// starts starts a command in a process of its own, and returns it with its output. The command waits once it has
// said the word until, unless that is empty.
func starts(t *testing.T, line, until string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{asProgram}, strings.Fields(line)...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.Env = append(os.Environ(), holdVariable+"="+until)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended
	return cmd, &said
}

// measured waits until a shard has at least n records, and returns all lines of its file.
func measured(t *testing.T, shard string, n int) []record.Record {
	t.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(5 * time.Millisecond) {
		found, err := filepath.Glob("out/*-" + shard + "/records.jsonl")
		if err != nil || len(found) == 0 {
			continue
		}
		f, err := os.Open(found[0])
		if err != nil {
			t.Fatal(err)
		}
		recs, _, err := record.ReadRecords(f, found[0])
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if len(recs) >= n {
			return recs
		}
	}
	t.Fatalf("shard %s has not got %d records", shard, n)
	return nil
}

// kept fails unless now has all records of before, each once. It returns now.
func kept(t *testing.T, before, now []record.Record) []record.Record {
	t.Helper()
	for i, r := range before {
		if now[i].Key() != r.Key() || !now[i].Time.Equal(r.Time) {
			t.Errorf("record %d is lost", i)
		}
	}
	if all := keys(now); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("a record is there twice:\n%s", strings.Join(all, "\n"))
	}
	return now
}

// terminate asks a process to end, as a scheduler does, and kills it if it does not.
func terminate(t *testing.T, cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	if !asked(t, cmd) {
		_ = cmd.Wait()
		return
	}
	const grace = 5 * time.Minute
	late := time.AfterFunc(grace, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // its code says how it ended
	if code := cmd.ProcessState.ExitCode(); !late.Stop() || code != exit.Interrupted {
		t.Errorf("exit code %d after SIGTERM:\n%s", code, said)
	}
}

// asked asks a process to end, and reports whether it can; on Windows there is no way but to kill it.
func asked(t *testing.T, cmd *exec.Cmd) bool {
	t.Helper()
	if runtime.GOOS == "windows" {
		_ = cmd.Process.Kill()
		return false
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return true
}

// fullDisk runs a command in a process that can write at most bytes to a file.
func fullDisk(t *testing.T, line string, bytes int) {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		return // the command below is then the first of its shard
	}
	one, err := exec.Command(sh, "-c", `trap "" XFSZ; ulimit -f 1; head -c 4096 /dev/zero >one 2>/dev/null; wc -c <one`).Output()
	unit, bad := strconv.Atoi(strings.TrimSpace(string(one)))
	if err != nil || bad != nil || unit < 1 || unit >= 4096 {
		return // no such limit here
	}
	cmd := exec.Command(sh, append([]string{"-c", fmt.Sprintf(`trap "" XFSZ; ulimit -f %d; exec "$0" "$@"`, bytes/unit), os.Args[0], asProgram}, strings.Fields(line)...)...)
	said, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(said), "earlier records are safe") {
		t.Errorf("a full disk: %v\n%s", err, said)
	}
}

func manifestSize(t *testing.T, shard string) int {
	t.Helper()
	found, err := filepath.Glob("out/*-" + shard + "/manifest.json")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	info, err := os.Stat(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Size())
}

// alike fails unless two runs have the same records except for times.
func alike(t *testing.T, a, b string) {
	t.Helper()
	text := func(run string) []string {
		_, recs, warnings, err := record.Read(run)
		if err != nil || warnings != nil {
			t.Fatal(warnings, err)
		}
		var list []string
		for _, r := range recs {
			list = append(list, fmt.Sprintf("%s|%s|%+v|%+v|%+v|%t", r.Key(), r.Impl.Label, r.Mode, r.Status, r.Work, r.Verify.OK))
		}
		slices.Sort(list)
		return list
	}
	if x, y := text(a), text(b); !slices.Equal(x, y) {
		t.Errorf("%s has\n%s\nand %s\n%s", a, strings.Join(x, "\n"), b, strings.Join(y, "\n"))
	}
}

// TestShardOfScheduler: a job of an array takes its own shard and says so.
func TestShardOfScheduler(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("SLURM_ARRAY_TASK_ID", "5")
	t.Setenv("SLURM_ARRAY_TASK_COUNT", "2")
	t.Setenv("SLURM_ARRAY_TASK_MIN", "4")
	note := "shard 2/2, from SLURM_ARRAY_TASK_ID; --shard off measures the whole plan"
	rnnbench(t, tiny+" --dry-run").want(t, exit.Done, []string{"shard 2/2: 1 of 2 points, 66.7 % of the estimated time", "control point lstm forward H=8"}, []string{note})
	if o := rnnbench(t, tiny+" --dry-run --shard off"); o.code != exit.Done || strings.Contains(o.errors+o.out, "shard") {
		t.Errorf("exit code %d: %s%s", o.code, o.out, o.errors)
	}
	t.Setenv("SLURM_ARRAY_TASK_COUNT", "")
	rnnbench(t, tiny).want(t, exit.Usage, nil, []string{"SLURM_ARRAY_TASK_COUNT is not set", "hint: use --shard I/N to name the shard, or --shard off"})
}

// TestJobIsSubmittedAgain: a job of an array that is submitted again alone measures its shard of the
// plan, not the whole plan.
func TestJobIsSubmittedAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	job := func(id, count, first, last string) {
		for name, value := range map[string]string{"ID": id, "COUNT": count, "MIN": first, "MAX": last, "STEP": "1"} {
			t.Setenv("SLURM_ARRAY_TASK_"+name, value)
		}
	}
	job("1", "2", "1", "2")
	rnnbench(t, tiny).want(t, exit.Done, nil, []string{"shard 1/2, from SLURM_ARRAY_TASK_ID; --shard off"})
	job("2", "1", "2", "2")
	rnnbench(t, tiny).want(t, exit.Done, nil, []string{"shard 2/2, from SLURM_ARRAY_TASK_ID and the shards in out; --shard off"})
	job("3", "1", "3", "3")
	rnnbench(t, tiny).want(t, exit.Usage, nil, []string{"it is job 3 in an array of 1, but the plan was divided before, into shards such as 1/2, 2/2", "hint: use --shard I/2 to continue one of the shards in out, or --label WORD"})
	job("3", "2", "1", "3")
	rnnbench(t, tiny+" --label gaps").want(t, exit.Usage, nil, []string{"the array has 2 jobs with numbers from 1 to 3, so it has gaps", "hint: use --shard I/N"})
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged"})
}

// TestShardsByLabel: labels that are alike in the name of a folder have shards of their own.
func TestShardsByLabel(t *testing.T) {
	t.Chdir(t.TempDir())
	labels := []string{"日本", "中文", "a-b", "a b", "a/b", strings.Repeat("long", 12), strings.Repeat("long", 12) + "er"}
	for _, label := range labels {
		rnnbenchWith(t.Context(), "", append(strings.Fields(tiny), "--shard", "1/2", "--label", label)...).want(t, exit.Done, nil, nil)
	}
	for i, label := range labels {
		sets, _, err := record.ReadAll([]string{record.Find(label, "out")})
		if err != nil || len(sets) != 1 || len(sets[0].Records) == 0 {
			t.Errorf("label %d has no records: %v", i, err)
		}
	}
	found, err := filepath.Glob("out/*/manifest.json")
	if err != nil || len(found) != len(labels) {
		t.Errorf("%d folders for %d labels, %v", len(found), len(labels), err)
	}
}

// TestShardIsFoundByItsPlan: a shard continues in its folder, whatever the folder's name.
func TestShardIsFoundByItsPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, tiny+" --shard 1/2").want(t, exit.Done, nil, nil)
	found, err := filepath.Glob("out/*-1-of-2")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if err := os.Rename(found[0], "out/moved"); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, tiny+" --shard 1/2").want(t, exit.Done, nil, []string{"in out/moved"})
	if left, err := filepath.Glob("out/*-1-of-2"); err != nil || left != nil {
		t.Errorf("the shard was begun again in %v, %v", left, err)
	}
}

// TestTuneShards: merge collects the winners of all shards in one file. Only one shard tunes the
// control point.
func TestTuneShards(t *testing.T) {
	t.Chdir(t.TempDir())
	const line = "tune -H 8,16,24 -B 2 -T 3 --impl cudnnstyle --depth 0 --max-rounds 2 --min-time 0s --wisdom w.toml --label mine --shard "
	for i := 1; i <= 2; i++ {
		rnnbench(t, line+fmt.Sprintf("%d/2", i)).want(t, exit.Done, nil, []string{"tuned"})
	}
	rnnbench(t, "merge out --wisdom all.toml").want(t, exit.Done, nil, []string{"2 of 2 shards merged", "3 entries merged into all.toml"})
	m, _, _, err := record.Read("out")
	if err != nil || len(m.Winners) != 3 || !strings.HasPrefix(m.Run, "mine-") {
		t.Errorf("%d winners of run %s, %v", len(m.Winners), m.Run, err)
	}
	b, err := wisdom.Read("all.toml")
	if err != nil || len(b.Entries) != 3 {
		t.Errorf("%d entries, %v", len(b.Entries), err)
	}
}
