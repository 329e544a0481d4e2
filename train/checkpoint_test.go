package train_test

import (
	"errors"
	"path/filepath"
	"testing"

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
