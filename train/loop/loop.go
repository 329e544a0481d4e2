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

	"rnnbench/plots/quantity"
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
func (l *Loop) Run(ctx context.Context) error {
	err := l.begin()
	if l.evaluator != nil {
		defer l.evaluator.Close()
	}
	defer l.pass.close()
	if err != nil {
		return err
	}
	for !l.done() {
		before, n := l.Trainer.Took(), l.block()
		err := l.Trainer.Step(ctx, n)
		if errors.Is(err, context.Canceled) {
			return errors.Join(err, l.save())
		}
		if err == nil && l.Reference != nil {
			err = l.follow()
		}
		took := l.Trainer.Took() - before
		if err == nil {
			l.each = shorter(l.each, took/time.Duration(n))
			err = l.pass.after(took, n)
		}
		if err == nil && l.Reference == nil && l.Trainer.Iterations()%l.apart() == 0 && !l.due() {
			_, err = l.readLoss()
		}
		if err != nil {
			return err
		}
		over := l.Over != nil && l.Over()
		if l.due() || over && l.Reference == nil { // a comparison starts over
			if err := l.report(); err != nil {
				return err
			}
		}
		if over && !l.done() {
			return ErrOver
		}
	}
	return nil
}

// block is the number of iterations to make next without looking at anything in between. A device
// that overlaps them is slower if it waits for the host after each.
func (l *Loop) block() int {
	if l.Reference != nil || !train.Overlaps(l.Trainer) {
		return 1
	}
	n, made := runsIn(l.each), l.Trainer.Iterations()
	if train.Convergence(l.Trainer) != nil {
		n = checked - made%checked
	}
	n = min(n, l.Limits.Every-made%l.Limits.Every, l.apart()-made%l.apart())
	if l.Limits.Iterations > 0 {
		n = min(n, l.Limits.Iterations-made)
	}
	if l.Recorded > made {
		n = min(n, l.Recorded-made)
	}
	return l.pass.atMost(n)
}

// checked is the number of iterations for each check of an iterative technique, where a device overlaps them.
// It does not depend on their time, so that a training in parts is checked as one in a piece.
const checked = 16

// solving gives r the work of as many iterations of an iterative technique as it takes now.
func (l *Loop) solving(r *record.Record) error {
	t := l.Trainer
	_, s, err := rnn.Layout(t.Technique, t.Problem, train.Settings(t))
	if err == nil {
		r.Work.Executed, r.Work.Bytes, r.Work.Ops = s.FLOPs(), s.Traffic(), len(s.Nodes)
	}
	return err
}

// apart is the number of iterations from one reading of the loss to the next. A reading interrupts a
// device that overlaps iterations, so it does not make its blocks shorter.
func (l *Loop) apart() int {
	n := max(1, l.Limits.Every/mostReadings)
	if train.Overlaps(l.Trainer) {
		n = max(n, mostRuns)
	}
	return n
}

// readLoss reads the loss of the last minibatch.
func (l *Loop) readLoss() (float64, error) {
	before := l.Trainer.Took()
	loss, err := l.Trainer.Loss()
	if err != nil {
		return 0, err
	}
	l.read.sum, l.read.n, l.read.took = l.read.sum+loss, l.read.n+1, l.read.took+l.Trainer.Took()-before
	return loss, l.finite("the loss", loss)
}

// finite is an error if a loss is infinite or no number.
func (l *Loop) finite(name string, loss float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("%s is %v after %s: lower the learning rate, or limit gradients by clip=1", name, loss, quantity.Plural(l.Trainer.Iterations(), "iteration"))
	}
	return nil
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
func (l *Loop) follow() error {
	loss, err := l.Trainer.Loss()
	l.curve = append(l.curve, loss)
	return err
}

// save writes a checkpoint, unless each iteration is compared: such a training starts over.
func (l *Loop) save() error {
	if l.Reference != nil {
		return nil
	}
	return l.Trainer.Save(l.Checkpoint)
}

// begin continues from the checkpoint, if there is one, and prepares the evaluation.
func (l *Loop) begin() error {
	l.loss = math.Inf(1)
	if _, err := os.Stat(l.Checkpoint); err == nil && l.Reference == nil {
		if err := l.Trainer.Load(l.Checkpoint); err != nil {
			return err
		}
	}
	l.last = l.now()
	var err error
	if l.Limits.Beside {
		if l.pass, err = newInterleaved(l.Trainer); err != nil {
			return err
		}
	}
	if l.HeldOut == nil {
		return nil
	}
	batch, steps := HeldOut(l.Limits, l.Trainer.Problem)
	l.evaluator, err = l.Trainer.NewEvaluator(l.HeldOut, batch, steps, l.Limits.Batches)
	return err
}

// HeldOut is the number of sequences and of steps in held-out minibatches.
func HeldOut(t record.TrainingPlan, p rnn.Problem) (batch, steps int) {
	if t.HeldBatch == 0 {
		return p.Batch, p.Steps
	}
	return t.HeldBatch, max(1, p.Batch*p.Steps/t.HeldBatch)
}

func (l *Loop) now() mark { return mark{l.Trainer.Iterations(), l.Trainer.Took()} }

// done reports whether training is to stop.
func (l *Loop) done() bool {
	n := l.now()
	return l.Limits.Iterations > 0 && n.iterations >= l.Limits.Iterations || n.iterations >= l.Recorded && (l.outOfTime(n) || l.loss <= l.Limits.Loss)
}

func (l *Loop) outOfTime(n mark) bool {
	return l.Limits.Time > 0 && n.took.Seconds() >= l.Limits.Time
}

// due reports whether a record is due: after every Plan.Every iterations, and at the end. Where an
// earlier process wrote one, it is due again.
func (l *Loop) due() bool {
	n := l.now()
	return n.iterations == l.Recorded || n.iterations%l.Limits.Every == 0 || n.iterations == l.Limits.Iterations || n.iterations > l.Recorded && l.outOfTime(n)
}

// report reads the loss, evaluates, and writes a record and a checkpoint. It writes no record of iterations
// that an earlier process has recorded.
func (l *Loop) report() error {
	loss, err := l.readLoss()
	if err != nil {
		return err
	}
	now := l.now()
	iterations := max(1, now.iterations-l.last.iterations)
	r := l.Record
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	r.Training = &record.Training{
		Iterations: now.iterations, Wall: now.took.Seconds(), Frames: int64(now.iterations) * int64(r.Point.Batch) * int64(r.Point.Steps),
		Loss: loss, MeanLoss: l.read.sum / float64(l.read.n), MeanOf: l.read.n, Optimizer: l.Limits.Optimizer, Data: l.Limits.Data, Glorot: l.Limits.Glorot, Replicas: l.Limits.Replicas, Repeat: l.Limits.Repeat,
	}
	if l.Reference != nil {
		r.Training.Comparison = &record.Comparison{Curve: l.curve, Loss: l.Reference.Loss, Width: l.Reference.Width}
	}
	if c := train.Convergence(l.Trainer); c != nil {
		r.Training.Convergence = c
		if err := l.solving(&r); err != nil {
			return err
		}
	}
	r.Training.Beside = l.pass.record(l.read.took / time.Duration(iterations))
	l.read = readings{}
	l.loss = loss
	if l.evaluator != nil {
		score, err := l.evaluator.Evaluate(l.Trainer)
		if err == nil {
			err = l.finite("the loss on held-out data", score.Loss)
		}
		if err != nil {
			return err
		}
		r.Training.HeldOut = &record.Score{Loss: score.Loss, Top1: score.Top1, Top5: score.Top5, Top20: score.Top20}
		if l.Trainer.Problem.Transcript > 0 {
			r.Training.HeldOut.LabelErrors = &score.LabelErrors
		}
		l.loss = score.Loss
	}
	r.Training.Stop = l.Limits.Reached(r.Training)
	each := (now.took - l.last.took).Seconds() / float64(iterations)
	r.Samples = &record.Samples{Iters: []int{now.iterations - l.last.iterations}, Wall: []float64{each}, Device: []float64{}, Clock: []float64{}}
	r.Stats = &record.Stats{N: 1, Min: each, Q1: each, Median: each, Q3: each, Max: each, Mean: each, Level: 0.95, Stop: "max_rounds"}
	r.Rate = &record.Rate{Flops: float64(r.Work.Flops) / each, Bytes: float64(r.Work.Bytes) / each}
	l.last = now
	if now.iterations > l.Recorded || l.Reference != nil || r.Training.Stop != "" { // the limits may have changed since
		if err := l.Emit(&r); err != nil {
			return err
		}
	}
	return l.save()
}
