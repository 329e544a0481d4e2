package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner/plan"
)

// newTraining returns the job that trains networks into run, which already has the records before.
func (b *bench) newTraining(p *program, networks []plan.Network, seed uint64, run *record.Run, before []record.Record) *training.Job {
	return &training.Job{
		Device: b.Device, LayOut: b.layOut, Networks: networks, Seed: seed, Run: run, Before: before, Around: b.around,
		Replicas: b.replicas, Tell: func(r *record.Record) { p.note("%s", trainingLine(r, len(networks) == 1)) },
	}
}

// sweepAndTrain measures and trains what the run lacks, and divides the budget between both.
func (j *job) sweepAndTrain(ctx context.Context, p *program, networks []plan.Network, run *record.Run) error {
	_, before, _, err := record.Read(run.Dir())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(networks, func(n plan.Network) bool { return !n.Finished(n.Latest(before)) }) {
		return j.run(ctx)
	}
	sweep := func(budget time.Duration) error {
		some := *j
		some.measure.Budget = budget
		return some.run(ctx)
	}
	train := func(budget time.Duration) error {
		t := j.bench.newTraining(p, networks, j.measure.Seed, run, before)
		t.Budget = budget
		return t.Do(ctx)
	}
	return training.Divide(j.measure.Budget, time.Now, sweep, train)
}

// unfinished counts the networks that still need training.
func unfinished(networks []plan.Network, recs []record.Record) (n int) {
	for _, x := range networks {
		if last := x.Latest(recs); last == nil || last.Status == record.OK && !x.Finished(last) {
			n++
		}
	}
	return n
}

// trainingLine formats a network's progress, with its name unless it is alone.
func trainingLine(r *record.Record, alone bool) string {
	line := ""
	if !alone {
		line = fmt.Sprintf("%s %s: ", r.Point, quantity.Label(r))
	}
	if r.Status != record.OK {
		return line + fmt.Sprintf("%s: %s", r.Status, quantity.PlainReason(r.Impl.Name, *r.Reason))
	}
	t := r.Training
	line += fmt.Sprintf("iteration %d, loss %.4f", t.Iterations, t.Loss)
	if t.HeldOut != nil {
		line += fmt.Sprintf(", held-out %.4f, top-1 %.1f %%", t.HeldOut.Loss, 100*t.HeldOut.Top1)
	}
	line += ", " + rate(1/r.Stats.Median) + " iterations/s"
	if b := t.Beside; b != nil {
		line += fmt.Sprintf(", %+.1f %% over the pass", 100*(b.Ratio-1))
	}
	return line
}

// rate formats a rate with three digits, or all digits before the point.
func rate(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
