package train_test

import (
	"context"
	"math"
	"path/filepath"
	"runtime"
	"testing"

	"rnnbench/device"
	"rnnbench/device/allreduce"
	"rnnbench/device/cpu"
	"rnnbench/rnn"
	"rnnbench/train"
	"rnnbench/train/data"
)

// replicas opens n CPU devices that train together.
func replicas(t *testing.T, n int) []device.Device {
	if runtime.GOOS != "linux" {
		t.Skip("replicas need Linux")
	}
	path, err := allreduce.Create(t.TempDir(), n)
	if err != nil {
		t.Fatal(err)
	}
	var all []device.Device
	for i := range n {
		g, err := allreduce.Join(path, i, n)
		if err != nil {
			t.Fatal(err)
		}
		d, err := cpu.Open(cpu.Options{Threads: 1, Group: g})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close(); g.Close() })
		all = append(all, d)
	}
	return all
}

// losses returns the losses of the next n iterations.
func losses(t *testing.T, tr *train.Trainer, n int) (out []float64) {
	for range n {
		if err := tr.Step(context.Background(), 1); err != nil {
			t.Fatal(err)
		}
		loss, err := tr.Loss()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, loss)
	}
	return out
}

// TestReplicasTrain: 1, 2 and 3 replicas have the losses of one device with the whole minibatch.
// That also holds after a checkpoint of another number of replicas, where states are carried over.
func TestReplicasTrain(t *testing.T) {
	with := func(devices []device.Device) *train.Trainer {
		s := setup(t, open(t), "cudnnstyle", "adam:clip=0.1", rnn.FP32)
		s.Source, s.Replicas = &echo{batch: 4, steps: 8, seed: 7, on: true}, devices
		tr, err := train.New(s)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { tr.Close() })
		return tr
	}
	alone := with(nil)
	before := losses(t, alone, 5)
	from := filepath.Join(t.TempDir(), "alone.npz")
	if err := alone.Save(from); err != nil {
		t.Fatal(err)
	}
	after := losses(t, alone, 5)
	near := func(name string, got, want []float64) {
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-4*want[i] {
				t.Errorf("%s: the losses are %v, want %v", name, got, want)
				return
			}
		}
	}
	for n := 1; n <= 3; n++ {
		tr := with(replicas(t, n))
		near("from the beginning", losses(t, tr, 5), before)
		own := filepath.Join(t.TempDir(), "replicas.npz")
		if err := tr.Save(own); err != nil {
			t.Fatal(err)
		}
		if err := tr.Load(from); err != nil {
			t.Fatal(err)
		}
		near("from one device's checkpoint", losses(t, tr, 5), after)
		back := with(nil)
		if err := back.Load(own); err != nil {
			t.Fatal(err)
		}
		near("from the replicas' checkpoint", losses(t, back, 5), after)
	}
}

// TestReplicasOfEvents: replicas also share an embedding, and losses that do not count.
func TestReplicasOfEvents(t *testing.T) {
	with := func(devices []device.Device) []float64 {
		s := setup(t, open(t), "cudnnstyle", "sgd:lr=0.5", rnn.FP32)
		s.Replicas, s.Problem.Steps = devices, 9
		source, err := data.Open("events:ahead=2:burnin=3:recordings=5", data.Options{Batch: s.Problem.Batch, Steps: s.Problem.Steps, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		s.Source = source
		tr, err := train.New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		return losses(t, tr, 4)
	}
	want := with(nil)
	for n := 2; n <= 3; n++ {
		for i, got := range with(replicas(t, n)) {
			if math.Abs(got-want[i]) > 1e-4*want[i] {
				t.Errorf("%d replicas: loss %d is %v, want %v", n, i, got, want[i])
			}
		}
	}
	if want[3] >= want[0] {
		t.Errorf("nothing is learnt: the losses are %v", want)
	}
}

// TestReplicasTooMany: a minibatch with too few sequences is declined.
func TestReplicasTooMany(t *testing.T) {
	s := setup(t, open(t), "naive", "sgd", rnn.FP32)
	s.Replicas = make([]device.Device, 5)
	if _, err := train.New(s); err == nil || err.Error() != "rnn: 5 replicas cannot share a minibatch of 4: each needs at least one sequence" {
		t.Errorf("five replicas of four sequences: %v", err)
	}
}
