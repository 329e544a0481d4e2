package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/progress"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/tuning"
)

// A tuneRun is one run of the command tune.
type tuneRun struct {
	*program
	flags   *tuneFlags
	config  config.Config
	bench   *bench
	env     record.Environment
	resume  string // folder of the run to resume; "": a new run
	session *tuning.Session
	control plan.Plan     // of a shard: the control point, to compare nodes
	regrets *regret.List  // of --regret; nil: not asked for
	checked *regret.Check // of --check; nil: not asked for
}

// dryRun prints how many candidates each point has.
func (t *tuneRun) dryRun(ctx context.Context) error {
	show := t.newProgress(nil, t.session.Plan.Points())
	list, err := t.session.Candidates(ctx, show.LaidOut)
	show.Close()
	if err != nil {
		return err
	}
	t.note("%s", t.summary())
	if t.flags.share != "" {
		t.note("%s", t.flags.share)
	}
	return writeWinners(t.program, list, nil, t.flags.format)
}

// summary describes the tune in one line.
func (t *tuneRun) summary() string {
	depth := "any number of knobs changed"
	if n, err := strconv.Atoi(t.flags.depth); err == nil {
		depth = fmt.Sprintf("up to %s changed", plural(n, "knob"))
	}
	if t.flags.objective() != "" {
		depth += ", least energy wins"
	}
	return fmt.Sprintf("%s: %s, %s", plural(t.session.Plan.Points(), "point"), strings.Join(t.session.Plan.Labels(), ", "), depth)
}

// run tunes every point, saves the records and prints the winners.
func (t *tuneRun) run(ctx context.Context) error {
	done := busy(t.program, late, "reading earlier runs in "+t.config.Dir)
	err := t.recall()
	done()
	if err != nil {
		return err
	}
	t.note("%s", t.summary())
	s := t.session
	show := t.newProgress(nil, s.Plan.Points())
	show.Tune(s.Plan)
	ctx, stop := interruptible(ctx, show)
	defer stop()
	start := time.Now()
	s.Tune.Watch, s.Tune.Leader, s.Tuned = show.Watch, show.Lead, show.Tuned
	if t.resume != "" || t.flags.part != nil {
		if err := s.Open(); err != nil {
			return err
		}
	}
	if t.flags.part != nil {
		s.Beside = filepath.Join(s.Run.Dir(), record.WisdomFile)
		err = t.compareNodes(ctx, show)
	}
	if err == nil {
		err = s.Do(ctx)
	}
	show.Close()
	return t.finish(err, time.Since(start))
}

// compareNodes sweeps the control point, which another shard tunes, with the default
// settings of each technique.
func (t *tuneRun) compareNodes(ctx context.Context, show *progress.Progress) error {
	m := t.config.Measure
	m.Verify, m.Budget = true, 0
	j := job{bench: t.bench, plan: t.control, measure: m, show: show, skip: t.session.Run.Done, emit: t.session.Run.Append}
	return j.run(ctx)
}

// regret measures how much slower auto is than the fastest at a point.
func (t *tuneRun) regret(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
	choice, err := t.bench.decide(at, grid.Spec{Name: autoName, Label: autoName})
	if err != nil {
		return nil, err
	}
	l, err := t.bench.layOut(at, choice)
	if err != nil {
		return nil, err
	}
	return t.regrets.Measure(ctx, t.session.Tune, at, specs, choice, l)
}

// otherTable returns the table of --regret or --check, which replaces the table of winners; nil:
// neither is set.
func (t *tuneRun) otherTable() *table.Table {
	switch {
	case t.regrets != nil:
		return t.regrets.Table()
	case t.checked != nil:
		return t.checked.Table()
	}
	return nil
}

// versions returns the versions on which wisdom depends: the program's, and those of the device's
// libraries, with its number of workers.
func (b *bench) versions() (tool string, libraries map[string]string) {
	libraries = maps.Clone(b.info.Libraries)
	if libraries == nil {
		libraries = map[string]string{}
	}
	libraries["workers"] = fmt.Sprint(b.info.Workers)
	return version(), libraries
}

// recall reads the records of earlier runs in the same folder that were measured in the same way
// and environment. With --fresh, --regret or --check, it reads only the run to resume.
func (t *tuneRun) recall() error {
	m := &tuning.Memory{
		Measure: t.config.Measure, RetryFailed: t.flags.retryFailed, Objective: t.flags.objective(),
		Device: t.bench.info.Key, Libraries: t.session.Libraries, Tool: t.env.Tool, Log: t.log,
	}
	if t.resume != "" {
		if err := m.Read(t.resume); err != nil {
			return &failure{exitError, err, ""}
		}
	}
	if !t.flags.fresh && !t.flags.regret && !t.flags.check { // auto must run beside its rivals, not against old records
		m.ReadAll(t.config.Dir)
	}
	t.session.Known = m.Records()
	maps.DeleteFunc(t.session.Known, func(_ string, r *record.Record) bool { return t.bench.rivals.outdate(r) })
	return nil
}

// finish closes the run and prints the winners. err is what ended the tune; nil: nothing.
func (t *tuneRun) finish(err error, took time.Duration) error {
	s := t.session
	list, recs, points := &s.Winners, s.Records, s.Plan.Points()
	if points == 0 { // a shard of a plan with fewer points than shards
		if recs, _ = s.Run.Records(); err == nil {
			t.note("the shard has no point of its own, because the plan has fewer points than shards")
		}
	}
	code, outcome := exitCode(recs, err, t.config.Measure.OnError == "stop", t.flags.allowFailures)
	done := list.Tuned()
	where := "all records were known already"
	if err != nil || !list.Complete() {
		where = "nothing was recorded"
	}
	if s.Run != nil {
		where = "records in " + s.Run.Dir()
		if bad := s.Run.Finish(code); bad != nil {
			return bad
		}
	}
	t.note("%d of %s tuned, %s; took %v; %s", done, plural(points, "point"), plural(list.Samples, "sample"), took.Round(100*time.Millisecond), where)
	if list.Points() > 0 {
		if err := writeWinners(t.program, list, t.otherTable(), t.flags.format); err != nil {
			return err
		}
		if s.Kept {
			t.note("wisdom saved to %s for --impl auto", s.Path)
		}
		if noise := list.Noise(); noise != "" {
			t.note("%s", noise)
		}
	}
	hint := ""
	spent := errors.Is(err, tuner.ErrBudget) || !list.Complete()
	skipped := !slices.ContainsFunc(recs, func(r record.Record) bool { return r.Status != record.Skipped })
	if spent && skipped && (err == nil || errors.Is(err, tuner.ErrBudget)) {
		enough := "--budget"
		if t.config.Measure.Budget == 0 {
			enough = "--max-evals"
		}
		return &failure{code, errors.New("nothing was measured: " + tuning.TimedNothing), "run the same command with a larger " + enough}
	}
	if spent {
		t.note("budget exhausted: %s not fully tuned", plural(points-done+list.Cut, "point"))
	}
	if done < points || !list.Complete() {
		hint = "run the same command to tune the rest"
	}
	if outcome == nil {
		if hint != "" {
			t.note("hint: %s", hint)
		}
		return nil
	}
	if hint == "" {
		hint = reasons(recs, "")
	}
	return &failure{code, outcome, hint}
}
