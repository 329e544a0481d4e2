package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/train/session"
	"rnnbench/tuner"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
)

// A trainJob trains each technique at each point of a plan, one after the other.
type trainJob struct {
	bench *bench
	plan  plan.Plan
	want  results.TrainingPlan
	seed  uint64
	run   *results.Run

	last []results.Record // of each network
}

func (j *trainJob) all(ctx context.Context, p *program) error {
	i := 0
	return j.plan.Each(func(at results.Point, specs []grid.Spec) error {
		for _, s := range specs {
			if err := j.one(ctx, p, at, s, checkpointOf(j.run, i)); err != nil {
				return err
			}
			i++
		}
		return nil
	})
}

// one trains a network. What is declined or breaks becomes a record; an error ends the run.
func (j *trainJob) one(ctx context.Context, p *program, at results.Point, spec grid.Spec, checkpoint string) error {
	l, err := j.bench.layOut(at, spec)
	if err != nil {
		return err
	}
	r := j.record(l)
	if l.Reason != "" {
		return j.declined(r, results.Skipped, l.Code, l.Reason)
	}
	err = j.train(ctx, p, l, r, checkpoint)
	switch {
	case err == nil || errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return err
	case errors.Is(err, device.ErrHang):
		return j.declined(r, results.Failed, results.ReasonHang, err.Error())
	case errors.Is(err, device.ErrFault):
		return j.declined(r, results.Failed, results.ReasonCUDA, err.Error())
	case errors.Is(err, device.ErrMemory):
		return j.declined(r, results.Failed, results.ReasonOOM, err.Error())
	}
	return j.declined(r, results.Failed, results.ReasonError, err.Error())
}

// record is what all records of a network have in common.
func (j *trainJob) record(l *tuner.Layout) results.Record {
	r := results.Record{
		Point: l.Point, Device: j.bench.info.Key, Status: results.OK, Warnings: []string{},
		Impl: results.Impl{Name: l.Spec.Name, Label: l.Spec.Label, Knobs: l.Settings(), Streams: max(1, l.Knobs["streams"]), Choice: l.Spec.Choice},
		Mode: results.Mode{Order: "sequential", Cache: "hot", Timer: "wall", Data: "normal", Seed: j.seed, Graph: l.DeviceKnobs["graph"] != 0},
		Work: results.Work{Model: "products", Flops: l.Problem.FLOPs(), Memory: l.Memory},
	}
	if l.Schedule != nil {
		r.Work.Executed, r.Work.Bytes, r.Work.Ops = l.Schedule.FLOPs(), l.Schedule.Traffic(), len(l.Schedule.Nodes)
	}
	return r
}

func (j *trainJob) declined(r results.Record, status results.Status, code, reason string) error {
	r.Status, r.ReasonCode, r.Reason, r.Warnings = status, &code, &reason, []string{}
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	j.last = append(j.last, r)
	return j.run.Append(&r)
}

func (j *trainJob) train(ctx context.Context, p *program, l *tuner.Layout, r results.Record, checkpoint string) error {
	o, err := train.ParseOptimizer(j.want.Optimizer, l.Problem.Precision)
	if err != nil {
		return err
	}
	source, err := j.source(l.Problem, false)
	if err != nil {
		return err
	}
	t, err := train.New(train.Setup{
		Device: j.bench.Device, Technique: l.Technique, Problem: l.Problem, Knobs: l.Knobs, DeviceKnobs: l.DeviceKnobs,
		Optimizer: o, Seed: j.seed, Source: source,
	})
	if err != nil {
		return err
	}
	defer t.Close()
	s := &session.Session{Trainer: t, Plan: j.want, Record: r, Checkpoint: checkpoint}
	if j.want.Batches > 0 {
		if s.HeldOut, err = j.source(l.Problem, true); err != nil {
			return err
		}
	}
	var latest *results.Record
	s.Emit = func(r *results.Record) error {
		latest = r
		p.note("%s", trainingLine(r))
		return j.run.Append(r)
	}
	err = s.Run(ctx)
	if latest != nil {
		j.last = append(j.last, *latest)
	}
	return err
}

// source opens the task for a problem's batch and steps, or its held-out part.
func (j *trainJob) source(p rnn.Problem, held bool) (data.Source, error) {
	return data.Open(j.want.Data, data.Options{Batch: p.Batch, Steps: p.Steps, Seed: j.seed, Held: held})
}

// trainingLine is a line on how far a network is.
func trainingLine(r *results.Record) string {
	t := r.Training
	line := fmt.Sprintf("%s %s: iteration %d, loss %.4f", r.Point, quantity.Label(r), t.Iterations, t.Loss)
	if t.HeldOut != nil {
		line += fmt.Sprintf(", held-out %.4f, top-1 %.1f %%", t.HeldOut.Loss, 100*t.HeldOut.Top1)
	}
	return line + fmt.Sprintf(", %.4g iterations/s", 1/r.Stats.Median)
}
