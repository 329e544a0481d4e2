package train_test

import (
	"errors"
	"math"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/train"
	"rnnbench/train/data"
)

// TestPass: the pass has the weights and the minibatch of the training, as its loss shows. Training
// continues as if it had not run.
func TestPass(t *testing.T) {
	d := open(t)
	const still = "sgd:lr=1e-30" // the training's loss is of the weights before its update
	events := data.Options{Batch: 4, Steps: 20, Seed: 3}
	for name, c := range map[string]struct {
		tech      string
		precision rnn.Precision
		change    func(s *train.Setup)
	}{
		"one layer": {"persistent", rnn.FP32, func(*train.Setup) {}},
		"16 bits":   {"cudnnstyle", rnn.BF16, func(*train.Setup) {}},
		"both ways": {"persistent", rnn.FP32, func(s *train.Setup) { s.Problem.Direction = rnn.BothWays }},
		"embedding": {"scan", rnn.FP32, func(s *train.Setup) {
			s.Problem.Cell, s.Problem.Steps, s.Problem.Layers = cell.LSLSTM, events.Steps, 2
			s.Source, _ = data.Open("events:recordings=3:burnin=5:ahead=9:dimension=6", events)
		}},
	} {
		trainer := func(optimizer string) *train.Trainer {
			s := setup(t, d, c.tech, optimizer, c.precision)
			c.change(&s)
			return newTrainer(t, s)
		}
		tr := trainer(still)
		p, err := train.NewPass(tr)
		if p == nil || err != nil {
			t.Fatalf("%s: no pass: %v", name, err)
		}
		for range 2 {
			want := step(t, tr, 3)
			_, err := p.Run(1) // of other weights
			if err = errors.Join(err, p.Load()); err == nil {
				_, err = p.Run(2)
			}
			got, unread := p.Loss()
			if err = errors.Join(err, unread); err != nil || !(math.Abs(got-want) < 1e-5*want) {
				t.Errorf("%s: the loss of the pass is %v, of the training %v: %v", name, got, want, err)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		alone, beside := trainer("adam:lr=0.01"), trainer("adam:lr=0.01")
		want := step(t, alone, 6)
		step(t, beside, 3)
		if p, err = train.NewPass(beside); err != nil || p.Load() != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(3); err != nil {
			t.Error(err)
		}
		if got := step(t, beside, 3); got != want {
			t.Errorf("%s: beside its pass, training comes to %v, alone to %v", name, got, want)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPassOfHistory: the pass also has the steps of the previous minibatch.
func TestPassOfHistory(t *testing.T) {
	s := setup(t, open(t), "scc", "sgd:lr=0.1", rnn.FP32)
	s.Source = &echo{batch: 4, steps: 8, seed: 7, on: true, onehot: true}
	s.Problem.History = 11
	tr := newTrainer(t, s)
	step(t, tr, 3)
	p, err := train.NewPass(tr)
	if p == nil || err != nil {
		t.Fatalf("no pass: %v", err)
	}
	defer p.Close()
	if err := p.Load(); err != nil {
		t.Fatal(err)
	}
	if took, err := p.Run(2); err != nil || took <= 0 {
		t.Errorf("it took %v: %v", took, err)
	}
	if loss, err := p.Loss(); err != nil || !(loss > 0 && loss < 3) {
		t.Errorf("its loss is %v: %v", loss, err)
	}
}

// A smallDevice has so much memory; 0: it does not say.
type smallDevice struct {
	device.Device
	memory int64
	full   bool
}

func (d smallDevice) Info() device.Info {
	i := d.Device.Info()
	i.Memory = d.memory
	return i
}

func (d smallDevice) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	if d.full {
		return nil, device.ErrMemory
	}
	return d.Device.Compile(s, k)
}

// TestNoPass: where there is no memory for the pass, training goes on without.
func TestNoPass(t *testing.T) {
	d := open(t)
	for _, small := range []smallDevice{{d, 1 << 10, false}, {d, 0, true}} {
		tr := newTrainer(t, setup(t, d, "naive", "sgd", rnn.FP32))
		tr.Device = small
		if p, err := train.NewPass(tr); p != nil || err != nil {
			t.Errorf("%+v has a pass: %v", small, err)
		}
		step(t, tr, 1)
	}
	tr := newTrainer(t, setup(t, d, "naive", "sgd", rnn.FP32))
	tr.Replicas = []device.Device{d, d}
	if p, err := train.NewPass(tr); p != nil || err != nil {
		t.Errorf("replicas have a pass: %v", err)
	}
	tr.Replicas, tr.Device = nil, brokenDevice{d}
	if _, err := train.NewPass(tr); !errors.Is(err, device.ErrHang) {
		t.Errorf("a device that hangs: %v", err)
	}
}

type brokenDevice struct{ device.Device }

func (brokenDevice) Compile(*schedule.Schedule, knob.Params) (device.Program, error) {
	return nil, device.ErrHang
}
