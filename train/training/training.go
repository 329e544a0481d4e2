// Package training trains the networks of an agenda, one after the other, into the records and
// checkpoints of a run. Networks that the run has finished are not trained again.
package training

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/rnn"
	"rnnbench/rnn/schedule"
	"rnnbench/train"
	"rnnbench/train/data"
	"rnnbench/train/loop"
	"rnnbench/train/smoke"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/grid"
)

// A Job says what is trained, and where.
type Job struct {
	Device   device.Device
	LayOut   func(record.Point, grid.Spec) (*tuner.Layout, error)
	Networks []agenda.Network
	Seed     uint64
	Run      *record.Run     // takes records; its folder takes checkpoints
	Before   []record.Record // what the run has already
	Tell     func(*record.Record)
	Replicas func(n int) (Replicas, error) // starts processes that train together; nil: replicas are not possible
	Around   *around.Reader                // of the counters that tell what disturbed a training; nil: none

	// Budget is how long Do may take, setting up included; 0: no limit. Unfinished networks share
	// equally what is left, so that all of them progress.
	Budget time.Duration
	Now    func() time.Time // tells how much of the budget is left; nil: time.Now

	bands map[string]*record.Comparison // computed so far, by problem, optimiser and task

	// Last has the newest record of each network that has one, after Do.
	Last []record.Record
}

// Replicas are devices that train together.
type Replicas struct {
	Devices []device.Device
	Close   func() error
}

// leastShare is how long a network is trained at least, whatever the budget, so that each part of a run makes progress.
const leastShare = 100 * time.Millisecond

// Do trains all. It returns tuner.ErrBudget if the budget ended before a network was finished.
func (j *Job) Do(ctx context.Context) error {
	if j.Now == nil {
		j.Now = time.Now
	}
	start := j.Now()
	spent := false
	for i, n := range j.Networks {
		checkpoint := record.Checkpoint(j.Run.Dir(), n.Number)
		last := n.Latest(j.Before)
		if !n.Finished(last) {
			over, err := j.trainOne(ctx, n, checkpoint, j.share(start, i), &last)
			if err != nil {
				j.keep(last)
				return err
			}
			spent = spent || over
		}
		j.keep(last)
	}
	if spent {
		return tuner.ErrBudget
	}
	return nil
}

func (j *Job) keep(last *record.Record) {
	if last != nil {
		j.Last = append(j.Last, *last)
	}
}

// share is how long network i may take; 0: no limit.
func (j *Job) share(start time.Time, i int) time.Duration {
	if j.Budget == 0 {
		return 0
	}
	unfinished := 0
	for _, n := range j.Networks[i:] {
		if !n.Finished(n.Latest(j.Before)) {
			unfinished++
		}
	}
	return max(leastShare, (j.Budget-j.Now().Sub(start))/time.Duration(unfinished))
}

// trainOne trains a network, and reports whether its share of the budget ended first. A network
// that is declined or fails becomes a record; an error ends the run.
func (j *Job) trainOne(ctx context.Context, n agenda.Network, checkpoint string, share time.Duration, last **record.Record) (over bool, err error) {
	start := j.Now()
	l, err := j.LayOut(n.Point, n.Spec)
	if err != nil {
		return false, err
	}
	r := j.record(l, n)
	var launch *float64        // of all records of this sitting
	var since *around.Counters // read before what the next record is of
	emit := func(r *record.Record) error {
		if *last = r; r.Status == record.OK {
			r.Disturb(j.Around.Since(since, record.OnGPU(r.Device)))
			r.Launch, since = launch, j.Around.Read()
		}
		if j.Tell != nil {
			j.Tell(r)
		}
		return j.Run.Append(r)
	}
	if l.Reason != "" {
		return false, emit(declined(r, record.Skipped, l.Code, l.Reason))
	}
	replicas, err := j.replicas(n.Training.Replicas)
	if err == nil {
		defer replicas.Close()
	}
	var s *loop.Loop
	if err == nil {
		s, err = j.setUp(n, l, r, replicas.Devices)
	}
	if err == nil {
		defer s.Trainer.Close()
		launch = tuner.LaunchTime(j.Device)
		s.Emit, s.Checkpoint, since = emit, checkpoint, j.Around.Read()
		s.Recorded = recorded(n, j.Before)
		if share > 0 {
			end := j.Now().Add(max(leastShare, share-j.Now().Sub(start)))
			s.Over = func() bool { return !j.Now().Before(end) }
		}
		if err = s.Run(ctx); errors.Is(err, loop.ErrOver) {
			return true, nil
		}
	}
	switch {
	case err == nil || errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return false, err
	case errors.Is(err, train.ErrNotConverged):
		r.Training.Iterations, r.Training.Convergence = s.Trainer.Iterations(), train.Convergence(s.Trainer)
		return false, emit(declined(r, record.NotConverged, record.ReasonUnconverged, err.Error()))
	case errors.Is(err, schedule.ErrUnsupported):
		return false, emit(declined(r, record.Skipped, tuner.ReasonOf(err, record.ReasonShape), err.Error()))
	case errors.Is(err, device.ErrStart): // such as a replica without a GPU
		return false, emit(declined(r, record.Skipped, record.ReasonDevice, err.Error()))
	case errors.Is(err, device.ErrHang):
		return false, emit(declined(r, record.Failed, record.ReasonHang, err.Error()))
	case errors.Is(err, device.ErrFault):
		return false, emit(declined(r, record.Failed, record.ReasonCUDA, err.Error()))
	case errors.Is(err, device.ErrMemory):
		return false, emit(declined(r, record.Failed, record.ReasonOOM, err.Error()))
	}
	return false, emit(declined(r, record.Failed, record.ReasonError, err.Error()))
}

// recorded is the number of iterations of network n at its newest record among recs that is no failure.
func recorded(n agenda.Network, recs []record.Record) int {
	last := n.Latest(slices.DeleteFunc(slices.Clone(recs), func(r record.Record) bool { return r.Status != record.OK }))
	if last == nil {
		return 0
	}
	return last.Training.Iterations
}

// record holds the fields that all records of a network share.
func (j *Job) record(l *tuner.Layout, n agenda.Network) record.Record {
	r := record.Record{
		Point: l.Point, Device: j.Device.Info().Key, Status: record.OK, Warnings: []string{},
		Impl:     record.Impl{Name: l.Spec.Name, Label: l.Spec.Label, Knobs: l.Settings(), Streams: max(1, l.Knobs["streams"]), Choice: l.Spec.Choice},
		Mode:     record.Mode{Order: "sequential", Cache: "hot", Timer: "wall", Data: "normal", Seed: j.seed(n), Graph: l.DeviceKnobs["graph"] != 0},
		Work:     record.Work{Model: "products", Flops: l.Problem.FLOPs(), Memory: l.Memory},
		Training: &record.Training{Data: n.Training.Data, Optimizer: n.Training.Optimizer, Glorot: n.Training.Glorot, Replicas: n.Training.Replicas, Repeat: n.Training.Repeat},
	}
	if l.Schedule != nil {
		r.Work.Executed, r.Work.Bytes, r.Work.Ops = l.Schedule.FLOPs(), l.Schedule.Traffic(), len(l.Schedule.Nodes)
	}
	return r
}

// seed is the seed of n's parameters and data.
func (j *Job) seed(n agenda.Network) uint64 { return j.Seed + uint64(n.Training.Repeat) }

// declined is the record of a network that was not trained, or not to the end.
func declined(r record.Record, status record.Status, code, reason string) *record.Record {
	r.Status, r.ReasonCode, r.Reason, r.Warnings = status, &code, &reason, []string{}
	r.Time = time.Now().UTC().Truncate(time.Millisecond)
	return &r
}

// replicas starts so many processes; 0: the device trains alone.
func (j *Job) replicas(n int) (Replicas, error) {
	switch {
	case n == 0:
		return Replicas{Close: func() error { return nil }}, nil
	case j.Replicas == nil:
		return Replicas{}, errors.New("training by replicas is not possible here")
	}
	return j.Replicas(n)
}

// setUp sets a network up. The caller closes its trainer.
func (j *Job) setUp(n agenda.Network, l *tuner.Layout, r record.Record, replicas []device.Device) (*loop.Loop, error) {
	o, err := train.ParseOptimizer(n.Training.Optimizer, l.Problem.Precision)
	if err != nil {
		return nil, err
	}
	source, err := j.source(n, l.Problem, false)
	if err != nil {
		return nil, err
	}
	if s := source.Shape(); train.Asked(l.Problem, s) != l.Problem {
		return nil, fmt.Errorf("task %s has %d inputs and %d classes here, but the network has %d inputs and %d classes: use another text", n.Training.Data, s.Input, s.Output, l.Problem.Input, l.Problem.Output)
	}
	s := &loop.Loop{Limits: n.Training, Record: r}
	if n.Training.Reference {
		if s.Reference, err = j.reference(n, l.Problem, o); err != nil {
			return nil, err
		}
	}
	if n.Training.Batches > 0 {
		if s.HeldOut, err = j.source(n, l.Problem, true); err != nil {
			return nil, err
		}
	}
	s.Trainer, err = train.New(train.Setup{
		Device: j.Device, Replicas: replicas, Technique: l.Technique, Problem: l.Problem, Knobs: l.Knobs, DeviceKnobs: l.DeviceKnobs,
		Optimizer: o, Seed: j.seed(n), Glorot: n.Training.Glorot, Source: source,
	})
	if err == nil {
		s.Record.Work.Memory += train.FedBytes(s.Trainer)
	}
	return s, err
}

// reference trains in double precision, once for all techniques.
func (j *Job) reference(n agenda.Network, p rnn.Problem, o train.Optimizer) (*record.Comparison, error) {
	key := fmt.Sprint(p, o, n.Training.Data, n.Training.Repeat, n.Training.Glorot)
	if known := j.bands[key]; known != nil {
		return known, nil
	}
	band, err := smoke.Case{Problem: p, Optimizer: o, Data: n.Training.Data, Iterations: n.Training.Iterations, Seed: j.seed(n), Glorot: n.Training.Glorot}.Band()
	if err != nil {
		return nil, err
	}
	if j.bands == nil {
		j.bands = map[string]*record.Comparison{}
	}
	j.bands[key] = &record.Comparison{Loss: band.Middle, Width: band.Width}
	return j.bands[key], nil
}

// source opens the task for a problem's batch and steps, or its held-out part.
func (j *Job) source(n agenda.Network, p rnn.Problem, held bool) (data.Source, error) {
	o := data.Options{Batch: p.Batch, Steps: p.Steps, Seed: j.seed(n), Held: held}
	if held {
		o.Batch, o.Steps = loop.HeldOut(n.Training, p)
	}
	return data.Open(n.Training.Data, o)
}
