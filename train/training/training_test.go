package training_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/grid"
)

// networks learn to copy for so many iterations, one by each technique.
func networks(iterations int, names ...string) []agenda.Network {
	p := record.Point{Cell: "gru", Pass: "train", Hidden: 9, Input: 5, OneHot: true, Output: 4, Batch: 4, Steps: 8, Layers: 1, Precision: "fp32"}
	var list []agenda.Network
	for i, n := range names {
		list = append(list, agenda.Network{Number: i + 1, Point: p, Spec: grid.Spec{Name: n, Label: n}, Training: record.TrainingPlan{
			Data: "copy:delay=2:length=2:symbols=3", Optimizer: "sgd:lr=0.5", Iterations: iterations, Every: 10, Batches: 1,
		}})
	}
	return list
}

// newJob trains into a run that is new, or in the folder dir if that is not empty.
func newJob(t *testing.T, dir string, list []agenda.Network) *training.Job {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	j := &training.Job{Device: d, Networks: list, Seed: 1, LayOut: func(p record.Point, s grid.Spec) (*tuner.Layout, error) {
		return tuner.LayOut(d, impl.All(), p, s)
	}}
	if dir == "" {
		j.Run, err = record.Create(t.TempDir(), record.Manifest{})
	} else if _, j.Before, _, err = record.Read(dir); err == nil {
		j.Run, err = record.Resume(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// read closes a job's run and reads its records.
func read(t *testing.T, j *training.Job) []record.Record {
	t.Helper()
	if err := j.Run.Finish(0); err != nil {
		t.Fatal(err)
	}
	_, recs, _, err := record.Read(j.Run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	return recs
}

// TestShares: each network gets a share of the budget, and what is finished is not trained again.
func TestShares(t *testing.T) {
	list := networks(10_000_000, "naive", "persistent")
	j := newJob(t, "", list)
	j.Budget = time.Nanosecond
	j.Now = (&clock{tick: 2 * time.Millisecond}).now // however busy the machine is
	if err := j.Do(t.Context()); !errors.Is(err, tuner.ErrBudget) {
		t.Fatalf("a spent budget: %v", err)
	}
	dir := j.Run.Dir()
	first := read(t, j)
	for i, n := range list {
		if last := n.Latest(first); last == nil || n.Finished(last) {
			t.Errorf("%s has no share: %v", n.Spec.Label, last)
		}
		if _, err := os.Stat(filepath.Join(dir, []string{"checkpoint-1.npz", "checkpoint-2.npz"}[i])); err != nil {
			t.Error(err)
		}
	}
	short := networks(10, "naive", "persistent") // which both are past
	j = newJob(t, dir, short)
	if err := j.Do(t.Context()); err != nil || len(j.Last) != 2 {
		t.Errorf("%d networks at their end: %v", len(j.Last), err)
	}
	if again := read(t, j); len(again) != len(first) {
		t.Errorf("%d records, and %d after training what was finished", len(first), len(again))
	}
}

// TestDeclines: a network that a technique or a task declines becomes a record, and the next one is
// trained.
func TestDeclines(t *testing.T) {
	list := networks(10, "naive", "persistent", "scan", "scc")
	list[0].Point.Output = 7
	list[3].Point.Precision = "tf32"
	j := newJob(t, "", list)
	if err := j.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	recs := read(t, j)
	for i, want := range []struct {
		status record.Status
		words  string
	}{{record.Failed, "4 classes here, but"}, {record.OK, ""}, {record.Skipped, "scan"}, {record.Skipped, "tf32"}} {
		last := list[i].Latest(recs)
		if last == nil || last.Status != want.status || want.words != "" && !strings.Contains(*last.Reason, want.words) {
			t.Errorf("%s: %+v, want %v: %s", list[i].Spec.Label, last, want.status, want.words)
		}
		if last != nil && list[i].Finished(last) != (want.status != record.Failed) {
			t.Errorf("%s: finished is %t", list[i].Spec.Label, list[i].Finished(last))
		}
	}
}

// TestMeanLoss: a record has the mean of the losses of the minibatches since the previous record, also
// where not all of them are read.
func TestMeanLoss(t *testing.T) {
	losses := func(every int) []record.Record {
		list := networks(80, "naive")
		list[0].Training.Every, list[0].Training.Batches = every, 0
		j := newJob(t, "", list)
		if err := j.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		return read(t, j)
	}
	single := losses(1)
	for every, apart := range map[int]int{1: 1, 10: 1, 40: 2} {
		for i, r := range losses(every) {
			sum, n := 0.0, 0
			for k := i*every + apart; k <= (i+1)*every; k += apart {
				sum, n = sum+single[k-1].Training.Loss, n+1
			}
			if got := r.Training; got.MeanOf != n || math.Abs(got.MeanLoss-sum/float64(n)) > 1e-12 {
				t.Errorf("record %d, every %d: %v of %d, want %v of %d", i, every, got.MeanLoss, got.MeanOf, sum/float64(n), n)
			}
		}
	}
}

// TestRepeats: networks that differ by Repeat alone are trained each, from seeds of their own. A repeat
// is what a run with that seed trains.
func TestRepeats(t *testing.T) {
	losses := func(seed uint64, repeats ...int) (list []float64) {
		all := networks(20, slices.Repeat([]string{"naive"}, len(repeats))...)
		for i := range all {
			all[i].Training.Repeat = repeats[i]
		}
		j := newJob(t, "", all)
		j.Seed = seed
		if err := j.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range record.Trainings(read(t, j)) {
			if r.Mode.Seed != seed+uint64(r.Training.Repeat) {
				t.Errorf("repeat %d of seed %d has seed %d", r.Training.Repeat, seed, r.Mode.Seed)
			}
			list = append(list, r.Training.Loss)
		}
		return list
	}
	got := losses(1, 0, 1, 2)
	if len(got) != 3 || got[0] == got[1] || got[1] == got[2] || got[0] == got[2] {
		t.Fatalf("losses %v", got)
	}
	if want := losses(3, 0); got[2] != want[0] {
		t.Errorf("losses %v, and %v from seed 3", got, want)
	}
}

// TestStops: a context that ends leaves a checkpoint, and its error.
func TestStops(t *testing.T) {
	j := newJob(t, "", networks(10_000_000, "naive"))
	ctx, cancel := context.WithCancel(t.Context())
	j.Tell = func(*record.Record) { cancel() }
	if err := j.Do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := os.Stat(filepath.Join(j.Run.Dir(), "checkpoint-1.npz")); err != nil {
		t.Error(err)
	}
}

// TestKilled: after a kill, training continues as if it had not happened. A process may be killed before
// the third record, or between it and its checkpoint. No iteration is recorded twice.
func TestKilled(t *testing.T) {
	list := networks(50, "persistent")
	whole := newJob(t, "", list)
	before, between := filepath.Join(t.TempDir(), "left"), filepath.Join(t.TempDir(), "left")
	whole.Tell = func(r *record.Record) { // which is not on file yet
		if left := map[int]string{30: before, 40: between}[r.Training.Iterations]; left != "" {
			if err := os.CopyFS(left, os.DirFS(whole.Run.Dir())); err != nil {
				t.Error(err)
			}
		}
	}
	if err := whole.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(record.Checkpoint(before, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record.Checkpoint(between, 1), second, 0o666); err != nil {
		t.Fatal(err)
	}
	want := read(t, whole)
	for left, records := range map[string]int{before: 2, between: 3} {
		rest := newJob(t, left, list)
		if len(rest.Before) != records {
			t.Fatalf("the kill left %d records, want %d", len(rest.Before), records)
		}
		if err := rest.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(rest.Run.Dir(), "records.jsonl"))
		if lines := strings.Count(string(text), "\n"); err != nil || lines != 5 || len(want) != 5 {
			t.Fatalf("%d records, and %d after a kill that left %d, %v", len(want), lines, records, err)
		}
		made := 0
		for i, r := range read(t, rest) {
			made += r.Samples.Iters[0]
			a, b := want[i].Training, r.Training
			if a.Iterations != b.Iterations || a.Loss != b.Loss || a.MeanLoss != b.MeanLoss || *a.HeldOut != *b.HeldOut {
				t.Errorf("record %d is %+v, %+v after a kill", i, *a, *b)
			}
		}
		if made != 50 {
			t.Errorf("the records are of %d iterations in all, not 50", made)
		}
	}
}

// TestBeside: passes timed in turns with a training do not change it, and its records have their
// times.
func TestBeside(t *testing.T) {
	list := networks(600, "naive", "persistent")
	var losses [2][]float64
	for i := range losses {
		for k := range list {
			list[k].Training.Beside, list[k].Training.Every = i == 1, 300
		}
		j := newJob(t, "", list)
		if err := j.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range read(t, j) {
			losses[i] = append(losses[i], r.Training.Loss, r.Training.HeldOut.Loss)
			b := r.Training.Beside
			if (b != nil) != (i == 1) {
				t.Fatalf("%s: iteration %d has %+v", r.Impl.Label, r.Training.Iterations, b)
			}
			if b != nil && !(b.Pairs > 0 && b.Ratio > 0 && b.Iteration >= b.LeastIteration && b.Pass >= b.LeastPass && b.LeastPass > 0) {
				t.Errorf("%s: %+v", r.Impl.Label, *b)
			}
		}
	}
	if len(losses[0]) != 8 || !slices.Equal(losses[0], losses[1]) {
		t.Errorf("alone %v, beside passes %v", losses[0], losses[1])
	}
}

// launching is a device whose launches take as many microseconds as it was asked for them.
type launching struct {
	device.Device
	asked int
}

func (d *launching) LaunchTime() (float64, error) {
	d.asked++
	return float64(d.asked) * 1e-6, nil
}

// TestLaunchTimes: the records of a training have the time of a launch just before it.
func TestLaunchTimes(t *testing.T) {
	j := newJob(t, "", networks(20, "naive", "persistent"))
	j.Device = &launching{Device: j.Device}
	if err := j.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, recs, _, err := record.Read(j.Run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]float64{"naive": 1e-6, "persistent": 2e-6}
	for _, r := range recs {
		if r.Launch == nil || *r.Launch != times[r.Impl.Name] {
			t.Errorf("%s after %d iterations has launch %v", r.Impl.Name, r.Training.Iterations, r.Launch)
		}
	}
	if len(recs) < 4 {
		t.Errorf("%d records", len(recs))
	}
}
