// Package loop trains a network until its limits say stop. It writes records now and then, and
// keeps a checkpoint.
package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"rnnbench/record"
	"rnnbench/rnn"
	"rnnbench/train"
	"rnnbench/train/data"
)

// A Loop is the training loop of one network.
type Loop struct {
	Trainer    *train.Trainer
	HeldOut    data.Source // nil: nothing is evaluated
	Limits     record.TrainingPlan
	Record     record.Record // the fields that all records share
	Checkpoint string        // file; if it exists, the loop continues from it
	Emit       func(*record.Record) error

	// Recorded is the number of iterations at the newest record; 0: there is none. A process that was
	// killed between a record and its checkpoint has left them. They are trained again, and not recorded.
	Recorded int

	// Over, if set, reports whether the time for this part of the training is over. It is asked
	// after each iteration, or after several where a device overlaps them.
	Over func() bool

	// Reference says where each loss may lie, without a curve, if the plan compares losses.
	Reference *record.Comparison

	evaluator *train.Evaluator
	pass      *interleaved  // nil: the pass is not timed
	last      mark          // of the latest record
	each      time.Duration // shortest time of an iteration so far; 0: unknown
	loss      float64
	read      readings
	curve     []float64 // with a reference, the loss of each iteration
}

// readings are the losses that were read since the latest record.
type readings struct {
	sum  float64
	n    int
	took time.Duration
}

// mostReadings is about how many losses are read for a record, so that their mean is less noisy than the last.
const mostReadings = 16

// A mark is a moment of training.
type mark struct {
	iterations int
	took       time.Duration
}

// ErrOver ends a loop whose time is over. A loop with the same checkpoint continues it.
var ErrOver = errors.New("training: the time for this part of the training is over")

// Run trains until the plan says stop or ctx ends. In the latter case it saves a checkpoint. If its
// time is over, it also writes a record.
func (s *Loop) Run(ctx context.Context) error {
	err := s.begin()
	if s.evaluator != nil {
		defer s.evaluator.Close()
	}
	defer s.pass.close()
	if err != nil {
		return err
	}
	for !s.done() {
		before, n := s.Trainer.Took(), s.block()
		err := s.Trainer.Step(ctx, n)
		if errors.Is(err, context.Canceled) {
			return errors.Join(err, s.save())
		}
		if err == nil && s.Reference != nil {
			err = s.follow()
		}
		took := s.Trainer.Took() - before
		if err == nil {
			s.each = shorter(s.each, took/time.Duration(n))
			err = s.pass.after(took, n)
		}
		if err == nil && s.Reference == nil && s.Trainer.Iterations()%s.apart() == 0 && !s.due() {
			_, err = s.readLoss()
		}
		if err != nil {
			return err
		}
		over := s.Over != nil && s.Over()
		if s.due() || over && s.Reference == nil { // a comparison starts over
			if err := s.report(); err != nil {
				return err
			}
		}
		if over && !s.done() {
			return ErrOver
		}
	}
	return nil
}

// block is the number of iterations to make next without looking at anything in between. A device
// that overlaps them is slower if it waits for the host after each.
func (s *Loop) block() int {
	if s.Reference != nil || !train.Overlaps(s.Trainer) {
		return 1
	}
	n, made := runsIn(s.each), s.Trainer.Iterations()
	n = min(n, s.Limits.Every-made%s.Limits.Every, s.apart()-made%s.apart())
	if s.Limits.Iterations > 0 {
		n = min(n, s.Limits.Iterations-made)
	}
	if s.Recorded > made {
		n = min(n, s.Recorded-made)
	}
	return s.pass.atMost(n)
}

// apart is the number of iterations from one reading of the loss to the next. A reading interrupts a
// device that overlaps iterations, so it does not make its blocks shorter.
func (s *Loop) apart() int {
	n := max(1, s.Limits.Every/mostReadings)
	if train.Overlaps(s.Trainer) {
		n = max(n, mostRuns)
	}
	return n
}

// readLoss reads the loss of the last minibatch.
func (s *Loop) readLoss() (float64, error) {
	before := s.Trainer.Took()
	loss, err := s.Trainer.Loss()
	if err != nil {
		return 0, err
	}
	s.read.sum, s.read.n, s.read.took = s.read.sum+loss, s.read.n+1, s.read.took+s.Trainer.Took()-before
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return 0, fmt.Errorf("the loss is %v after %d iterations: lower the learning rate, or limit gradients by clip=1", loss, s.Trainer.Iterations())
	}
	return loss, nil
}

// runsIn is the number of runs in a block. The very first run is a block of its own.
func runsIn(each time.Duration) int {
	if each == 0 {
		return 1
	}
	return min(mostRuns, 1+int(blockTime/each))
}

// shorter is the shorter one of two times; 0 is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// follow records the loss of an iteration.
func (s *Loop) follow() error {
	loss, err := s.Trainer.Loss()
	s.curve = append(s.curve, loss)
	return err
}

// save writes a checkpoint, unless each iteration is compared: such a training starts over.
func (s *Loop) save() error {
	if s.Reference != nil {
		return nil
	}
	return s.Trainer.Save(s.Checkpoint)
}

// begin continues from the checkpoint, if there is one, and prepares the evaluation.
func (s *Loop) begin() error {
	s.loss = math.Inf(1)
	if _, err := os.Stat(s.Checkpoint); err == nil && s.Reference == nil {
		if err := s.Trainer.Load(s.Checkpoint); err != nil {
			return err
		}
	}
	s.last = s.now()
	var err error
	if s.Limits.Beside {
		if s.pass, err = newInterleaved(s.Trainer); err != nil {
			return err
		}
	}
	if s.HeldOut == nil {
		return nil
	}
	batch, steps := HeldOut(s.Limits, s.Trainer.Problem)
	s.evaluator, err = s.Trainer.NewEvaluator(s.HeldOut, batch, steps, s.Limits.Batches)
	return err
}

// HeldOut is the number of sequences and of steps in held-out minibatches.
func HeldOut(t record.TrainingPlan, p rnn.Problem) (batch, steps int) {
	if t.HeldBatch == 0 {
		return p.Batch, p.Steps
	}
	return t.HeldBatch, max(1, p.Batch*p.Steps/t.HeldBatch)
}

func (s *Loop) now() mark { return mark{s.Trainer.Iterations(), s.Trainer.Took()} }

// done reports whether training is to stop.
func (s *Loop) done() bool {
	n := s.now()
	return s.Limits.Iterations > 0 && n.iterations >= s.Limits.Iterations || n.iterations >= s.Recorded && (s.outOfTime(n) || s.loss <= s.Limits.Loss)
}

func (s *Loop) outOfTime(n mark) bool {
	return s.Limits.Time > 0 && n.took.Seconds() >= s.Limits.Time
}

// due reports whether a record is due: after every Plan.Every iterations, and at the end. Where an
// earlier process wrote one, it is due again.
func (s *Loop) due() bool {
	n := s.now()
	return n.iterations == s.Recorded || n.iterations%s.Limits.Every == 0 || n.iterations == s.Limits.Iterations || n.iterations > s.Recorded && s.outOfTime(n)
}

// report reads the loss, evaluates, and writes a record and a checkpoint. It writes no record of iterations
// that an earlier process has recorded.
func (s *Loop) report() error {
	loss, err := s.readLoss()
	if err != nil {
		return err
	}
	now := s.now()
	iterations := max(1, now.iterations-s.last.iterations)
	r := s.Record
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	r.Training = &record.Training{
		Iterations: now.iterations, Wall: now.took.Seconds(), Frames: int64(now.iterations) * int64(r.Point.Batch) * int64(r.Point.Steps),
		Loss: loss, MeanLoss: s.read.sum / float64(s.read.n), MeanOf: s.read.n, Optimizer: s.Limits.Optimizer, Data: s.Limits.Data, Replicas: s.Limits.Replicas, Repeat: s.Limits.Repeat,
	}
	if s.Reference != nil {
		r.Training.Comparison = &record.Comparison{Curve: s.curve, Loss: s.Reference.Loss, Width: s.Reference.Width}
	}
	r.Training.Beside = s.pass.record(s.read.took / time.Duration(iterations))
	s.read = readings{}
	s.loss = loss
	if s.evaluator != nil {
		score, err := s.evaluator.Evaluate(s.Trainer)
		if err != nil {
			return err
		}
		r.Training.HeldOut = &record.Score{Loss: score.Loss, Top1: score.Top1, Top5: score.Top5, Top20: score.Top20}
		s.loss = score.Loss
	}
	r.Training.Stop = s.Limits.Reached(r.Training)
	each := (now.took - s.last.took).Seconds() / float64(iterations)
	r.Samples = &record.Samples{Iters: []int{now.iterations - s.last.iterations}, Wall: []float64{each}, Device: []float64{}, Clock: []float64{}}
	r.Stats = &record.Stats{N: 1, Min: each, Q1: each, Median: each, Q3: each, Max: each, Mean: each, Level: 0.95, Stop: "max_rounds"}
	r.Rate = &record.Rate{Flops: float64(r.Work.Flops) / each, Bytes: float64(r.Work.Bytes) / each}
	s.last = now
	if now.iterations > s.Recorded || s.Reference != nil || r.Training.Stop != "" { // the limits may have changed since
		if err := s.Emit(&r); err != nil {
			return err
		}
	}
	return s.save()
}
