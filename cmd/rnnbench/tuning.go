package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/wisdom"
)

// A tuning is a tune that is under way.
type tuning struct {
	*program
	flags  *tuneFlags
	config config.Config
	bench  *bench
	plan   plan.Plan
	env    results.Environment
	book   *wisdom.Book
	path   string // of the book; "": none
	resume string // run to go on with
	tune   *tuner.Tune

	folder  *results.Run     // nil: nothing was measured yet
	kept    bool             // the book has a winner
	winners []results.Winner // of the points tuned so far
	show    *progress
}

// dryRun says how many candidates each point has.
func (t *tuning) dryRun(ctx context.Context) error {
	list := &winners{}
	show := t.newProgress(nil, t.plan.Points())
	err := t.plan.Each(func(at results.Point, specs []grid.Spec) error {
		show.laidOut(len(list.rows))
		n, same, err := t.tune.Candidates(ctx, at, specs)
		if err == nil {
			list.plan(at, n, same)
		}
		return err
	})
	show.close()
	if err != nil {
		return err
	}
	t.note("%s", t.summary())
	return list.write(t.program, t.flags.format)
}

// summary says what is tuned, in one line.
func (t *tuning) summary() string {
	depth := "any number of knobs changed"
	if t.flags.depth != "all" {
		depth = fmt.Sprintf("up to %s knobs changed", t.flags.depth)
	}
	return fmt.Sprintf("%s: %s, %s", plural(t.plan.Points(), "point"), strings.Join(t.plan.Labels(), ", "), depth)
}

// run tunes every point, keeps what was measured and prints the winners.
func (t *tuning) run(ctx context.Context) error {
	done := t.busy(late, "reading earlier runs in "+t.config.Dir)
	known, err := t.known()
	done()
	if err != nil {
		return err
	}
	t.note("%s", t.summary())
	t.show = t.newProgress(nil, t.plan.Points())
	t.show.points = t.plan.Points()
	for _, q := range t.plan.Parts {
		for _, at := range q.Points {
			t.show.share(at)
		}
	}
	ctx, stop := interruptible(ctx, t.show)
	defer stop()
	start := time.Now()
	t.tune.Recall = func(key string) *results.Record { return known[key] }
	t.tune.Emit = t.append
	t.tune.Watch, t.tune.Leader = t.show.watch, t.show.lead
	budget := t.config.Measure.Budget
	t.tune.Search.Spent = func() bool { return budget > 0 && time.Since(start) > budget }
	if t.resume != "" {
		if err := t.begin(); err != nil {
			return err
		}
	}
	list, far := &winners{}, &regrets{}
	var recs []results.Record
	err = t.plan.Each(func(at results.Point, specs []grid.Spec) error {
		if t.tune.Search.Spent() {
			return tuner.ErrBudget
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := t.one(ctx, at, specs, far)
		if err != nil {
			return err
		}
		t.show.tuned(v)
		if err := t.won(v); err != nil {
			return err
		}
		for _, r := range v.Records {
			if r != nil {
				recs = append(recs, *r)
			}
		}
		list.add(v)
		if v.Winner < 0 || t.flags.regret {
			return nil
		}
		return t.keep(v)
	})
	t.show.close()
	if t.flags.regret {
		list.regrets = far
	}
	return t.finish(list, recs, err, time.Since(start))
}

// one tunes one point.
func (t *tuning) one(ctx context.Context, at results.Point, specs []grid.Spec, far *regrets) (*tuner.Verdict, error) {
	if t.flags.regret {
		return t.regret(ctx, at, specs, far)
	}
	return t.tune.Tune(ctx, at, specs, incumbent(t.book, t.bench.info.Key, t.config.Measure.Cache, at))
}

// begin makes the run's folder, or opens the one to resume.
func (t *tuning) begin() (err error) {
	t.folder, err = t.program.begin(t.config, t.bench, t.plan, t.resume, t.env)
	return err
}

// append keeps a record. The first one makes the run: where everything is known
// already there is none. A winner of before that ran again beside what is new
// has its record in a resumed run already.
func (t *tuning) append(r *results.Record) error {
	if t.folder == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	if t.folder.Done(r.Key()) && t.tune.Knows(r.Key()) {
		return nil
	}
	return t.folder.Append(r)
}

// keep writes the winner into the book at once, so that nothing can take it
// back.
func (t *tuning) keep(v *tuner.Verdict) error {
	if t.path == "" {
		return nil
	}
	tool, libraries := t.bench.versions()
	if err := t.book.Keep(t.path, entryOf(v, t.config.Measure.Cache, tool, libraries)); err != nil {
		return err
	}
	t.kept = true
	return nil
}

// versions are those that wisdom depends on: of the program, and of what the
// device computes with.
func (b *bench) versions() (tool string, libraries map[string]string) {
	libraries = maps.Clone(b.info.Libraries)
	if libraries == nil {
		libraries = map[string]string{}
	}
	libraries["workers"] = fmt.Sprint(b.info.Workers)
	return version(), libraries
}

// entryOf is what a verdict adds to the book.
func entryOf(v *tuner.Verdict, cache, tool string, libraries map[string]string) wisdom.Entry {
	w := v.WinnerRecord()
	e := wisdom.Entry{
		Device: w.Device, Cache: cache, Point: v.Point, Impl: w.Impl.Name, Knobs: w.Impl.Knobs, Seconds: w.Seconds(), Complete: v.Complete,
		Tool: tool, Libraries: libraries, Run: w.Run, Time: w.Time,
	}
	e.Tried = v.Timed()
	if v.Second >= 0 {
		e.RunnerUp, e.Lead = label(v.Records[v.Second]), v.Lead
	}
	return e
}

// known reads what earlier runs in the same folder measured in the same
// environment and in the same way, by key, the newest of each. Where nothing is
// to be remembered, it is what the run to resume holds.
func (t *tuning) known() (map[string]*results.Record, error) {
	known := map[string]*results.Record{}
	add := func(recs []results.Record) {
		for i := range recs {
			r := &recs[i]
			m := t.config.Measure
			if t.flags.retryFailed && r.Status.Broken() {
				continue
			}
			if r.Mode.Cache != m.Cache || r.Mode.Data != m.Data || r.Mode.Seed != m.Seed {
				continue
			}
			if old := known[r.Key()]; old == nil || tuner.Supersedes(r, old) {
				known[r.Key()] = r
			}
		}
	}
	if t.resume != "" {
		_, recs, _, err := results.Read(t.resume)
		if err != nil {
			return nil, &failure{exitError, err, ""}
		}
		add(recs)
	}
	if t.flags.fresh || t.flags.regret { // auto and its rivals are to run side by side
		return known, nil
	}
	entries, err := os.ReadDir(t.config.Dir)
	if err != nil { // there are no runs yet
		return known, nil
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		m, recs, _, err := results.Read(filepath.Join(t.config.Dir, e.Name()))
		if err != nil || !t.sameEnvironment(m) {
			continue
		}
		t.log.Debug("known", "run", m.Run, "records", len(recs))
		add(recs)
	}
	return known, nil
}

// sameEnvironment reports whether what a run measured holds here and now: the
// device, its libraries and the program are the same.
func (t *tuning) sameEnvironment(m results.Manifest) bool {
	if len(m.Devices) == 0 || m.Devices[0].Key != t.bench.info.Key {
		return false
	}
	_, libraries := t.bench.versions()
	for name, v := range libraries {
		if m.Devices[0].Facts[name] != v {
			return false
		}
	}
	was, is := m.Environment.Tool, t.env.Tool
	return was.Version == is.Version && was.Revision == is.Revision
}

// finish closes the run, prints the winners and says how it went.
func (t *tuning) finish(list *winners, recs []results.Record, err error, took time.Duration) error {
	code, outcome := exitCode(recs, err, t.config.Measure.OnError == "stop", t.flags.allowFailures)
	done := list.tuned()
	where := "all records were known already"
	if err != nil || !list.complete() {
		where = "nothing was recorded"
	}
	if t.folder != nil {
		where = "records in " + t.folder.Dir()
		if bad := t.folder.Finish(code); bad != nil {
			return bad
		}
	}
	t.note("%d of %s tuned, %s; took %v; %s", done, plural(t.plan.Points(), "point"), plural(list.evaluations(), "sample"), took.Round(100*time.Millisecond), where)
	if len(list.rows) > 0 {
		if err := list.write(t.program, t.flags.format); err != nil {
			return err
		}
		if t.kept {
			t.note("wisdom saved to %s for --impl auto", t.path)
		}
		if noise := list.noise(); noise != "" {
			t.note("%s", noise)
		}
	}
	hint := ""
	spent := errors.Is(err, tuner.ErrBudget) || !list.complete()
	skipped := !slices.ContainsFunc(recs, func(r results.Record) bool { return r.Status != results.Skipped })
	if spent && skipped && (err == nil || errors.Is(err, tuner.ErrBudget)) {
		enough := "--budget"
		if t.config.Measure.Budget == 0 {
			enough = "--max-evals"
		}
		return &failure{code, errors.New("nothing was measured: " + timedNothing), "run the same command with a larger " + enough}
	}
	if spent {
		t.note("budget exhausted: %s not fully tuned", plural(t.plan.Points()-done+list.cut(), "point"))
	}
	if done < t.plan.Points() || !list.complete() {
		hint = "run the same command to tune the rest"
	}
	if outcome == nil {
		if hint != "" {
			t.note("hint: %s", hint)
		}
		return nil
	}
	if why := reasons(recs); hint == "" && len(why) > 0 {
		hint = strings.Join(why, "; ")
	}
	return &failure{code, outcome, hint}
}
