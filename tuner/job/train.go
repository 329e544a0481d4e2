package job

import (
	"context"
	"errors"
	"fmt"

	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner/agenda"
)

// A Training is a job that trains its networks.
type Training struct {
	*Job
	Want record.TrainingPlan // until when, and how
}

// OpenTraining opens the device and plans the training that r and want ask for. Close it.
func OpenTraining(r *Request, want record.TrainingPlan, before *record.Manifest, tell Teller) (*Training, error) {
	j, err := Open(r, before, tell)
	if err != nil {
		return nil, err
	}
	t := &Training{Job: j, Want: want}
	if err := t.prepare(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return t, nil
}

// prepare makes the agenda, or the shard's, to be trained until the wanted limits. A resumed shard keeps the
// division that it began with.
func (t *Training) prepare() error {
	if err := training.SetAxes(t.Want.Data, t.Config.Grid, t.Bench.Vocabulary()); err != nil {
		return err
	}
	q, err := t.Bench.Agenda(t.Config)
	if err != nil {
		return err
	}
	q.Kind = "train " + t.Want.Data + " " + t.Want.Optimizer
	limits, asked := t.Want, t.Before != nil
	if asked && t.Before.Scope.Shard != nil && t.Before.Scope.Shard.Limits != nil {
		limits = *t.Before.Scope.Shard.Limits
	}
	t.Agenda = q.Trained(limits)
	if err := t.divide(); err != nil {
		return err
	}
	if s := t.Agenda.Shard; s != nil {
		s.Limits = &limits
		if t.Before != nil && !asked {
			if was := t.Before.Scope.Shard.Limits; was.Options() != limits.Options() {
				return exit.Misuse(fmt.Errorf("shard %v in %s was begun with %s, not with %s", s, t.Resume, was.Options(), limits.Options()),
					"rnnbench train --resume "+t.Resume+" takes other limits; --label WORD or --out DIR begins another run of the shard")
			}
			if t.Before.Training != nil { // --resume may have raised them
				t.Want = *t.Before.Training
			}
		}
		t.Agenda = t.Agenda.Until(t.Want)
	}
	if err := t.match("omit --resume to start a new run"); err != nil {
		return err
	}
	return training.CheckPoints(t.Want, t.Agenda)
}

// Train measures the control point of a shard and trains all networks. print prints the last record of each
// network, which format is for. It returns the outcome.
func (t *Training) Train(ctx context.Context, format string, print func(run *record.Run, last []record.Record) error) error {
	run, err := t.Begin()
	if err != nil {
		return err
	}
	if err := run.Update(func(m *record.Manifest) { m.Training = &t.Want }); err != nil {
		return err
	}
	had, err := run.Records()
	if err != nil {
		return errors.Join(err, run.Finish(exit.Error))
	}
	control, j := t.Agenda.Control(), t.training(t.Agenda.Networks(), run, had)
	show := t.tell.Progress(nil, control.Records())
	ctx, stop := t.tell.Interruptible(ctx, show)
	defer stop()
	m := t.Config.Measure
	m.Verify = true
	err = t.sweep(ctx, control, m, into(run, show))
	if err == nil {
		err = j.Do(ctx)
	}
	show.Close()
	last := j.Last
	if len(j.Networks) == 0 && err == nil {
		t.tell.Note("the shard has no network of its own, because the plan has fewer points than shards")
		last, err = run.Records()
	}
	code, outcome := Outcome(last, err, false, false)
	if bad := run.Finish(code); bad != nil && outcome == nil {
		return bad
	}
	t.tell.Note("records and checkpoints in %s", run.Dir())
	if len(last) > 0 {
		if err := print(run, last); err != nil {
			return err
		}
	}
	hint := ""
	if code == exit.Interrupted {
		hint = "rnnbench train --resume " + run.Dir() + " resumes the run"
	}
	return t.end(code, outcome, hint, func() string { return Reasons(last, format) })
}

// training returns the job that trains networks into run, which already has the records before.
func (j *Job) training(networks []agenda.Network, run *record.Run, before []record.Record) *training.Job {
	return &training.Job{
		Device: j.Bench.Device, LayOut: j.Bench.LayOut, Networks: networks, Seed: j.Config.Measure.Seed, Run: run, Before: before, Around: j.Bench.Around,
		Replicas: j.Bench.Replicas, Tell: func(r *record.Record) { j.tell.Note("%s", line(r, len(networks) == 1)) },
	}
}

// line formats a network's progress, with its name unless it is alone.
func line(r *record.Record, alone bool) string {
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
		line += fmt.Sprintf(", held-out %.4f", t.HeldOut.Loss)
		if e := t.HeldOut.LabelErrors; e != nil {
			line += fmt.Sprintf(", label errors %.1f %%", 100**e)
		} else {
			line += fmt.Sprintf(", top-1 %.1f %%", 100*t.HeldOut.Top1)
		}
	}
	if c := t.Convergence; c != nil {
		line += fmt.Sprintf(", %s in %s", r.Impl.Name, quantity.Plural(c.Taken[len(c.Taken)-1].Iterations, "iteration"))
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
