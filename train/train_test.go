package train_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/device"
	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record/files"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/torch"
	"rnnbench/train"
	"rnnbench/train/data"
)

// An echo asks for the symbol of the step before.
type echo struct {
	batch, steps int
	onehot, on   bool
	seed, at     uint64
}

const symbols = 5

func (e *echo) Shape() data.Shape {
	return data.Shape{Input: symbols, OneHot: e.onehot, Output: symbols, Continues: e.on}
}

func (e *echo) Next(x, target []float32) {
	rng := rand.New(rand.NewPCG(e.seed, e.at))
	e.at++
	clear(x)
	before := make([]int, e.batch)
	for i := range e.steps * e.batch {
		n := rng.IntN(symbols)
		if e.onehot {
			x[i] = float32(n)
		} else {
			x[i*symbols+n] = 1
		}
		target[i] = float32(before[i%e.batch])
		before[i%e.batch] = n
	}
}

func (e *echo) State() []byte { return binary.LittleEndian.AppendUint64(nil, e.at) }
func (e *echo) Restore(b []byte) error {
	if len(b) != 8 {
		return errors.New("no position")
	}
	e.at = binary.LittleEndian.Uint64(b)
	return nil
}

func open(t *testing.T) device.Device {
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// setup is a network that learns to echo.
func setup(t *testing.T, d device.Device, tech, optimizer string, precision rnn.Precision) train.Setup {
	o, err := train.ParseOptimizer(optimizer, precision)
	if err != nil {
		t.Fatal(err)
	}
	return train.Setup{
		Device: d, Technique: impl.Lookup(tech), Optimizer: o, Seed: 1,
		Problem: rnn.Problem{Cell: cell.GRU, Hidden: 16, Layers: 1, Batch: 4, Steps: 8, Precision: precision},
		Source:  &echo{batch: 4, steps: 8, seed: 7},
	}
}

func newTrainer(t *testing.T, s train.Setup) *train.Trainer {
	tr, err := train.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func step(t *testing.T, tr *train.Trainer, n int) float64 {
	err := tr.Step(context.Background(), n)
	loss, unread := tr.Loss()
	if err = errors.Join(err, unread); err != nil {
		t.Fatal(err)
	}
	return loss
}

// TestEvents: every technique learns an embedding and its moments alike. The first loss is that of
// one softmax over pixels, whichever steps do not count. Training continues from a checkpoint bit
// for bit.
func TestEvents(t *testing.T) {
	d := open(t)
	const spec = "events:recordings=3:burnin=5:ahead=9:dimension=6"
	o := data.Options{Batch: 4, Steps: 20, Seed: 3}
	trainer := func(tech string) *train.Trainer {
		s := setup(t, d, tech, "adam:lr=0.01", rnn.FP32)
		s.Problem.Cell, s.Problem.Steps = cell.LSLSTM, o.Steps
		var err error
		if s.Source, err = data.Open(spec, o); err != nil {
			t.Fatal(err)
		}
		return newTrainer(t, s)
	}
	whole, parts := trainer("scan"), trainer("naive")
	first := step(t, whole, 1)
	if math.Abs(first-math.Log(34*34)) > 0.2 {
		t.Errorf("the first loss is %v, want about log 34²", first)
	}
	if got := step(t, parts, 1); math.Abs(got-first) > 1e-5 {
		t.Errorf("the first loss by another technique is %v, not %v", got, first)
	}
	path := filepath.Join(t.TempDir(), "checkpoint.npz")
	if step(t, whole, 4); whole.Save(path) != nil {
		t.Fatal("no checkpoint")
	}
	last := step(t, whole, 60)
	again := trainer("scan")
	if err := again.Load(path); err != nil || step(t, again, 60) != last || !(last < first-0.5) {
		t.Errorf("from %v the loss falls to %v, and in two parts to another (%v)", first, last, err)
	}
	held := o
	held.Held = true
	source, err := data.Open(spec, held)
	if err != nil {
		t.Fatal(err)
	}
	e, err := whole.NewEvaluator(source, o.Batch, o.Steps, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	score, err := e.Evaluate(whole)
	if err != nil || score.Top1 > score.Top5 || score.Top5 > score.Top20 || score.Top20 <= 20./34/34 || score.Top20 > 0.9 || score.Loss < 2 {
		t.Errorf("on other recordings: %+v, %v", score, err)
	}
}

// TestTrainerLearns: each optimiser learns the task, with weights of 16 bits too, and does as well
// on other data.
func TestTrainerLearns(t *testing.T) {
	d := open(t)
	for _, c := range []struct {
		tech, optimizer string
		precision       rnn.Precision
		direction       rnn.Direction
	}{
		{"persistent", "adam:lr=0.02", rnn.FP32, rnn.FromFirst},
		{"cudnnstyle", "adam:lr=0.02:clip=0.5", rnn.FP16, rnn.FromFirst},
		{"scc", "sgd:lr=1:momentum=0.9:clip=1", rnn.BF16, rnn.FromFirst},
		{"persistent", "sgd:lr=1:momentum=0.9:nesterov=1:clip=1", rnn.FP16, rnn.FromFirst},
		{"persistent", "adam:lr=0.02", rnn.FP32, rnn.BothWays},
		{"cudnnstyle", "adam:lr=0.02", rnn.FP32, rnn.Alternating},
	} {
		s := setup(t, d, c.tech, c.optimizer, c.precision)
		if s.Problem.Direction = c.direction; c.direction == rnn.Alternating {
			s.Problem.Layers = 2
		}
		tr := newTrainer(t, s)
		first := step(t, tr, 1)
		last := step(t, tr, 249)
		if tr.Iterations() != 250 || math.Abs(first-math.Log(symbols)) > 0.3 || !(last < 0.3) {
			t.Errorf("%v: the loss is %.3f, and %.3f after %d iterations", c, first, last, tr.Iterations())
		}
		e, err := tr.NewEvaluator(&echo{batch: 4, steps: 8, seed: 8}, 4, 8, 5)
		if err != nil {
			t.Fatal(err)
		}
		score, err := e.Evaluate(tr)
		if err != nil || !(score.Loss < 0.5) || score.Top1 < 0.8 || score.Top5 != 1 || score.Top20 != 1 {
			t.Errorf("%v: on other data: %+v, %v", c, score, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckpoint: training goes on from a checkpoint as if it had never stopped.
func TestCheckpoint(t *testing.T) {
	d, path := open(t), filepath.Join(t.TempDir(), "c.npz")
	for _, precision := range []rnn.Precision{rnn.FP32, rnn.BF16} {
		for _, continues := range []bool{false, true} {
			optimizer := "adam:lr=0.02"
			if continues {
				optimizer = "sgd:lr=0.5:momentum=0.9:nesterov=1:anneal=1.5:epoch=2:clip=1"
			}
			s := setup(t, d, "persistent", optimizer, precision)
			s.Source = &echo{batch: 4, steps: 8, seed: 7, on: continues, onehot: continues}
			if continues && precision == rnn.FP32 {
				s.Technique, s.Problem.History = impl.Lookup("scc"), 11
			}
			whole := newTrainer(t, s)
			step(t, whole, 5)
			if err := whole.Save(path); err != nil {
				t.Fatal(err)
			}
			want := step(t, whole, 7)
			s.Source, s.Seed = &echo{batch: 4, steps: 8, seed: 7, on: continues, onehot: continues}, 99
			again := newTrainer(t, s)
			step(t, again, 1)
			if err := again.Load(path); err != nil {
				t.Fatal(err)
			}
			if got := step(t, again, 7); got != want || again.Iterations() != 12 || again.Took() <= 0 {
				t.Errorf("%v, continues %v: the loss after a checkpoint is %v, else %v; %d iterations", precision, continues, got, want, again.Iterations())
			}
		}
	}
}

// TestCheckpointRefused: a broken file, or one of another network, is refused in a sentence, and
// training goes on.
func TestCheckpointRefused(t *testing.T) {
	d, dir := open(t), t.TempDir()
	s := setup(t, d, "naive", "sgd", rnn.FP32)
	tr := newTrainer(t, s)
	good := filepath.Join(dir, "good.npz")
	if err := tr.Save(good); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	larger, faster := s, s
	larger.Problem.Hidden, larger.Source = 17, &echo{batch: 4, steps: 8}
	faster.Optimizer.Rate, faster.Source = 7, &echo{batch: 4, steps: 8}
	flipped := append([]byte{}, data...)
	flipped[len(data)/2] ^= 0xff
	for name, c := range map[string]struct {
		tr   *train.Trainer
		path string
		want string
	}{
		"none":          {tr, filepath.Join(dir, "none.npz"), "cannot be read"},
		"empty":         {tr, write("empty.npz", nil), "cannot be read"},
		"half":          {tr, write("half.npz", data[:len(data)/2]), "cannot be read"},
		"flipped":       {tr, write("flipped.npz", flipped), "array"},
		"other network": {newTrainer(t, larger), good, "another network"},
		"other rate":    {newTrainer(t, faster), good, "not by sgd:lr=7"},
	} {
		if err := c.tr.Load(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		step(t, c.tr, 1)
	}
}

// TestHostileCheckpoint: a checkpoint that claims what cannot be is refused, and takes no memory.
func TestHostileCheckpoint(t *testing.T) {
	tr := newTrainer(t, setup(t, open(t), "naive", "sgd", rnn.FP32))
	path := filepath.Join(t.TempDir(), "checkpoint.npz")
	if err := tr.Save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	about, err := torch.ReadBytes(bytes.NewReader(data), int64(len(data)), "about", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	save := func(about string, position []int64) {
		t.Helper()
		var text []int64
		for _, b := range []byte(about) {
			text = append(text, int64(b))
		}
		err := files.Write(path, func(w io.Writer) error {
			return torch.WriteNPZ(w, []torch.Array{{Name: "about", Shape: []int{len(text)}, Values: text}, {Name: "position", Shape: []int{len(position)}, Values: position}})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{`"iterations":0`, `"iterations":-5`, "it is damaged: it counts -5 iterations"},
		{`"iterations":0`, `"iterations":4611686018427387904`, "it is damaged: it counts 4611686018427387904 iterations"},
		{`"seconds":0`, `"seconds":-1e9`, "it is damaged: it says that training took -1e+09 seconds"},
		{`"version":1`, `"version":7`, "it is of version 7"},
		{"", "", "there is no array"}, // what it says can be, but its parameters are missing
	} {
		changed := strings.Replace(string(about), c.from, c.to, 1)
		if c.from != "" && changed == string(about) {
			t.Fatalf("%s does not say %s", about, c.from)
		}
		save(changed, make([]int64, 8))
		if err := tr.Load(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.to, err, c.want)
		}
	}
	step(t, tr, 1)
}

// TestParseOptimizer: an optimiser reads back as it is spelled, and invalid settings are refused.
func TestParseOptimizer(t *testing.T) {
	for spec, want := range map[string]string{
		"adam": "adam:lr=0.001", "adam:lr=1e-2:beta1=0.5:clip=2": "adam:lr=0.01:beta1=0.5:clip=2", "sgd:momentum=0.9": "sgd:lr=0.1:momentum=0.9",
		"adam:epoch=1e3:anneal=1.2": "adam:lr=0.001:anneal=1.2:epoch=1000", "adam:anneal=1:epoch=0": "adam:lr=0.001",
		"sgd:nesterov=1:momentum=0.5": "sgd:lr=0.1:momentum=0.5:nesterov=1", "sgd:momentum=0.5:nesterov=0": "sgd:lr=0.1:momentum=0.5",
	} {
		o, err := train.ParseOptimizer(spec, rnn.FP32)
		if err != nil || o.String() != want {
			t.Errorf("%s is %s, %v, not %s", spec, o, err, want)
			continue
		}
		if again, err := train.ParseOptimizer(o.String(), rnn.FP32); err != nil || again != o {
			t.Errorf("%s reads back as %+v, %v, not %+v", o, again, err, o)
		}
	}
	for _, bad := range []string{"", "adm", "adam:lr", "adam:lr=x", "adam:momentum=0.9", "sgd:lr=0", "sgd:lr=-1", "adam:beta2=1", "adam:eps=0", "sgd:lr=NaN", "sgd:nesterov=1", "sgd:momentum=0.9:nesterov=2", "sgd:momentum=0.9:nesterov=0.5", "adam:nesterov=1",
		"sgd:anneal=2", "sgd:epoch=5", "sgd:anneal=0.5:epoch=5", "adam:anneal=2:epoch=1.5", "adam:anneal=1:epoch=2"} {
		if o, err := train.ParseOptimizer(bad, rnn.FP32); err == nil {
			t.Errorf("%q is accepted: %+v", bad, o)
		}
	}
	if o, err := train.ParseOptimizer("adam", rnn.FP16); err != nil || o.LossScale != 1024 || !o.Norm {
		t.Errorf("in fp16: %+v, %v", o, err)
	}
}
