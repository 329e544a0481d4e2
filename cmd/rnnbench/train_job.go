package main

import (
	"context"
	"fmt"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/train/training"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/plan"
)

// newTraining trains networks into a run that has the records of before.
func (b *bench) newTraining(p *program, networks []plan.Network, seed uint64, run *results.Run, before []results.Record) *training.Job {
	return &training.Job{
		Device: b.Device, LayOut: b.layOut, Networks: networks, Seed: seed, Run: run, Before: before,
		Replicas: b.replicas, Tell: func(r *results.Record) { p.note("%s", trainingLine(r)) },
	}
}

// trainRest trains what the run lacks of networks, in what is left of the budget since start.
func trainRest(ctx context.Context, p *program, b *bench, networks []plan.Network, run *results.Run, m config.Measure, start time.Time) error {
	_, before, _, err := results.Read(run.Dir())
	if err != nil || len(networks) == 0 {
		return err
	}
	j := b.newTraining(p, networks, m.Seed, run, before)
	if m.Budget > 0 {
		if j.Budget = m.Budget - time.Since(start); j.Budget <= 0 {
			return tuner.ErrBudget
		}
	}
	return j.Do(ctx)
}

// unfinished counts the networks that are still to be trained.
func unfinished(networks []plan.Network, recs []results.Record) (n int) {
	for _, x := range networks {
		if last := x.Latest(recs); last == nil || last.Status == results.OK && !x.Finished(last) {
			n++
		}
	}
	return n
}

// trainingLine is a line on how far a network is.
func trainingLine(r *results.Record) string {
	line := fmt.Sprintf("%s %s: ", r.Point, quantity.Label(r))
	if r.Status != results.OK {
		return line + fmt.Sprintf("%s: %s", r.Status, *r.Reason)
	}
	t := r.Training
	line += fmt.Sprintf("iteration %d, loss %.4f", t.Iterations, t.Loss)
	if t.HeldOut != nil {
		line += fmt.Sprintf(", held-out %.4f, top-1 %.1f %%", t.HeldOut.Loss, 100*t.HeldOut.Top1)
	}
	return line + fmt.Sprintf(", %.4g iterations/s", 1/r.Stats.Median)
}
