package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// little is a training of a network and a task that take milliseconds.
const little = "train --data copy:delay=2:length=2:symbols=3 -H 12 -B 4 -T 8 --cell gru --threads 1 --no-hostname --held-out 1"

// TestTrain: networks of two techniques learn alike, and records, table and figure show the loss.
func TestTrain(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, little+" --impl naive,persistent --precision fp32,bf16 --iterations 60 --every 20 --optimizer adam:lr=0.02:clip=1").want(t, exit.Done,
		[]string{"iterations", "held-out", "persistent", "skipped"}, []string{"iteration 60, loss", "iterations/s", "checkpoints in"})
	_, recs, _, err := record.Read("out")
	if err != nil {
		t.Fatal(err)
	}
	loss := map[string][]float64{}
	for _, r := range recs {
		if r.Status != record.OK {
			continue
		}
		key := r.Impl.Label + " " + r.Point.Precision
		loss[key] = append(loss[key], r.Training.Loss)
		if r.Training.HeldOut == nil || r.Training.Wall <= 0 || r.Training.Frames != int64(32*r.Training.Iterations) || r.Seconds() <= 0 {
			t.Errorf("%s: %+v", key, *r.Training)
		}
	}
	a, b := loss["naive fp32"], loss["persistent fp32"]
	if len(a) != 3 || len(b) != 3 || len(loss["persistent bf16"]) != 3 || a[2] >= a[0] || a[2]-b[2] > 1e-3 || b[2]-a[2] > 1e-3 {
		t.Errorf("losses are %v", loss)
	}
	rnnbench(t, "plot --x wall --y loss -f loss.svg").want(t, exit.Done, nil, []string{"wrote loss.svg"})
	rnnbench(t, "show -o csv").want(t, exit.Done, []string{"held_out_loss", "iterations"}, nil)
}

// TestTrainResumes: a resumed run has the losses of an uninterrupted one.
func TestTrainResumes(t *testing.T) {
	t.Chdir(t.TempDir())
	line := little + " --impl persistent --every 10 --optimizer sgd:lr=0.5:momentum=0.9"
	rnnbench(t, line+" --iterations 40 --out whole").want(t, exit.Done, nil, nil)
	rnnbench(t, line+" --iterations 20 --out parts").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume parts --iterations 40 --threads 1").want(t, exit.Done, nil, []string{"iteration 40"})
	end := func(dir string) float64 {
		_, recs, _, err := record.Read(dir)
		if err != nil || len(recs) != 4 {
			t.Fatalf("%s has %d records: %v", dir, len(recs), err)
		}
		return recs[3].Training.Loss
	}
	if whole, parts := end("whole"), end("parts"); whole != parts {
		t.Errorf("in one run the loss is %v, in two %v", whole, parts)
	}
	checkpoint, err := filepath.Glob("parts/*/checkpoint-1.npz")
	if err != nil || len(checkpoint) != 1 {
		t.Fatal(checkpoint, err)
	}
	if err := os.WriteFile(checkpoint[0], []byte("broken"), 0o666); err != nil {
		t.Fatal(err)
	}
	rnnbench(t, "train --resume parts --iterations 50 --threads 1").want(t, exit.Error, nil, []string{"checkpoint", "cannot be read"})
}

// TestTrainHistory: errors flow back through steps of earlier minibatches, also in a resumed run.
// A technique that keeps no steps is skipped.
func TestTrainHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("book.txt", bytes.Repeat([]byte("a text that goes on and on; "), 100), 0o666); err != nil {
		t.Fatal(err)
	}
	line := "train --data text:book.txt -H 12 -B 2 -T 8 --cell lstm-c --history 8 --threads 1 --no-hostname --every 10 --held-out 1 --optimizer sgd:lr=1:clip=1"
	rnnbench(t, line+" --impl scc,naive --iterations 40 --out whole").want(t, exit.Done, []string{"skipped"}, []string{"iteration 40"})
	rnnbench(t, line+" --impl scc --iterations 20 --out parts").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume parts --iterations 40 --threads 1").want(t, exit.Done, nil, []string{"iteration 40"})
	loss := func(dir string) (last float64) {
		_, recs, _, err := record.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			if r.Status == record.OK {
				last = r.Training.Loss
			}
			if r.Point.History != 8 {
				t.Errorf("a record of %v", r.Point)
			}
		}
		return last
	}
	if whole, parts := loss("whole"), loss("parts"); whole != parts || whole == 0 {
		t.Errorf("in one run the loss is %v, in two %v", whole, parts)
	}
}

// TestTrainRefuses: mistakes are reported before anything is trained.
func TestTrainRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for flags, want := range map[string]string{
		"--data coppy":               "choose one of copy",
		"--data copy:delay=100 -T 8": "set steps to",
		"--optimizer adamw":          "choose one of sgd, adam",
		"--optimizer adam:lr=0":      "lr is 0",
		"--iterations 0":             "would never stop",
		"--iterations -1":            "cannot be negative",
		"--every -1":                 "cannot be negative",
		"--resume nothing":           "nothing",
		"--history 4":                "do not continue the ones before",
		"--history -4":               "history",
	} {
		o := rnnbench(t, "train --threads 1 "+flags)
		if o.code == exit.Done || o.code == exit.Usage != (flags != "--resume nothing") {
			t.Errorf("train %s exits with %d", flags, o.code)
		}
		o.want(t, o.code, nil, []string{want})
	}
	rnnbench(t, "sweep --impl naive -H 4 -B 1 -T 2 --threads 1 "+quickly).want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume out").want(t, exit.Usage, nil, []string{"not a run of train"})
}

// TestTrainBeside: --beside times the pass, also in a resumed run.
func TestTrainBeside(t *testing.T) {
	t.Chdir(t.TempDir())
	rnnbench(t, little+" --impl persistent --every 300 --iterations 300 --beside").want(t, exit.Done, nil, []string{"iteration 300", "% over the pass"})
	rnnbench(t, "train --resume out --iterations 600 --threads 1").want(t, exit.Done, nil, []string{"iteration 600", "% over the pass"})
	rnnbench(t, "train --resume out --iterations 900 --threads 1 --beside=false").want(t, exit.Done, nil, []string{"iteration 900"})
	_, recs, _, err := record.Read("out/latest")
	if err != nil || len(recs) != 3 || recs[0].Training.Beside == nil || recs[1].Training.Beside == nil || recs[2].Training.Beside != nil {
		t.Errorf("%d records: %v", len(recs), err)
	}
}
