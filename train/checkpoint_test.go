package train_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// TestCheckpointOfOtherSizes: an array with more or fewer values than the network has is refused.
func TestCheckpointOfOtherSizes(t *testing.T) {
	dir := t.TempDir()
	tr := newTrainer(t, setup(t, open(t), "naive", "sgd", rnn.FP32))
	good := filepath.Join(dir, "good.npz")
	if err := tr.Save(good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`'<f4', 'fortran_order': False, 'shape': \(\d+`).FindIndex(data)
	if rows == nil {
		t.Fatal("the test looks for another header")
	}
	data[rows[1]-1] ^= 1 // one row more or less
	bad := filepath.Join(dir, "bad.npz")
	if err := os.WriteFile(bad, data, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := tr.Load(bad); err == nil || !strings.Contains(err.Error(), "its shape is (") {
		t.Errorf("an array has another number of rows: %v", err)
	}
}
