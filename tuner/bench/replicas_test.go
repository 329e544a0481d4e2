package bench

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/tuner/config"
)

// TestMain makes the test binary the worker that replicas start.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != WorkerVerb {
		os.Exit(m.Run())
	}
	o, f := Options{Config: config.Config{Measure: config.Default()}}, flag.NewFlagSet(WorkerVerb, flag.ExitOnError)
	f.IntVar(&o.Config.Measure.Threads, "threads", 0, "")
	group, replica := f.String("group", "", ""), f.String("replica", "", "")
	_ = f.Parse(os.Args[2:]) // ends the process on an error
	if err := Serve(os.Stdin, os.Stdout, func() (Options, error) { return o, nil }, *group, *replica); err != nil {
		panic(err)
	}
}

// twoReplicas trains a little network by two worker processes.
func twoReplicas(t *testing.T) (*replicas, *train.Trainer) {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	o := Options{Config: config.Config{Measure: config.Default()}}
	o.Config.Measure.Threads = 2
	r, err := o.openReplicas("cpu", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.close() }) // one may have been killed
	source, err := data.Open("copy:delay=2:length=2:symbols=3", data.Options{Batch: 5, Steps: 8, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	rule, err := train.ParseOptimizer("adam:lr=0.02", rnn.FP32)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := train.New(train.Setup{
		Device: r.devices[0], Replicas: r.devices, Technique: impl.Lookup("persistent"), Optimizer: rule, Seed: 1, Source: source,
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
