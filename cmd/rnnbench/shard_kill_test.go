package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestTuneShardIsKilled kills a shard of a tune twice. The shard resumes, no record is lost or
// measured twice, and in the end every point has a winner.
func TestTuneShardIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	const line = "tune -H 8:64:8 -B 2 -T 3 --impl naive,cudnnstyle --depth 1 --max-rounds 4 --min-time 0s --threads 1 --wisdom w.toml --shard "
	var had []record.Record
	for _, until := range []string{"[2/4]", "[3/4]"} { // points that are done count again
		child, _ := starts(t, strings.Replace(line, "--min-time 0s", "--min-time 10ms", 1)+"1/2", until)
		had = kept(t, had, measured(t, "1-of-2", len(had)+2))
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		had = kept(t, had, measured(t, "1-of-2", len(had)))
	}
	rnnbench(t, "merge out").want(t, exit.Failures, nil, []string{"shard 1/2 was killed: it has ", "no run was given of 1 of 2 shards: 2"})
	for _, s := range []string{"1/2", "2/2"} {
		rnnbench(t, line+s).want(t, exit.Done, nil, []string{"tuned"})
	}
	kept(t, had, measured(t, "1-of-2", len(had)))
	rnnbench(t, "merge out --wisdom all.toml").want(t, exit.Done, nil, []string{"2 of 2 shards merged", "8 entries merged into all.toml"})
	if m, _, _, err := record.Read("out"); err != nil || len(m.Winners) != 8 || !m.Merged.Complete() {
		t.Errorf("%d winners, %v", len(m.Winners), err)
	}
}

// TestShardIsStartedTwice starts two processes with the same index at once: one measures, the
// other is refused and changes nothing. The one that measures waits for the other, and is then
// asked to end.
func TestShardIsStartedTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	const line = "sweep -H 8:64:8 -B 2 -T 3 --impl naive --rounds 6 --max-rounds 6 --warmup 0s --min-time 0s --threads 1 --shard 1/2"
	type process struct {
		*exec.Cmd
		said *bytes.Buffer
	}
	var both [2]process
	ended := make(chan int, len(both))
	for i := range both {
		both[i].Cmd, both[i].said = starts(t, line, "[2/")
	}
	for i := range both {
		go func() {
			_ = both[i].Wait() // its code says how it ended
			ended <- i
		}()
	}
	first := <-ended
	refused, measures := both[first], both[1-first]
	if code := refused.ProcessState.ExitCode(); code != exit.Error || !strings.Contains(refused.said.String(), "shard 1/2 is being measured by process ") {
		t.Errorf("the one that ended first has exit code %d:\n%s", code, refused.said)
	}
	orderly := asked(t, measures.Cmd)
	<-ended
	if code := measures.ProcessState.ExitCode(); orderly && code != exit.Interrupted {
		t.Errorf("the one that measured has exit code %d:\n%s", code, measures.said)
	}
	rnnbench(t, line).want(t, exit.Done, nil, nil)
	if n := len(kept(t, nil, measured(t, "1-of-2", 1))); n != 4 && n != 5 {
		t.Errorf("%d records", n)
	}
	rnnbench(t, strings.Replace(line, "1/2", "2/2", 1)).want(t, exit.Done, nil, nil)
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged", "8 records"})
}
