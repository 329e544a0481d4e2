package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/tuner/config"
)

// twoReplicas trains a little network by two worker processes.
func twoReplicas(t *testing.T) (*replicas, *train.Trainer) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	c, err := config.Resolve(config.Layer{})
	if err != nil {
		t.Fatal(err)
	}
	c.Measure.Threads = 2
	r, err := (&settings{}).openReplicas(c, "cpu", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() }) // one may have been killed
	source, err := data.Open("copy:delay=2:length=2:symbols=3", data.Options{Batch: 5, Steps: 8, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	o, err := train.ParseOptimizer("adam:lr=0.02", rnn.FP32)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(train.Setup{
		Device: r.devices[0], Replicas: r.devices, Technique: impl.Lookup("persistent"), Optimizer: o, Seed: 1, Source: source,
		Problem: rnn.Problem{Cell: cell.GRU, Hidden: 12, Layers: 2, Batch: 5, Steps: 8},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Close() })
	return r, tr
}

// TestReplicaKilled: killing a replica ends the training with one sentence. New replicas continue
// from the last checkpoint.
func TestReplicaKilled(t *testing.T) {
	r, tr := twoReplicas(t)
	if err := tr.Step(context.Background(), 5); err != nil {
		t.Fatal(err)
	}
	before, err := tr.Loss()
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept.npz")
	if err := tr.Save(kept); err != nil {
		t.Fatal(err)
	}
	if err := r.started[1].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err = tr.Step(context.Background(), 1)
	if !errors.Is(err, device.ErrKilled) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "iteration 6: replica 2 of 2: worker: it ended (signal: killed)") {
		t.Errorf("after a kill: %v", err)
	}
	_, again := twoReplicas(t)
	if err := again.Load(kept); err != nil {
		t.Fatal(err)
	}
	if err := again.Step(context.Background(), 30); err != nil {
		t.Fatal(err)
	}
	after, err := again.Loss()
	if err != nil || again.Iterations() != 35 || !(after < before) {
		t.Errorf("after %d iterations the loss is %v, before %v: %v", again.Iterations(), after, before, err)
	}
}

// TestReplicasLeaveNothing: the file that replicas share is gone once all have it.
func TestReplicasLeaveNothing(t *testing.T) {
	list := func() []string {
		found, err := filepath.Glob(filepath.Join("/dev/shm", "rnnbench-replicas-*"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := filepath.Glob(filepath.Join(os.TempDir(), "rnnbench-replicas-*"))
		if err != nil {
			t.Fatal(err)
		}
		return append(found, more...)
	}
	r, _ := twoReplicas(t)
	for _, path := range list() {
		for _, cmd := range r.started {
			if strings.Contains(strings.Join(cmd.Args, " "), path) {
				t.Errorf("%s is still there", path)
			}
		}
	}
}

// TestTrainReplicas: training by replicas gives the losses of one device, and its records name
// the replicas. The run resumes with another number of them.
func TestTrainReplicas(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	t.Chdir(t.TempDir())
	// With two threads the whole device has knobs that a replica of one has not.
	line := strings.Replace(little, "--threads 1", "--threads 2", 1) + " --impl persistent --every 10 --optimizer sgd:lr=0.5"
	rnnbench(t, line+" --iterations 20 --out alone").want(t, exitDone, nil, nil)
	rnnbench(t, line+" --iterations 10 --replicas 2 --out shared").want(t, exitDone, nil, nil)
	rnnbench(t, "train --resume shared --iterations 20 --threads 2 --replicas 3").want(t, exitDone, nil, []string{"iteration 20"})
	_, alone, _, err := record.Read("alone")
	if err != nil {
		t.Fatal(err)
	}
	_, shared, _, err := record.Read("shared")
	if err != nil || len(shared) != len(alone) {
		t.Fatalf("%d records, not %d: %v", len(shared), len(alone), err)
	}
	for i, r := range shared {
		if got, want := r.Training.Loss, alone[i].Training.Loss; math.Abs(got-want) > 1e-4*want || r.Training.Replicas != 2+i {
			t.Errorf("record %d: by %d replicas the loss is %v, by one device %v", i+1, r.Training.Replicas, got, want)
		}
	}
	for flags, want := range map[string]string{
		"--replicas -1": "choose 1 to 64",
		"--replicas 65": "choose 1 to 64",
		"--replicas 5":  "cannot share a minibatch of 4",
		"--replicas x":  "not a number",
	} {
		rnnbench(t, little+" "+flags).want(t, exitUsage, nil, []string{want})
	}
}
