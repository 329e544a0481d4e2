package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/progress"
)

// A job is a plan that is being measured.
type job struct {
	bench   *bench
	plan    plan.Plan // with the networks to train afterwards
	spread  bool      // measure in an order of which every beginning covers the plan evenly
	measure config.Measure
	show    *progress.Progress

	skip func(key string) bool
	emit func(*record.Record) error
}

// run measures the sweeps of the plan.
func (j *job) run(ctx context.Context) error {
	tasks := j.plan.Sweeps().Tasks()
	if len(tasks) == 0 {
		return nil
	}
	if j.spread {
		tasks = tuner.Spread(tasks)
	}
	s := &tuner.Sweep{
		Device: j.bench.Device, Techniques: j.bench.techniques(), Settings: j.measure, Limits: j.bench.limits, Machine: j.bench.floorMachine(), MaxMemory: j.bench.maxMemory, Around: j.bench.around,
		Skip: j.skip, Emit: j.emit, Watch: j.show.Watch,
	}
	return s.Run(ctx, tasks)
}

// begin makes the run's folder, or opens the one to resume. Records of a shard name the
// machine.
func begin(p *program, c config.Config, b *bench, q plan.Plan, resume string, env record.Environment) (*record.Run, error) {
	run, err := beginRun(p, c, b, q, resume, env)
	if err == nil && q.Shard != nil {
		s := q.Shard.String()
		run.On(record.Node{Name: node(env.Host.Name == ""), Shard: &s})
	}
	return run, err
}

func beginRun(p *program, c config.Config, b *bench, q plan.Plan, resume string, env record.Environment) (*record.Run, error) {
	for _, a := range slices.Concat(b.crowded(env), disturbed(b), company(b)) {
		p.warn("%s: %s", a.What, a.Remedy)
	}
	for _, a := range record.Warnings(env) {
		p.log.Warn(a.What, "remedy", a.Remedy)
	}
	if resume == "" {
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		m := record.Manifest{
			Label: c.Label, Argv: append([]string{"rnnbench"}, p.args...), Config: text, Environment: env,
			Devices: []record.Device{b.record()},
			Plan:    q.Manifest(),
		}
		if q.Shard != nil {
			return beginShard(c.Dir, *q.Shard, m)
		}
		create := record.Create
		if q.Aside {
			create = record.CreateAside
		}
		run, err := create(c.Dir, m)
		if err != nil {
			return nil, &failure{exitError, err, "set --out DIR or RNNBENCH_RESULTS to a writable folder"}
		}
		return run, nil
	}
	run, err := record.Resume(resume)
	if err != nil && q.Shard != nil {
		return nil, busyShard(*q.Shard, err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range run.Warnings() {
		p.warn("%v", w)
	}
	if d := record.Diff(run.Manifest().Environment, env); len(d) > 0 {
		p.warn("the environment differs from the start of the run: %s", strings.Join(d, "; "))
	}
	return run, nil
}

// environment captures the environment. Call it before opening a device, which binds threads.
func environment(hideHost bool) record.Environment {
	return record.Capture(record.Options{Version: version(), HideHostname: hideHost})
}

// runPath returns the path of the run that a word names: a path, or the id or label of a run in
// dir. It returns word if there is no such run.
func runPath(word, dir string) string {
	if exists(word) || word == "" {
		return word
	}
	if at := filepath.Join(dir, word); !strings.ContainsRune(word, filepath.Separator) && exists(at) {
		return at
	}
	if at := labelled(word, dir); at != "" {
		return at
	}
	return word
}

// cutRun splits label=RUN. A word that names a run as it stands has no such label, though the run's own
// label may contain "=".
func cutRun(word, dir string) (label, run string, ok bool) {
	label, run, ok = strings.Cut(word, "=")
	if !ok || exists(runPath(word, dir)) {
		return "", word, false
	}
	return label, run, true
}

// labelled returns the folder of the latest run in dir with that label; "": there is none.
func labelled(label, dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	latest, began := "", time.Time{}
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if m, err := record.ReadManifest(at); err == nil && m.Label == label && !m.Started.Before(began) {
			latest, began = at, m.Started
		}
	}
	return latest
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// exitCode returns the exit code for a run's records and error, and an error that says why it is
// not 0. stopped: the run stops at the first failure. allow: a failed point is no error.
func exitCode(recs []record.Record, err error, stopped, allow bool) (int, error) {
	count := map[record.Status]int{}
	for i := range recs {
		count[recs[i].Status]++
	}
	bad := count[record.Failed] + count[record.Incorrect] + count[record.Impossible] + count[record.Timeout]
	var kinds []string
	for _, s := range []record.Status{record.Failed, record.Incorrect, record.Impossible, record.Timeout, record.Skipped} {
		if count[s] > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", count[s], s))
		}
	}
	switch {
	case errors.Is(err, context.Canceled):
		return exitInterrupted, errors.New("interrupted")
	case err != nil && !errors.Is(err, tuner.ErrBudget) && !(stopped && bad > 0):
		return exitError, err
	case bad > 0 && allow && count[record.OK] > 0:
		return exitDone, nil
	case len(recs) == 0:
		return exitError, errors.New("nothing was measured")
	case count[record.OK] == 0:
		return exitError, fmt.Errorf("no point succeeded: %s", strings.Join(kinds, ", "))
	case err != nil && !errors.Is(err, tuner.ErrBudget):
		return exitFailures, err
	case bad > 0:
		return exitFailures, fmt.Errorf("some of %s did not succeed: %s", plural(len(recs), "record"), strings.Join(kinds, ", "))
	}
	return exitDone, nil
}

// reasons joins up to three distinct reasons of records without a result. It leaves out skipped
// points if format is a table or Markdown, which lists them itself.
func reasons(recs []record.Record, format string) string {
	told := format == "table" || format == "markdown"
	var list []string
	for i := range recs {
		r := &recs[i]
		if r.Status == record.OK || r.Status == record.Skipped && told || r.Reason == nil || len(list) == 3 {
			continue
		}
		reason := *r.Reason
		if r.Status == record.Skipped {
			reason = quantity.Label(r) + ": " + quantity.PlainReason(r.Impl.Name, reason)
		}
		if !slices.Contains(list, reason) {
			list = append(list, reason)
		}
	}
	return strings.Join(list, "; ")
}
