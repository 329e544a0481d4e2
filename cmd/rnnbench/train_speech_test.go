package main

import (
	"testing"

	"rnnbench/internal/exit"
	"rnnbench/record"
)

// TestTrainSpeech: techniques learn to spell utterances alike, and lines, records, table and figure show the
// label error rate. A resumed run has the losses of an uninterrupted one.
func TestTrainSpeech(t *testing.T) {
	t.Chdir(t.TempDir())
	line := "train --data speech:phonemes=1:hop=18:bands=9:utterances=50 -H 7 -B 3 -T 26 --cell gru --direction both --threads 1 --no-hostname --held-out 2 --every 10 --optimizer adam:lr=0.02"
	rnnbench(t, line+" --impl naive,persistent --iterations 40 --out whole").want(t, exit.Done,
		[]string{"label errors", "transcript=1"}, []string{"iteration 40, loss", "label errors"})
	rnnbench(t, line+" --impl persistent --iterations 20 --out parts").want(t, exit.Done, nil, nil)
	rnnbench(t, "train --resume parts --iterations 40 --threads 1").want(t, exit.Done, nil, []string{"iteration 40"})
	read := func(dir string) []record.Record {
		_, recs, _, err := record.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		return recs
	}
	whole, parts := read("whole"), read("parts")
	if len(whole) != 8 || len(parts) != 4 {
		t.Fatalf("%d records, and %d of two parts", len(whole), len(parts))
	}
	for i, r := range whole {
		one := r.Training
		if r.Point.Transcript != 1 || r.Point.Output != 15 || one.HeldOut == nil || one.HeldOut.LabelErrors == nil || one.HeldOut.Top1 != 0 {
			t.Fatalf("%v: %+v", r.Point, one)
		}
		if i < 4 {
			continue
		}
		if naive := whole[i-4].Training; one.Loss-naive.Loss > 1e-3 || naive.Loss-one.Loss > 1e-3 {
			t.Errorf("after %d iterations the losses are %v and %v", one.Iterations, naive.Loss, one.Loss)
		}
		if again := parts[i-4].Training; again.Loss != one.Loss || *again.HeldOut.LabelErrors != *one.HeldOut.LabelErrors {
			t.Errorf("in one run %+v, in two %+v", one, again)
		}
	}
	rnnbench(t, "plot --x wall --y label-errors -f errors.svg whole").want(t, exit.Done, nil, []string{"wrote errors.svg"})
	rnnbench(t, "show -o csv whole").want(t, exit.Done, []string{"pct_label_errors"}, nil)
	rnnbench(t, line+" --impl persistent --history 4").want(t, exit.Usage, nil, []string{"set history to 0"})
	rnnbench(t, "train --data speech -H 7").want(t, exit.Usage, nil, []string{"set steps to 202"})
}

// TestTranscriptRefuses: what does not go with transcripts, or has none, is refused or skipped with the reason.
func TestTranscriptRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	const point = "--impl naive --cell gru -H 5 -B 2 -T 6 --output 4 --transcript 2 --threads 1"
	rnnbench(t, "verify "+point+" --pass train").want(t, exit.Done, []string{"transcript=2", "ok"}, nil)
	rnnbench(t, "verify "+point+" --groups 2").want(t, exit.Usage, nil, []string{"set groups to none"})
	rnnbench(t, "verify "+point+" --output none").want(t, exit.Usage, nil, []string{"set output to 2 or more"})
	rnnbench(t, "export "+point+" -f layer.npz").want(t, exit.Done, nil, []string{"wrote layer.npz"})
}

// TestDense: a network with a fully connected layer is verified, trained and exported, and refused without an
// output layer.
func TestDense(t *testing.T) {
	t.Chdir(t.TempDir())
	const point = "--impl naive,persistent --cell gru -H 5 -B 2 -T 6 --output 4 --dense 7 --threads 1"
	rnnbench(t, "verify "+point+" --pass train").want(t, exit.Done, []string{"dense=7", "ok"}, nil)
	rnnbench(t, "verify "+point+" --output none").want(t, exit.Usage, nil, []string{"set output, or dense to none"})
	rnnbench(t, "verify "+point+" --dense -1").want(t, exit.Usage, nil, []string{"--dense"})
	rnnbench(t, "export --impl naive --cell gru -H 5 -B 2 -T 6 --output 4 --dense 7 -f layer.npz").want(t, exit.Done, nil, []string{"wrote layer.npz"})
	line := "train --data speech:phonemes=1:hop=18:bands=9:utterances=50 -H 7 -B 3 -T 26 --cell gru --lookahead 3 --dense 8 --threads 1 --no-hostname --held-out 1"
	rnnbench(t, line+" --impl persistent --iterations 4 --out out").want(t, exit.Done, []string{"dense=8", "lookahead=3"}, nil)
}
