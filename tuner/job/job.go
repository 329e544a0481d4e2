package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnnbench/cluster"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/progress"
)

// A Teller tells the user what happens, and hears when to stop.
type Teller interface {
	bench.Teller
	// Progress returns a display of a sweep's progress; f forecasts its time, and may be nil.
	Progress(f *agenda.Forecast, total int) *progress.Progress
	// Interruptible returns a context that ends when the user interrupts, and a function that ends the
	// listening.
	Interruptible(ctx context.Context, show *progress.Progress) (context.Context, func())
}

// A Job is a request on an open device.
type Job struct {
	*Request
	Bench  *bench.Bench
	Before *record.Manifest // of the run to resume; nil: a new run
	Env    record.Environment
	Agenda agenda.Agenda // what is measured: a shard, or all
	Share  string        // describes the shard; "": the agenda is whole
	Spread bool          // measure in an order of which every beginning covers the agenda evenly

	tell Teller
}

// Open opens the device and the rivals that r asks for. before is the manifest of the run to resume; nil: a
// new run. Give the job its agenda by Set, and close it.
func Open(r *Request, before *record.Manifest, tell Teller) (*Job, error) {
	env := record.Capture(record.Options{Version: r.Version, HideHostname: r.HideHost}) // before a device binds threads
	b, err := bench.Open(r.Options, tell)
	if err != nil {
		return nil, err
	}
	return &Job{Request: r, Bench: b, Before: before, Env: env, tell: tell}, nil
}

// Close closes the device and the rivals.
func (j *Job) Close() error { return j.Bench.Close() }

// Set makes q the agenda, or the shard of it. It returns an error, with a hint, if the run to resume has another
// agenda.
func (j *Job) Set(q agenda.Agenda, hint string) error {
	j.Agenda = q
	if err := j.divide(); err != nil {
		return err
	}
	return j.match(hint)
}

// match returns an error, with a hint, if the run to resume has another agenda.
func (j *Job) match(hint string) error {
	if j.Before == nil {
		return nil
	}
	if differs := j.Agenda.Mismatch(*j.Before, j.Bench.Record()); differs != "" {
		if verb, of := verbOf(j.Argv), verbOf(j.Before.Argv); verb != "" && of != "" && verb != of {
			return NotOf(verb, *j.Before)
		}
		return exit.Misuse(fmt.Errorf("run %s cannot be resumed: %s", j.Before.Run, differs), hint)
	}
	return nil
}

// NotOf is the error for a run to resume that the command verb did not make. m is the run's manifest.
func NotOf(verb string, m record.Manifest) error {
	err, hint := fmt.Errorf("run %s is not a run of %s", m.Run, verb), "omit --resume to start a new run"
	if of := verbOf(m.Argv); of != "" && of != verb {
		err, hint = fmt.Errorf("%w, but of %s", err, of), "rnnbench "+of+" --help"
	}
	return exit.Misuse(err, hint)
}

// verbOf is the command of argv that makes runs; "": there is none.
func verbOf(argv []string) string {
	verbs := []string{"sweep", "tune", "train", "reproduce", "advise"}
	if i := slices.IndexFunc(argv, func(word string) bool { return slices.Contains(verbs, word) }); i >= 0 {
		return argv[i]
	}
	return ""
}

// ForecastAll estimates the whole of decided for a dry run, and shows progress. decided is the agenda with what
// auto chose.
func (j *Job) ForecastAll(ctx context.Context, decided agenda.Agenda) (*agenda.Forecast, error) {
	show := j.tell.Progress(nil, decided.Records())
	ctx, stop := j.tell.Interruptible(ctx, show)
	defer stop()
	defer show.Close()
	return j.Bench.Estimator(j.Config.Measure).Forecast(ctx, decided, 0, show.LaidOut)
}

// TellEnergy warns, before measuring, that the requested energy cannot be counted.
func (j *Job) TellEnergy() {
	if !j.Config.Measure.Energy {
		return
	}
	if err := tuner.NeedsMeter(j.Bench.Device); err != nil {
		j.tell.Warn("no energy will be counted: %v", err)
	}
}

// Begin makes the run's folder, or opens the one to resume. Records of a shard name the machine.
func (j *Job) Begin() (*record.Run, error) {
	run, err := j.open()
	if err == nil && j.Agenda.Shard != nil {
		s := j.Agenda.Shard.String()
		run.On(record.Node{Name: cluster.ThisNode(j.Env.Host.Name == ""), Shard: &s})
	}
	return run, err
}

func (j *Job) open() (*record.Run, error) {
	for _, a := range j.Bench.Warnings(j.Env) {
		j.tell.Warn("%s: %s", a.What, a.Remedy)
	}
	for _, a := range record.Warnings(j.Env) {
		j.tell.Logger().Warn(a.What, "remedy", a.Remedy)
	}
	if j.Before == nil {
		return j.create()
	}
	run, err := record.Resume(j.folder())
	if err != nil && j.Agenda.Shard != nil {
		return nil, busyShard(*j.Agenda.Shard, err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range run.Warnings() {
		j.tell.Warn("%v", w)
	}
	if d := record.Diff(run.Manifest().Environment, j.Env); len(d) > 0 {
		j.tell.Warn("the environment differs from the start of the run: %s", strings.Join(d, "; "))
	}
	return run, nil
}

// folder is the folder of the run to resume; "": there is none.
func (j *Job) folder() string {
	if j.Before == nil {
		return ""
	}
	return record.Find(j.Resume, j.Config.Dir)
}

// create makes the folder of a new run.
func (j *Job) create() (*record.Run, error) {
	const hint = "set --out DIR or RNNBENCH_RESULTS to a writable folder"
	c, q := j.Config, j.Agenda
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	m := record.Manifest{
		Label: c.Label, Argv: append([]string{"rnnbench"}, j.Argv...), Config: text, Environment: j.Env,
		Devices: []record.Device{j.Bench.Record()}, Scope: q.Scope(),
	}
	if s := q.Shard; s != nil {
		run, err := record.Claim(c.Dir, record.ShardFolder(*s), m)
		if err != nil {
			return nil, busyShard(*s, exit.With(exit.Error, err, hint))
		}
		return run, nil
	}
	create := record.Create
	if q.Aside {
		create = record.CreateAside
	}
	run, err := create(c.Dir, m)
	if err != nil {
		return nil, exit.With(exit.Error, err, hint)
	}
	return run, nil
}

// sink is where a sweep takes what it need not measure, and where its records go.
type sink struct {
	show *progress.Progress
	skip func(key string) bool
	emit func(*record.Record) error
}

// into is the sink of a run.
func into(run *record.Run, show *progress.Progress) sink { return sink{show, run.Done, run.Append} }

// sweep measures the sweeps of an agenda.
func (j *Job) sweep(ctx context.Context, q agenda.Agenda, m config.Measure, to sink) error {
	tasks := q.Sweeps().Tasks()
	if len(tasks) == 0 {
		return nil
	}
	if j.Spread {
		tasks = tuner.Spread(tasks)
	}
	s := j.Bench.Sweep(m)
	s.Skip, s.Emit, s.Watch = to.skip, to.emit, to.show.Watch
	return s.Run(ctx, tasks)
}

// Verify runs each technique of the agenda once, and returns the records of the checks.
func (j *Job) Verify(ctx context.Context, show *progress.Progress) (recs []record.Record, err error) {
	ctx, stop := j.tell.Interruptible(ctx, show)
	defer stop()
	defer show.Close()
	err = j.sweep(ctx, j.Agenda, j.Config.Measure, sink{show: show, emit: func(r *record.Record) error {
		recs = append(recs, *r)
		return nil
	}})
	return recs, err
}

// Measure measures what the run lacks of decided, and closes it. look is the forecast.
func (j *Job) Measure(ctx context.Context, run *record.Run, decided agenda.Agenda, look *agenda.Forecast) (*Ending, error) {
	networks, total := decided.Networks(), decided.Sweeps().Records()
	if j.RetryFailed {
		run.RetryFailed()
	}
	open, err := measureOpen(run, j.Config.Measure)
	if err != nil {
		return nil, err
	}
	show := j.tell.Progress(look, total-min(len(run.Measured())-open, total))
	ctx, stop := j.tell.Interruptible(ctx, show)
	defer stop()
	start := time.Now()
	err = j.sweepAndTrain(ctx, decided, run, show)
	show.Close()
	took := time.Since(start)

	_, recs, _, bad := record.Read(run.Dir())
	if bad != nil {
		return nil, errors.Join(err, bad, run.Finish(exit.Error))
	}
	e := &Ending{Records: recs, Missing: total - swept(recs) + unfinished(networks, recs), planned: decided.Records(), spent: errors.Is(err, tuner.ErrBudget), lacks: "records missing"}
	if unfinished(networks, recs) > 0 {
		e.lacks = "records missing or not trained to the end"
	}
	e.Code, e.Outcome = Outcome(recs, err, j.Config.Measure.OnError == "stop", j.AllowFailures)
	if err := run.Finish(e.Code); err != nil {
		if e.Outcome == nil {
			return nil, err
		}
		j.tell.Warn("%v", err) // probably a consequence of what ended the run
	}
	j.tell.Note("%s in %s: %s; took %v", quantity.Plural(len(recs), "record"), run.Dir(), counts(recs), took.Round(100*time.Millisecond))
	j.logCosts(recs, start, took)
	return e, nil
}

// sweepAndTrain measures and trains what the run lacks, and divides the budget between both.
func (j *Job) sweepAndTrain(ctx context.Context, decided agenda.Agenda, run *record.Run, show *progress.Progress) error {
	_, before, _, err := record.Read(run.Dir())
	if err != nil {
		return err
	}
	sweep := func(budget time.Duration) error {
		m := j.Config.Measure
		m.Budget = budget
		return j.sweep(ctx, decided, m, into(run, show))
	}
	networks := decided.Networks()
	if !slices.ContainsFunc(networks, func(n agenda.Network) bool { return !n.Finished(n.Latest(before)) }) {
		return sweep(j.Config.Measure.Budget)
	}
	train := func(budget time.Duration) error {
		t := j.training(networks, run, before)
		t.Budget = budget
		return t.Do(ctx)
	}
	return training.Divide(j.Config.Measure.Budget, time.Now, sweep, train)
}

// measureOpen lets a run that is resumed with --until clear measure the points again whose winner is
// open. All techniques of a point take turns once more. It returns the number of records that will be
// replaced.
func measureOpen(run *record.Run, m config.Measure) (int, error) {
	if m.Until != config.UntilClear {
		return 0, nil
	}
	_, recs, _, err := record.Read(run.Dir())
	if err != nil {
		return 0, err
	}
	var keys []string
	for _, x := range quantity.Races(quantity.Latest(recs)) {
		if l, ok := quantity.LeadOf(x); ok && !l.Clear() && !l.Ratio.Equal() {
			for _, r := range x {
				if r.Seconds() > 0 {
					keys = append(keys, r.Key())
				}
			}
		}
	}
	run.MeasureAgain(keys)
	return len(keys), nil
}

// swept counts the records of sweeps, which are not of training.
func swept(recs []record.Record) (n int) {
	for i := range recs {
		if recs[i].Training == nil {
			n++
		}
	}
	return n
}

// unfinished counts the networks that still need training.
func unfinished(networks []agenda.Network, recs []record.Record) (n int) {
	for _, x := range networks {
		if last := x.Latest(recs); last == nil || last.Status == record.OK && !x.Finished(last) {
			n++
		}
	}
	return n
}

// logCosts logs how the time since start was spent, in seconds.
func (j *Job) logCosts(recs []record.Record, start time.Time, took time.Duration) {
	var sum record.Cost
	n, rest := 0, took.Seconds()
	for i := range recs {
		if c := &recs[i].Cost; recs[i].Time.After(start) {
			n++
			sum.Setup, sum.Verify, sum.Warmup, sum.Measure = sum.Setup+c.Setup, sum.Verify+c.Verify, sum.Warmup+c.Warmup, sum.Measure+c.Measure
			rest -= c.Setup + c.Verify + c.Warmup + c.Measure
		}
	}
	j.tell.Logger().Debug("time", "records", n, "setup", sum.Setup, "verify", sum.Verify, "warmup", sum.Warmup, "measure", sum.Measure, "rest", rest)
}
