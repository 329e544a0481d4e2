package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/plan"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	settings
	noVerify, energy, dryRun, print, profile, allowFailures, hideHost bool
	retryFailed                                                       bool
	resume, format, baseline                                          string

	shard string        // --shard
	part  *record.Shard // the shard to measure; nil: the whole plan, or that of the job in array
	array *plan.Array   // the job of a scheduler's array, until its part is known; nil: none
	share string        // describes part, for a dry run
	sum   *total        // of the dry runs of several experiments; nil: of one

	submitted, required string // --submitted-version and --submitted-device
}

func sweepCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sweep [flags]",
		Short:   "Measure techniques over a grid of points",
		GroupID: "measure",
		Long: `Sweep measures every technique at every point of a grid. It checks each answer
against the float64 reference, then times the techniques in shuffled, interleaved
rounds. Each run has its own folder. Sweep saves records there as it measures them
and prints them as a table at the end. A line below it names the fastest technique;
rnnbench explain shows why it is fast. Ctrl-C loses no finished record; --resume
continues the run.

With --calls, sweep measures latency as a server sees it: each call writes an input of
one time step, or of --steps, runs, and reads the output. States stay on the device.
Every call is timed alone.`,
		Example: `  rnnbench sweep --preset quick
  rnnbench sweep --cell lstm,gru -H 256:2048:x2 -B 1,32 -T 100
  rnnbench sweep --point H=1024,B=32,T=100 --impl naive,cudnnstyle:fused=0,cudnnstyle
  rnnbench sweep --calls 4000 -H 640 -B 1,16         # latency of a server
  rnnbench sweep --preset deepbench-train --where 'mem<=8GiB' --budget 30m --dry-run
  rnnbench sweep --config nightly.toml -o csv > nightly.csv
  rnnbench sweep --resume out
  rnnbench sweep --preset deepbench-train --shard 3/16      # one job of many`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &sweepFlags{}
	f.grid(cmd)
	f.rivalFlag(cmd)
	f.measureFlags(cmd)
	f.device(cmd)
	f.source(cmd)
	f.runFlags(cmd)
	progressFlag(p, cmd)
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.profile, "profile", false, "run each technique once, without checks or warm-up, under an external profiler")
	})
	formatFlags(p, cmd, &f.format, &f.baseline)
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error { return sweep(ctx, p, cmd, f) })
}

// measureFlags adds the flags that say how to measure.
func (f *sweepFlags) measureFlags(cmd *cobra.Command) {
	f.times = true
	f.measure(cmd, "effort", "rounds", "max-rounds", "warmup", "min-time", "min-iters", "target-ci", "point-timeout", "budget", "until",
		"order", "seed", "cache", "data", "on-error", "isolate")
	addGroup(cmd, "Measuring", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.noVerify, "no-verify", false, "skip the check of answers; wrong answers are timed too")
		fs.BoolVar(&f.energy, "energy", false, "also count the energy of each technique, which takes 10 s more for each")
	})
}

// runOnce sets the settings that --profile implies, unless a flag sets them.
func (f *sweepFlags) runOnce() {
	for name, value := range map[string]string{
		"rounds": "1", "max-rounds": "1", "warmup": "0s", "min-time": "0s", "min-iters": "1", "verify": "off",
	} {
		if t := f.values[name]; t == nil || t.list == nil {
			f.values[name] = &texts{list: []string{value}}
		}
	}
}

// runFlags adds the flags of the run that the command creates.
func (f *sweepFlags) runFlags(cmd *cobra.Command) {
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan and the estimated time without measuring")
		fs.BoolVar(&f.print, "print-config", false, "print the effective settings as a configuration file")
		f.resumeFlag(fs)
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.allowFailures, "allow-failures", false, "exit with 0 despite failed points, if at least one succeeded")
		fs.BoolVar(&f.hideHost, "no-hostname", false, "omit the host name from the run")
	})
}

func (f *sweepFlags) resumeFlag(fs *pflag.FlagSet) {
	fs.StringVar(&f.resume, "resume", "", "resume a `RUN`: its folder, id or label, or a results folder (its latest run); without a value, the latest")
	fs.BoolVar(&f.retryFailed, "retry-failed", false, "with --resume, retry points that failed, timed out or gave a wrong answer")
}

// checkResume returns an error for --retry-failed without an earlier run.
func (f *sweepFlags) checkResume() error {
	if f.retryFailed && f.resume == "" && f.shard == "" {
		return errors.New("--retry-failed needs --resume RUN")
	}
	return nil
}

// effectiveConfig returns the settings: flags override those of the run to resume. before is that
// run's manifest; nil: there is none.
func (f *sweepFlags) effectiveConfig(p *program) (c config.Config, before *record.Manifest, err error) {
	if c, err = f.resolve(p); err != nil {
		return c, nil, err
	}
	if err := f.checkResume(); err != nil {
		return c, nil, err
	}
	if err := f.readShard(p); err != nil {
		return c, nil, err
	}
	if f.resume == "" {
		return c, nil, nil
	}
	return f.resumed(p, c.Dir)
}

// sweep measures the grid that the flags name. A dry run prints what it would measure.
func sweep(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags) error {
	f.applySwitches()
	if f.profile {
		f.runOnce()
	}
	c, before, err := f.effectiveConfig(p)
	if err != nil {
		return misused(cmd, err)
	}
	if f.print {
		return config.Print(p.out, c)
	}
	if f.dryRun { // it must not measure
		f.auto = autoPredict
	}
	env := environment(f.hideHost)
	b, err := p.open(&f.settings, c)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	q, err := planFor(p, c, b)
	if err != nil {
		return misused(cmd, err)
	}
	q.Aside = f.profile
	if q, before, err = f.divide(p, c, b, q, before); err != nil {
		return misused(cmd, err)
	}
	if before != nil {
		if differs := q.Mismatch(*before, b.record()); differs != "" {
			return usage(fmt.Errorf("run %s cannot be resumed: %s", before.Run, differs), "omit --resume to start a new run, or omit the other flags to resume this one")
		}
	}
	specs := q.Specs()
	if err := amongTechniques(cmd, f.baseline, len(specs), func(i int) (name, label string) { return specs[i].Name, specs[i].Label }); err != nil {
		return err
	}
	tellChoices(p, specs)
	p.log.Debug("plan", "points", q.Points(), "records", q.Records(), "hash", q.Hash(), "device", b.info.Key, "workers", b.info.Workers)
	if !f.profile {
		if err := measureBench(p, b); err != nil {
			return err
		}
	}
	b.atLeast(before)
	tellEnergy(p, b, c.Measure)
	p.log.Debug("limits", "flops", b.limits.FLOPS, "copy", b.limits.Copy)
	if f.dryRun {
		return dryRun(ctx, p, cmd, f, b, q, c.Measure)
	}
	look, err := forecast(ctx, p, b, q, c.Measure)
	if err != nil {
		return misused(cmd, err)
	}
	p.note("%s", look.Line(q.Summary))
	resume := ""
	if before != nil {
		resume = runPath(f.resume, c.Dir)
	}
	run, err := begin(p, c, b, q, resume, env)
	if err != nil {
		return err
	}
	return carryOut(ctx, p, f, c, run, look, job{bench: b, plan: q, measure: c.Measure})
}

// atLeast raises the peaks to those of the run to resume, if they were higher: the machine may
// have been busy in either measurement.
func (b *bench) atLeast(before *record.Manifest) {
	if before == nil {
		return
	}
	was := before.Devices[0]
	raise(&b.limits, device.LimitFLOPS, &b.limits.FLOPS, was.PeakRate())
	rates := was.ProductRates()
	for i := range b.limits.More {
		r := &b.limits.More[i]
		if precision, ok := strings.CutSuffix(r.Name, " products"); ok {
			raise(&b.limits, r.Name, &r.Value, rates[precision])
		}
	}
}

// dryRun prints what would be measured, with estimates of time and memory.
func dryRun(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, b *bench, q plan.Plan, m config.Measure) error {
	look, err := forecastAll(ctx, p, b, q, m)
	if err != nil {
		return misused(cmd, err)
	}
	f.sum.add(q.Records(), look.Seconds)
	switch f.format {
	case "table", "markdown":
	case "csv", "json":
		return look.Table().Write(p.out, f.format, p.style())
	default:
		return usage(fmt.Errorf("a dry run cannot be printed as %s: choose one of %s", f.format, strings.Join(table.Formats(), ", ")), "")
	}
	lines := look.Lines(q.Summary, m.Budget, b.free())
	if f.share != "" {
		lines = append(lines, f.share)
	}
	return table.WriteLines(p.out, lines, 4, p.style())
}

// carryOut measures what the run lacks, closes it and prints its table.
func carryOut(ctx context.Context, p *program, f *sweepFlags, c config.Config, run *record.Run, look *plan.Forecast, j job) error {
	e, err := complete(ctx, p, f, c, run, look, j)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(e.records, func(r record.Record) bool { return r.Rate != nil && r.Rate.Percent != nil && *r.Rate.Percent > 100 }) {
		p.warn("some rates exceed the measured peak: another program probably disturbed the measurement of the peak; ignore these percentages")
	}
	if len(e.records) > 0 {
		if err := records(p, e.records, f.format, f.baseline); err != nil {
			return err
		}
		e.format = f.format
	}
	return conclude(p, e, c, "rnnbench sweep --resume "+run.Dir())
}

// An ending is the outcome of a run.
type ending struct {
	records []record.Record // all records of the run
	planned int             // records and networks
	missing int             // of those planned
	lacks   string          // the words for missing
	spent   bool            // the budget was spent before the run was complete
	format  string          // in which the records were printed; "": they were not
	code    int             // exit code
	outcome error           // why code is not 0
}

// complete measures what the run lacks and closes it.
func complete(ctx context.Context, p *program, f *sweepFlags, c config.Config, run *record.Run, look *plan.Forecast, j job) (*ending, error) {
	networks, total := j.plan.Networks(), j.plan.Sweeps().Records()
	if f.retryFailed {
		run.RetryFailed()
	}
	open, err := measureOpen(run, j.measure)
	if err != nil {
		return nil, err
	}
	show := p.newProgress(look, total-min(len(run.Measured())-open, total))
	ctx, stop := interruptible(ctx, show)
	defer stop()
	start := time.Now()
	j.show, j.skip, j.emit = show, run.Done, run.Append
	err = j.sweepAndTrain(ctx, p, networks, run)
	show.Close()
	took := time.Since(start)

	_, recs, _, bad := record.Read(run.Dir())
	if bad != nil {
		return nil, errors.Join(err, bad, run.Finish(exitError))
	}
	e := &ending{records: recs, planned: j.plan.Records(), spent: errors.Is(err, tuner.ErrBudget)}
	rest := unfinished(networks, recs)
	e.missing, e.lacks = total-swept(recs)+rest, "records missing"
	if rest > 0 {
		e.lacks = "records missing or not trained to the end"
	}
	e.code, e.outcome = exitCode(recs, err, c.Measure.OnError == "stop", f.allowFailures)
	if err := run.Finish(e.code); err != nil {
		if e.outcome == nil {
			return nil, err
		}
		p.warn("%v", err) // probably a consequence of what ended the run
	}
	p.note("%s in %s: %s; took %v", plural(len(recs), "record"), run.Dir(), counts(recs), took.Round(100*time.Millisecond))
	logCosts(p, recs, start, took)
	return e, nil
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

// logCosts logs how the time since start was spent, in seconds.
func logCosts(p *program, recs []record.Record, start time.Time, took time.Duration) {
	var sum record.Cost
	n, rest := 0, took.Seconds()
	for i := range recs {
		if c := &recs[i].Cost; recs[i].Time.After(start) {
			n++
			sum.Setup, sum.Verify, sum.Warmup, sum.Measure = sum.Setup+c.Setup, sum.Verify+c.Verify, sum.Warmup+c.Warmup, sum.Measure+c.Measure
			rest -= c.Setup + c.Verify + c.Warmup + c.Measure
		}
	}
	p.log.Debug("time", "records", n, "setup", sum.Setup, "verify", sum.Verify, "warmup", sum.Warmup, "measure", sum.Measure, "rest", rest)
}

// conclude prints what is missing and that the command again resumes the run. It returns the outcome.
func conclude(p *program, e *ending, c config.Config, again string) error {
	tellNoise(p, e.records)
	hint := ""
	if e.missing > 0 {
		hint = again + " resumes the run"
	} else if slices.ContainsFunc(e.records, func(r record.Record) bool { return r.Passing() }) {
		hint = again + " retries points whose worker was lost"
	}
	if e.spent {
		p.note("budget of %v exhausted; %d of %d %s", c.Measure.Budget, e.missing, e.planned, e.lacks)
	}
	if e.outcome == nil {
		if hint != "" {
			p.note("hint: %s", hint)
		}
		return nil
	}
	if hint == "" {
		hint = reasons(e.records, e.format)
	}
	return &failure{e.code, e.outcome, hint}
}

// counts formats how many records have each status.
func counts(recs []record.Record) string {
	var parts []string
	for _, s := range record.Statuses() {
		n := 0
		for i := range recs {
			if recs[i].Status == s {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func plural(n int, noun string) string { return quantity.Plural(n, noun) }

// recordFormats lists the formats in which records can be printed.
func recordFormats() []string { return append(table.Formats(), "jsonl", "benchfmt") }

// formatFlags adds the flags of commands that print records.
func formatFlags(p *program, cmd *cobra.Command, format, baseline *string) {
	*format = "table"
	addGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.VarP(choice{format, "format", recordFormats()}, "format", "o", "how to print: "+strings.Join(recordFormats(), ", "))
		f.StringVar(baseline, "baseline", "naive", "baseline `TECHNIQUE` of speed-ups")
	})
}

// records prints records in a format, with speed-ups over baseline.
func records(p *program, recs []record.Record, format, baseline string) error {
	switch format {
	case "jsonl":
		return table.JSONL(p.out, recs)
	case "benchfmt":
		return table.Benchfmt(p.out, recs)
	}
	t, err := table.Records(recs, baseline)
	if err != nil {
		return err
	}
	if line := quantity.Fastest(quantity.Latest(recs)); line != "" {
		t.Notes = append([]string{line}, t.Notes...)
	}
	return t.Write(p.out, format, p.style())
}
