package train_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cuda"
	"rnnbench/device/cuda/emulator"
	"rnnbench/device/devicetest"
	"rnnbench/impl"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/train"
	"rnnbench/train/data"
)

// unfed is a device whose programs cannot be fed while they run.
type unfed struct{ device.Device }

func (d unfed) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	return struct{ device.Program }{p}, err
}

// uneven is an echo in which each minibatch has another number of steps that count.
type uneven struct{ *echo }

func (u uneven) Shape() data.Shape {
	s := u.echo.Shape()
	s.Weighted = true
	return s
}

func (u uneven) Next(x, target []float32) {
	u.echo.Next(x, target)
	for i := range 3 * (u.at % 5) {
		target[i] = -1
	}
}

// fedSetups are trainings that differ in the inputs of an iteration. Each call has sources of its own.
func fedSetups(t *testing.T) map[string]func(d device.Device) train.Setup {
	text := someText(t)
	return map[string]func(d device.Device) train.Setup{
		"vectors, states carried": func(d device.Device) train.Setup {
			s := setup(t, d, "cudnnstyle", "adam:clip=0.1", rnn.FP32)
			s.Source = &echo{batch: 4, steps: 8, seed: 7, on: true}
			return s
		},
		"an embedding, steps that do not count": func(d device.Device) train.Setup {
			s := setup(t, d, "naive", "adam:lr=0.01", rnn.FP32)
			s.Problem.Steps = 9
			s.Source = openData(t, "events:ahead=2:burnin=3:recordings=5", data.Options{Batch: 4, Steps: 9, Seed: 3})
			return s
		},
		"steps that count differ": func(d device.Device) train.Setup {
			s := setup(t, d, "persistent", "sgd:lr=0.1", rnn.BF16)
			s.Source = uneven{&echo{batch: 4, steps: 8, seed: 7, onehot: true}}
			return s
		},
		"growing iterations": func(d device.Device) train.Setup { return adding(t, d, "newton", "adam:lr=0.3") },
		"a history": func(d device.Device) train.Setup {
			s := setup(t, d, "scc", "sgd:lr=1:momentum=0.9:clip=1", rnn.FP32)
			s.Problem = rnn.Problem{Cell: cell.LSTMC, Hidden: 11, Layers: 1, Batch: 2, Steps: 5, History: 7}
			s.Source = openData(t, text, data.Options{Batch: 2, Steps: 5})
			return s
		},
	}
}

// TestFedTraining: a device that is fed while it trains has the losses of one that is not, bit for
// bit. Passes, scores and checkpoints between iterations see the minibatch that was trained on.
func TestFedTraining(t *testing.T) {
	for name, setup := range fedSetups(t) {
		t.Run(name, func(t *testing.T) {
			plain, fed := newTrainer(t, setup(open(t))), newTrainer(t, setup(devicetest.Fed(open(t))))
			same := func(what string, a, b *train.Trainer, n int) {
				t.Helper()
				if want, got := losses(t, a, n), losses(t, b, n); !slices.Equal(got, want) {
					t.Errorf("%s: the losses are %v, want %v", what, got, want)
				}
			}
			if p := fed.Problem; train.FedBytes(plain) != 0 || train.FedBytes(fed) < int64(8*p.Batch*p.Steps) {
				t.Errorf("the next minibatch takes %d bytes where it is fed, else %d", train.FedBytes(fed), train.FedBytes(plain))
			}
			same("from the beginning", plain, fed, 5)
			samePass(t, plain, fed)
			same("after a pass", plain, fed, 2)
			var scores [2]train.Score
			for i, tr := range []*train.Trainer{plain, fed} {
				scores[i] = score(t, tr, setup(tr.Device).Source)
			}
			if scores[0] != scores[1] {
				t.Errorf("the scores are %+v", scores)
			}
			same("after an evaluation", plain, fed, 2)
			paths := [2]string{filepath.Join(t.TempDir(), "plain.npz"), filepath.Join(t.TempDir(), "fed.npz")}
			if err := errors.Join(plain.Save(paths[0]), fed.Save(paths[1])); err != nil {
				t.Fatal(err)
			}
			want := losses(t, plain, 4)
			for i, path := range paths {
				for way, d := range map[string]device.Device{"plain": open(t), "fed": devicetest.Fed(open(t))} {
					again := newTrainer(t, setup(d))
					losses(t, again, 3) // Load discards them
					if err := again.Load(path); err != nil {
						t.Fatal(err)
					}
					if got := losses(t, again, 4); !slices.Equal(got, want) {
						t.Errorf("%s, from checkpoint %d: the losses are %v, want %v", way, i, got, want)
					}
				}
			}
			losses(t, fed, 4)
			plain.Optimizer.Rate, fed.Optimizer.Rate = 1e-3, 1e-3
			same("at another rate", plain, fed, 3)
			stop, cancel := context.WithCancel(context.Background())
			cancel()
			if err := fed.Step(stop, 2); !errors.Is(err, context.Canceled) {
				t.Errorf("an interrupted training says %v", err)
			}
			same("after an interrupt", plain, fed, 2)
			losses(t, plain, 7)
			step(t, fed, 7)
			same("after seven iterations at once", plain, fed, 2)
			if plain.Iterations() != fed.Iterations() {
				t.Errorf("%d iterations, want %d", fed.Iterations(), plain.Iterations())
			}
		})
	}
}

// score is tr's score on two minibatches of source.
func score(t *testing.T, tr *train.Trainer, source data.Source) train.Score {
	t.Helper()
	e, err := tr.NewEvaluator(source, tr.Problem.Batch, tr.Problem.Steps, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := e.Evaluate(tr)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// samePass: the passes beside all trainings are on the same minibatch.
func samePass(t *testing.T, trainers ...*train.Trainer) {
	t.Helper()
	var all []float64
	for _, tr := range trainers {
		p, err := train.NewPass(tr)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			t.Fatal("there is no pass")
		}
		defer p.Close()
		if err := p.Load(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(1); err != nil {
			t.Fatal(err)
		}
		loss, err := p.Loss()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, loss)
	}
	if all[0] != all[1] {
		t.Errorf("passes have the losses %v", all)
	}
}

// TestFedReplicas: each replica is fed its part.
func TestFedReplicas(t *testing.T) {
	with := func(fed bool) []float64 {
		devices := replicas(t, 3)
		for i := range devices {
			if fed {
				devices[i] = devicetest.Fed(devices[i])
			}
		}
		s := fedSetups(t)["an embedding, steps that do not count"](open(t))
		s.Replicas = devices
		return losses(t, newTrainer(t, s), 5)
	}
	if got, want := with(true), with(false); !slices.Equal(got, want) {
		t.Errorf("the losses are %v, want %v", got, want)
	}
}

// TestFedEmulated: an emulated GPU that is fed while it trains has the losses of one that is not.
func TestFedEmulated(t *testing.T) {
	compiler, err := emulator.NewCompiler()
	if err != nil {
		t.Skip(err)
	}
	cache := t.TempDir()
	with := func(graph int, wrap func(device.Device) device.Device) []float64 {
		driver, err := emulator.New(8, 1)
		if err != nil {
			t.Fatal(err)
		}
		d := cuda.New(driver, compiler, cache)
		defer d.Close()
		s := setup(t, wrap(d), "naive", "adam:lr=0.01", rnn.BF16)
		s.Technique, s.DeviceKnobs = impl.Lookup("naive"), knob.Params{"graph": graph}
		tr, err := train.New(s)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		return append(losses(t, tr, 4), step(t, tr, 3))
	}
	want := with(0, func(d device.Device) device.Device { return unfed{d} })
	for graph := range 2 {
		if got := with(graph, func(d device.Device) device.Device { return d }); !slices.Equal(got, want) || want[0] == want[3] {
			t.Errorf("graph=%d: the losses are %v, want %v", graph, got, want)
		}
	}
}

// broken has each run that was started end with an error, or fails to start it.
type broken struct {
	device.Device
	start, feed, wait error
}

func (d *broken) Compile(s *schedule.Schedule, k knob.Params) (device.Program, error) {
	p, err := d.Device.Compile(s, k)
	if err != nil {
		return nil, err
	}
	return &brokenProgram{p, p.(device.Fed), d}, nil
}

type brokenProgram struct {
	device.Program
	fed device.Fed
	of  *broken
}

func (p *brokenProgram) Feed(v ...device.Filled) error {
	return errors.Join(p.of.feed, p.fed.Feed(v...))
}
func (p *brokenProgram) Wait() error { return errors.Join(p.of.wait, p.fed.Wait()) }
func (p *brokenProgram) Start() error {
	if p.of.start != nil {
		return p.of.start
	}
	return p.fed.Start()
}

// TestFedFails: the error of a run is reported, wherever it shows first.
func TestFedFails(t *testing.T) {
	lost := device.ErrLost
	for name, b := range map[string]broken{
		"the start":           {start: device.ErrFault},
		"the run":             {wait: device.ErrHang},
		"the feed":            {feed: device.ErrKilled},
		"all after the death": {feed: device.ErrKilled, wait: lost},
		"the run, then feeds": {wait: device.ErrFault, feed: lost},
	} {
		for _, n := range []int{1, 3} {
			d := &broken{Device: devicetest.Fed(open(t))}
			tr := newTrainer(t, setup(t, d, "naive", "sgd:lr=0.1", rnn.FP32))
			step(t, tr, 2)
			d.start, d.feed, d.wait = b.start, b.feed, b.wait
			want := errors.Join(b.start, b.feed, b.wait)
			err := tr.Step(context.Background(), n)
			found := false
			for _, cause := range []error{device.ErrFault, device.ErrHang, device.ErrKilled} {
				found = found || errors.Is(err, cause) && errors.Is(want, cause)
			}
			if !found || !strings.Contains(err.Error(), "iteration 3") || tr.Iterations() != 2 {
				t.Errorf("%s breaks, of %d: %v after %d iterations", name, n, err, tr.Iterations())
			}
		}
	}
}
