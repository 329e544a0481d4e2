package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"rnnbench/device/worker"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
)

// open opens the device that c names, and the rivals of s. Starting a worker may take seconds.
func (p *program) open(s *settings, c config.Config) (*bench, error) {
	defer busy(p, late, "opening "+c.Devices[0])()
	if s.auto == autoRace && s.objective() != "" {
		return nil, errors.New("--auto race measures times: with --objective energy, use --auto predict")
	}
	b, err := s.open(c)
	if err != nil {
		return nil, err
	}
	if s := buildMismatch(b.info.Build, worker.Build()); s != "" {
		p.warn("%s", s)
	}
	if s.times {
		warnOfOthers(p, b)
		for _, a := range otherRuns(b) {
			p.warn("%s: %s", a.What, a.Remedy)
		}
	}
	if err := openRivals(p, s, c, b); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// planFor makes the plan of c's grid on b, and checks its calls and knobs.
func planFor(p *program, c config.Config, b *bench) (plan.Plan, error) {
	defer busy(p, late, "laying out the grid")()
	q, err := plan.New(c.Grid, plan.Target{Device: b.info, Vocabulary: b.vocabulary(), Decide: b.decide})
	if err == nil {
		err = tuner.CheckCalls(q.Tasks(), c.Measure)
	}
	if err == nil {
		err = checkKnobs(b, q)
	}
	return q, err
}

// checkKnobs returns an error for an invalid setting of a knob, before anything is measured.
func checkKnobs(b *bench, q plan.Plan) error {
	techniques := b.techniques()
	return q.Each(func(at record.Point, specs []grid.Spec) error {
		for _, s := range specs {
			if err := tuner.CheckKnobs(b.Device, techniques, at, s); err != nil {
				return fmt.Errorf("%v: %w", at, err)
			}
		}
		return nil
	})
}

// patience limits how long a sweep estimates before it begins. Tests shorten it.
var patience = 500 * time.Millisecond

// estimator returns an estimator of measuring time. It leaves out energy that cannot be counted.
func (b *bench) estimator(m config.Measure) *plan.Estimator {
	m.Energy = m.Energy && tuner.NeedsMeter(b.Device) == nil
	return &plan.Estimator{Device: b.info, Limits: b.limits, Free: b.free(), Measure: m, LayOut: b.layOut}
}

// forecast estimates the time and memory of q, for as long as patience allows.
func forecast(ctx context.Context, p *program, b *bench, q plan.Plan, m config.Measure) (*plan.Forecast, error) {
	defer busy(p, late, "estimating time and memory")()
	return b.estimator(m).Forecast(ctx, q, patience, func(int) {})
}

// forecastAll estimates the whole plan for a dry run, and shows progress.
func forecastAll(ctx context.Context, p *program, b *bench, q plan.Plan, m config.Measure) (*plan.Forecast, error) {
	show := p.newProgress(nil, q.Records())
	ctx, stop := interruptible(ctx, show)
	defer stop()
	defer show.Close()
	return b.estimator(m).Forecast(ctx, q, 0, show.LaidOut)
}
