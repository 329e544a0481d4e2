package train_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/device"
	"rnnbench/rnn"
	"rnnbench/train"
	"rnnbench/train/data"
)

// spoken is a task of short utterances.
const spoken = "speech:phonemes=1:hop=18:bands=12:utterances=60"

// listener is a network that learns to spell, by tech.
func listener(t *testing.T, d device.Device, tech, task string) train.Setup {
	t.Helper()
	s := setup(t, d, tech, "adam:lr=0.02:clip=1", rnn.FP32)
	s.Problem.Steps, s.Problem.Direction = 26, rnn.BothWays
	var err error
	if s.Source, err = data.Open(task, data.Options{Batch: s.Problem.Batch, Steps: s.Problem.Steps, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSpeech: techniques learn transcripts alike, and go on from a checkpoint bit for bit. Fewer labels
// of held-out utterances are then wrong.
func TestSpeech(t *testing.T) {
	d := open(t)
	whole, parts := newTrainer(t, listener(t, d, "persistent", spoken)), newTrainer(t, listener(t, d, "scc", spoken))
	source, err := data.Open(spoken, data.Options{Batch: 4, Steps: 26, Seed: 3, Held: true})
	if err != nil {
		t.Fatal(err)
	}
	e, err := whole.NewEvaluator(source, 4, 26, 6)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	before, err := e.Evaluate(whole)
	if err != nil || before.LabelErrors < 0.9 || before.Top20 != 0 {
		t.Fatalf("an untrained network: %+v, %v", before, err)
	}
	first := step(t, whole, 1)
	if got := step(t, parts, 1); math.Abs(got-first) > 1e-4*first {
		t.Errorf("the first loss by another technique is %v, not %v", got, first)
	}
	path := filepath.Join(t.TempDir(), "checkpoint.npz")
	if step(t, whole, 100); whole.Save(path) != nil {
		t.Fatal("no checkpoint")
	}
	last := step(t, whole, 150)
	again := newTrainer(t, listener(t, d, "persistent", spoken))
	if err := again.Load(path); err != nil || step(t, again, 150) != last || !(last < first/2) {
		t.Errorf("from %v the loss falls to %v, and in two parts to another (%v)", first, last, err)
	}
	after, err := e.Evaluate(whole)
	if err != nil || after.LabelErrors > 0.7 || after.Loss > before.Loss/2 {
		t.Errorf("held-out utterances: %+v, before %+v, %v", after, before, err)
	}
	if again, err := e.Evaluate(whole); err != nil || again != after {
		t.Errorf("the same evaluation is %+v, then %+v, %v", after, again, err)
	}
}

// TestSpeechReplicas: replicas that share utterances have the loss of one device.
func TestSpeechReplicas(t *testing.T) {
	one := newTrainer(t, listener(t, open(t), "cudnnstyle", spoken))
	s := listener(t, nil, "cudnnstyle", spoken)
	s.Replicas = replicas(t, 3)
	many := newTrainer(t, s)
	for range 5 {
		a, b := step(t, one, 1), step(t, many, 1)
		if math.Abs(a-b) > 1e-3*a {
			t.Errorf("the loss is %v, and %v by replicas", a, b)
		}
	}
}

// TestSpeechPass: the pass alone reads the trainer's transcripts.
func TestSpeechPass(t *testing.T) {
	tr := newTrainer(t, listener(t, open(t), "naive", spoken))
	step(t, tr, 2)
	pass, err := train.NewPass(tr)
	if err != nil {
		t.Fatal(err)
	}
	defer pass.Close()
	if err := pass.Load(); err != nil {
		t.Fatal(err)
	}
	if _, err := pass.Run(1); err != nil {
		t.Fatal(err)
	}
	if loss, err := pass.Loss(); err != nil || !(loss > 0) {
		t.Errorf("the loss is %v, %v", loss, err)
	}
}

// TestSpeechOfFiles: recordings are read as training goes. One that is gone ends it.
func TestSpeechOfFiles(t *testing.T) {
	dir := t.TempDir()
	for i, text := range []string{"ab", "b", "a", "ba"} {
		name := filepath.Join(dir, string(rune('a'+i)))
		if err := errors.Join(os.WriteFile(name+".wav", tone(3600, 300+100*i), 0o666), os.WriteFile(name+".txt", []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	tr := newTrainer(t, listener(t, open(t), "persistent", "speech:"+dir+":hop=18"))
	if first, last := step(t, tr, 1), step(t, tr, 80); !(last < first/2) {
		t.Errorf("the loss falls from %v to %v", first, last)
	}
	if err := os.Remove(filepath.Join(dir, "a.wav")); err != nil {
		t.Fatal(err)
	}
	if err := tr.Step(context.Background(), 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without one of its files: %v", err)
	}
}

// tone is a WAV file of a sine of so many Hz, with 8,000 samples a second.
func tone(samples, hertz int) []byte {
	const rate = 8000
	file := []byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00")
	file = binary.LittleEndian.AppendUint32(file, rate)
	file = binary.LittleEndian.AppendUint32(file, 2*rate)
	file = append(file, "\x02\x00\x10\x00data"...)
	file = binary.LittleEndian.AppendUint32(file, uint32(2*samples))
	for i := range samples {
		file = binary.LittleEndian.AppendUint16(file, uint16(int16(8000*math.Sin(2*math.Pi*float64(hertz*i)/rate))))
	}
	binary.LittleEndian.PutUint32(file[4:], uint32(len(file)-8))
	return file
}
