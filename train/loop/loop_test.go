package loop

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"rnnbench/device/cpu"
	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/train"
	"rnnbench/train/data"
)

// newLoop is a network that learns to echo, and the records that its loop emits.
func newLoop(t *testing.T, p record.TrainingPlan, held bool) (*Loop, *[]record.Record) {
	t.Helper()
	return newLoopOf(t, cell.GRU, "sgd:lr=0.5", p, held)
}

// newLoopOf is newLoop of a cell by an optimizer.
func newLoopOf(t *testing.T, c *cell.Cell, optimizer string, p record.TrainingPlan, held bool) (*Loop, *[]record.Record) {
	t.Helper()
	d, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	o, err := train.ParseOptimizer(optimizer, rnn.FP32)
	if err != nil {
		t.Fatal(err)
	}
	source := func(held bool) data.Source {
		s, err := data.Open("echo:symbols=3", data.Options{Batch: 2, Steps: 5, Seed: 1, Held: held})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	tr, err := train.New(train.Setup{Device: d, Technique: impl.Lookup("naive"), Optimizer: o, Seed: 1, Source: source(false),
		Problem: rnn.Problem{Cell: c, Hidden: 7, Layers: 1, Batch: 2, Steps: 5}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	var recs []record.Record
	s := &Loop{Trainer: tr, Limits: p, Checkpoint: filepath.Join(t.TempDir(), "c.npz"), Emit: func(r *record.Record) error {
		recs = append(recs, *r)
		return nil
	}}
	s.Record.Point.Batch, s.Record.Point.Steps, s.Record.Work.Flops = 2, 5, 1000
	if held {
		s.HeldOut = source(true)
	}
	return s, &recs
}

// TestRecordsOfTraining: records come after every Every iterations, and at the end. Each has the frames of
// all iterations so far, and the time of an iteration since the record before.
func TestRecordsOfTraining(t *testing.T) {
	s, recs := newLoop(t, record.TrainingPlan{Iterations: 7, Every: 3}, false)
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []int{3, 6, 7}
	if len(*recs) != len(want) {
		t.Fatalf("%d records, want %d", len(*recs), len(want))
	}
	before := record.Training{}
	for i, r := range *recs {
		tr := r.Training
		if tr.Iterations != want[i] || tr.Frames != int64(want[i]*2*5) || (tr.Stop == "iterations") != (i == 2) {
			t.Errorf("record %d: %d iterations, %d frames, stop %q", i, tr.Iterations, tr.Frames, tr.Stop)
		}
		made := tr.Iterations - before.Iterations
		each := (tr.Wall - before.Wall) / float64(made)
		if math.Abs(r.Stats.Median-each) > 1e-9 || r.Samples.Iters[0] != made || math.Abs(r.Rate.Flops*each-1000) > 1e-3 {
			t.Errorf("record %d: an iteration takes %v of %d, want %v of %d", i, r.Stats.Median, r.Samples.Iters[0], each, made)
		}
		before = *tr
	}
}

// TestStopsByHeldOutLoss: where held-out data are evaluated, their loss ends training, and not that of the
// minibatch.
func TestStopsByHeldOutLoss(t *testing.T) {
	const limit = 0.8
	s, recs := newLoop(t, record.TrainingPlan{Iterations: 400, Every: 1, Batches: 4, Loss: limit}, true)
	if err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	apart := 0
	for i, r := range *recs {
		held, last := r.Training.HeldOut.Loss <= limit, i == len(*recs)-1
		if held != last || (r.Training.Stop == "loss") != last {
			t.Errorf("after %d iterations: a held-out loss of %v, stop %q, last %t", r.Training.Iterations, r.Training.HeldOut.Loss, r.Training.Stop, last)
		}
		if held != (r.Training.Loss <= limit) {
			apart++
		}
	}
	if apart == 0 {
		t.Error("both losses reach the limit at once, so this test shows nothing")
	}
}

// TestHeldOutLossDiverges: the update after the last minibatch, whose loss was a number, makes weights so
// large that the loss on held-out data is none.
func TestHeldOutLossDiverges(t *testing.T) {
	s, recs := newLoopOf(t, cell.RNNReLU, "adam:lr=1e9", record.TrainingPlan{Iterations: 1, Every: 1, Batches: 1}, true)
	err := s.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "the loss on held-out data is") || !strings.Contains(err.Error(), "lower the learning rate") {
		t.Errorf("the training ended with %v", err)
	}
	if len(*recs) != 0 {
		t.Errorf("it emitted %d records", len(*recs))
	}
}

// TestOverRecords: when its time is over, a loop writes a record and says so.
func TestOverRecords(t *testing.T) {
	s, recs := newLoop(t, record.TrainingPlan{Iterations: 100, Every: 50}, false)
	s.Over = func() bool { return s.Trainer.Iterations() >= 4 }
	if err := s.Run(context.Background()); !errors.Is(err, ErrOver) || len(*recs) != 1 || (*recs)[0].Training.Iterations != 4 {
		t.Errorf("%v, records %v", err, *recs)
	}
}
