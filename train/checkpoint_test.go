package train_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"codeberg.org/sbinet/npyio/npz"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
)

// unwritable is a device whose memory cannot be written once it is full.
type unwritable struct {
	device.Device
	full bool
}

func (d *unwritable) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return &unwritableProgram{p, d}, err
}

type unwritableProgram struct {
	device.Program
	of *unwritable
}

func (p *unwritableProgram) Write(m *schedule.Matrix, v []float32) error {
	if p.of.full {
		return device.ErrMemory
	}
	return p.Program.Write(m, v)
}

// TestCheckpointUnwritten: parameters that do not reach the device are an error of the checkpoint, since
// training would go on from others.
func TestCheckpointUnwritten(t *testing.T) {
	d := &unwritable{Device: open(t)}
	tr := newTrainer(t, setup(t, d, "naive", "sgd", rnn.FP32))
	path := filepath.Join(t.TempDir(), "c.npz")
	step(t, tr, 1)
	if err := tr.Save(path); err != nil {
		t.Fatal(err)
	}
	d.full = true
	if err := tr.Load(path); !errors.Is(err, device.ErrMemory) {
		t.Errorf("the checkpoint is loaded: %v", err)
	}
	d.full = false
	if err := tr.Load(path); err != nil || tr.Iterations() != 1 {
		t.Errorf("after room was made: %v, %d iterations", err, tr.Iterations())
	}
}

// TestCheckpointOfOtherSizes: an array with more or fewer values than the network has is refused.
func TestCheckpointOfOtherSizes(t *testing.T) {
	dir := t.TempDir()
	tr := newTrainer(t, setup(t, open(t), "naive", "sgd", rnn.FP32))
	good := filepath.Join(dir, "good.npz")
	if err := tr.Save(good); err != nil {
		t.Fatal(err)
	}
	r, err := npz.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cut := ""
	bad := filepath.Join(dir, "bad.npz")
	w, err := npz.Create(bad)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range r.Keys() {
		switch name = strings.TrimSuffix(name, ".npy"); name {
		case "about", "position":
			var v []int64
			err = errors.Join(r.Read(name+".npy", &v), w.Write(name+".npy", v))
		default:
			var v []float32
			err = r.Read(name+".npy", &v)
			if cut == "" {
				cut, v = name, v[:len(v)-1]
			}
			err = errors.Join(err, w.Write(name+".npy", v))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Load(bad); err == nil || !strings.Contains(err.Error(), "array "+cut+" has") {
		t.Errorf("array %s lacks a value: %v", cut, err)
	}
}
