package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// trainGrid is three points of two techniques on a task that takes milliseconds.
const trainGrid = "train --data copy:delay=2:length=2:symbols=3 -H 8,12,16 -B 4 -T 8 --cell gru --threads 1 --held-out 1 --impl naive,persistent --every 10 --optimizer sgd:lr=0.5"

// TestTrainShards: each shard trains its own networks. The merged run has the curves of an
// undivided run, bit for bit, and resumes from the shards' checkpoints. The control point shows how
// far the machines differ.
func TestTrainShards(t *testing.T) {
	t.Chdir(t.TempDir())
	brief(t)
	line := trainGrid + " --iterations 20"
	rnnbench(t, line+" --out whole").want(t, exit.Done, nil, nil)
	for i := 1; i <= 4; i++ { // one shard has nothing to train
		t.Setenv("SLURMD_NODENAME", fmt.Sprintf("v%d", i))
		rnnbench(t, line+fmt.Sprintf(" --shard %d/4", i)).want(t, exit.Done, nil, nil)
		ahead(t, "out/*-of-4/checkpoint-*.npz")
		want := []string{fmt.Sprintf("%d of 4 shards merged into out", i)}
		if i == 4 {
			want = append(want, "12 records", "node v1: ", "node v4: ")
		}
		rnnbench(t, "merge out --allow-missing").want(t, exit.Done, nil, want)
	}
	sameCurves(t, "whole", "out")
	before := merged(t)
	rnnbench(t, line+" --shard 3/4").want(t, exit.Done, nil, nil) // there is nothing left
	rnnbench(t, "merge out").want(t, exit.Done, nil, nil)
	if after := merged(t); before.Records != after.Records || !before.Manifest.Merged.Complete() || before.Manifest.Merged.Shards[0].Planned+before.Manifest.Merged.Shards[1].Planned > 4 {
		t.Errorf("%+v", after.Manifest.Merged)
	}

	rnnbench(t, line+"0 --shard 1/4").want(t, exit.Usage, nil, []string{"shard 1/4 in out", "was begun with --iterations 20 ", "not with --iterations 200 ", "train --resume out"})
	rnnbench(t, "train --resume whole --iterations 40 --threads 1").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume out --iterations 40 --threads 1").want(t, exit.Done, nil, []string{"iteration 30", "iteration 40"})
	sameCurves(t, "whole", "out")
}

// ahead gives files the times of a clock that is ahead.
func ahead(t *testing.T, pattern string) {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || found == nil {
		t.Fatal(found, err)
	}
	for _, path := range found {
		if when := time.Now().Add(time.Hour); os.Chtimes(path, when, when) != nil {
			t.Fatal("the time of a file cannot be set")
		}
	}
}

// brief shortens the measurement of control points.
func brief(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"ROUNDS": "6", "MAX_ROUNDS": "6", "WARMUP": "0s", "MIN_TIME": "0s"} {
		t.Setenv("RNNBENCH_"+name, value)
	}
}

// mergedRun holds the text of a merged run's records, and its manifest.
type mergedRun struct {
	Records  string
	Manifest record.Manifest
}

func merged(t *testing.T) mergedRun {
	t.Helper()
	m, _, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("out", m.Run, "records.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return mergedRun{string(text), m}
}

// sameCurves fails unless two runs trained the same networks to the same losses.
func sameCurves(t *testing.T, a, b string) {
	t.Helper()
	text := func(run string) []string {
		_, recs, warnings, err := record.Read(run)
		if err != nil || warnings != nil {
			t.Fatal(warnings, err)
		}
		var list []string
		for _, r := range recs {
			if r.Training == nil {
				t.Errorf("%s: %s was not trained", run, r.Key())
				continue
			}
			list = append(list, fmt.Sprintf("%s|%s|%s|%v|%v|%s", r.Key(), r.Impl.Label, r.Status, r.Training.Loss, *r.Training.HeldOut, r.Training.Stop))
		}
		slices.Sort(list)
		return list
	}
	if x, y := text(a), text(b); !slices.Equal(x, y) {
		t.Errorf("%s has\n%s\nand %s\n%s", a, strings.Join(x, "\n"), b, strings.Join(y, "\n"))
	}
}

// TestTrainShardsOfOther: shards that were trained in another way are not merged.
func TestTrainShardsOfOther(t *testing.T) {
	t.Chdir(t.TempDir())
	brief(t)
	line := trainGrid + " --label other"
	rnnbench(t, line+" --iterations 20 --shard 1/2").want(t, exit.Done, nil, nil)
	for change, want := range map[string]string{
		" --iterations 30":                        "the training by which the plan was divided is --iterations 20 ",
		" --iterations 20 --seed 5":               "the seed is 1 in one and 5 in the other",
		" --iterations 20 --optimizer sgd:lr=0.1": "the plan is ",
		" --iterations 20 --data adding":          "the plan is ",
	} {
		rnnbench(t, line+change+" --shard 2/2 --out "+record.Slug(change)).want(t, exit.Done, nil, nil)
		o := rnnbenchWith(t.Context(), "", "merge", "out", record.Slug(change))
		o.want(t, exit.Usage, nil, []string{"cannot be merged: " + want})
	}
	raised := "train --threads 1 --iterations 30 --resume "
	m, err := filepath.Glob("out/other-*-1-of-2")
	if err != nil || len(m) != 1 {
		t.Fatal(m, err)
	}
	rnnbench(t, line+" --iterations 20 --shard 2/2").want(t, exit.Done, nil, nil)
	rnnbench(t, raised+m[0]).want(t, exit.Done, nil, []string{"iteration 30"})
	rnnbench(t, "merge out").want(t, exit.Usage, nil, []string{"cannot be merged: the training is --iterations 30 "})
	rnnbench(t, raised+strings.Replace(m[0], "1-of-2", "2-of-2", 1)).want(t, exit.Done, nil, []string{"iteration 30"})
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged", "18 records"})
}

// TestTrainShardIsKilled kills a shard of a train twice, on machines with different names. The
// shard resumes from its checkpoints, and the merged run has the curves of an undivided run.
func TestTrainShardIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes; the suite without -short runs it")
	}
	t.Chdir(t.TempDir())
	brief(t)
	// Long enough that most kills come within an iteration.
	line := strings.NewReplacer("-H 8,12,16 -B 4", "-H 80,96,112 -B 16", "--every 10", "--every 40").Replace(trainGrid) + " --iterations 600"
	rnnbench(t, line+" --out whole").want(t, exit.Done, nil, nil)
	had := 0
	for i, until := range []string{"naive: iteration 200,", "naive: iteration 480,"} {
		t.Setenv("SLURMD_NODENAME", fmt.Sprintf("v%d", i+1))
		child, _ := starts(t, line+" --shard 1/2", until)
		had = len(measured(t, "1-of-2", had+4))
		if i == 0 {
			rnnbench(t, line+" --shard 1/2").want(t, exit.Error, nil, []string{"shard 1/2 is being measured by process "})
			rnnbench(t, "merge out").want(t, exit.Failures, nil, []string{"no run was given of 1 of 2 shards: 2", "shard 1/2 is being measured: it has "})
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		rnnbench(t, "merge out").want(t, exit.Failures, nil, []string{"shard 1/2 was killed: it has "})
	}
	t.Setenv("SLURMD_NODENAME", "v3")
	child, said := starts(t, line+" --shard 1/2", "persistent: iteration 200,") // a requeue, which is preempted
	measured(t, "1-of-2", had+1)
	terminate(t, child, said)
	for _, s := range []string{"1/2", "2/2"} {
		rnnbench(t, line+" --shard "+s).want(t, exit.Done, nil, nil)
	}
	rnnbench(t, "merge out").want(t, exit.Done, nil, []string{"2 of 2 shards merged", "90 records"})
	sameCurves(t, "whole", "out")
}
