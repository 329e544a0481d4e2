package main

import (
	"strings"
	"testing"

	"rnnbench/results"
)

// TestTuneShardIsKilled kills a shard of a tune twice. The shard resumes, no record is lost or
// measured twice, and in the end every point has a winner.
func TestTuneShardIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	const line = "tune -H 8:64:8 -B 2 -T 3 --impl naive,cudnnstyle --depth 1 --max-rounds 4 --min-time 0s --wisdom w.toml --shard "
	var had []results.Record
	for range 2 {
		child, _ := starts(t, strings.Replace(line, "--min-time 0s", "--min-time 10ms", 1)+"1/2")
		had = kept(t, had, measured(t, "1-of-2", len(had)+2))
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		had = kept(t, had, measured(t, "1-of-2", len(had)))
	}
	rnnbench(t, "merge out").want(t, exitFailures, nil, []string{"shard 1/2 was killed: it has ", "no run was given of 1 of 2 shards: 2"})
	for _, s := range []string{"1/2", "2/2"} {
		rnnbench(t, line+s).want(t, exitDone, nil, []string{"tuned"})
	}
	kept(t, had, measured(t, "1-of-2", len(had)))
	rnnbench(t, "merge out --wisdom all.toml").want(t, exitDone, nil, []string{"2 of 2 shards merged", "8 entries merged into all.toml"})
	if m, _, _, err := results.Read("out"); err != nil || len(m.Winners) != 8 || !m.Merged.Complete() {
		t.Errorf("%d winners, %v", len(m.Winners), err)
	}
}

// TestShardIsStartedTwice starts two processes with the same index at once: one measures, the
// other is refused and changes nothing.
func TestShardIsStartedTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	const line = "sweep -H 8:64:8 -B 2 -T 3 --impl naive --rounds 6 --max-rounds 6 --warmup 0s --min-time 50ms --shard 1/2"
	a, saidA := starts(t, line)
	b, saidB := starts(t, line)
	_, _ = a.Wait(), b.Wait() // their codes say how they ended
	first, second := a.ProcessState.ExitCode(), b.ProcessState.ExitCode()
	said := saidB.String()
	if first != exitDone {
		first, second, said = second, first, saidA.String()
	}
	if first != exitDone || second != exitError || !strings.Contains(said, "shard 1/2 is being measured by process ") {
		t.Errorf("exit codes %d and %d:\n%s\n%s", first, second, saidA, saidB)
	}
	if n := len(kept(t, nil, measured(t, "1-of-2", 1))); n != 4 && n != 5 {
		t.Errorf("%d records", n)
	}
	rnnbench(t, strings.Replace(line, "1/2", "2/2", 1)).want(t, exitDone, nil, nil)
	rnnbench(t, "merge out").want(t, exitDone, nil, []string{"2 of 2 shards merged", "8 records"})
}
