package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/device"
	"rnnbench/experiments"
	"rnnbench/experiments/session"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
)

func reproduceCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "reproduce [ID...|all] [flags]",
		Short:   "Repeat papers' experiments and compare their numbers",
		GroupID: "measure",
		Long: `Reproduce repeats the measurements behind a paper's table or figure, draws the result
and compares the paper's numbers with this machine's. Without an ID, it lists the
experiments. Each experiment is a run; its folder also holds the figures and report.md.

If the budget runs out, the measured points still cover the experiment evenly. Several
experiments share the budget, as do the networks that one trains. --resume adds the missing
points to the same folder. It continues training from checkpoints, bit for bit.

With several experiments, or all, reproduce prints one table of published and measured
findings at the end. It also writes one HTML page with every table and figure.`,
		Example: `  rnnbench reproduce
  rnnbench reproduce appleyard-table1 --quick
  rnnbench reproduce appleyard-table1 --from out     # redo the latest report
  rnnbench reproduce appleyard-fig1 --budget 10m
  rnnbench reproduce appleyard-fig1 --resume out     # add missing points
  rnnbench reproduce appleyard-fig1 --shard 3/16     # one job of many
  rnnbench reproduce random-layers --seed 7          # other layers
  rnnbench reproduce all --budget 1h
  rnnbench reproduce all --resume                    # continue after Ctrl-C`,
		Args: func(cmd *cobra.Command, args []string) error {
			known := append([]string{"all", "list"}, experiments.IDs()...)
			for i, a := range args {
				if !slices.Contains(known, a) {
					return usage(grid.Unknown("experiment", a, known), "rnnbench reproduce")
				}
				if slices.Contains(args[:i], a) {
					return usage(fmt.Errorf("%s is named twice: omit one", a), "rnnbench reproduce")
				}
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			list := []cobra.Completion{cobra.CompletionWithDesc("all", "every experiment")}
			for _, e := range experiments.All() {
				list = append(list, cobra.CompletionWithDesc(e.ID, e.Title+" ("+e.Source+")"))
			}
			return list, cobra.ShellCompDirectiveNoFileComp
		},
	}
	f := &sweepFlags{}
	var quick bool
	var from recorded
	f.reproduceFlags(cmd, &quick, &from)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, args []string) error {
		return reproduction(ctx, p, cmd, f, args, quick, from)
	})
}

// reproduceFlags adds the flags of the command.
func (f *sweepFlags) reproduceFlags(cmd *cobra.Command, quick *bool, from *recorded) {
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(quick, "quick", false, "use smaller networks, about a minute per figure")
		fs.BoolVar(&f.dryRun, "dry-run", false, "print the plan and the estimated time without measuring")
		fs.StringVar(&from.run, "from", "", "redo the report and figures of a recorded `RUN` without measuring")
		fs.StringVar(&from.again, "again", "", "with --from, a second `RUN` of the experiment; report how far both differ")
		f.resumeFlag(fs)
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.allowFailures, "allow-failures", false, "exit with 0 despite failed points, if at least one succeeded")
		fs.BoolVar(&f.hideHost, "no-hostname", false, "omit the host name from the run")
	})
	f.measureFlags(cmd)
	f.rivalFlag(cmd)
	namedWisdomFlag(&f.settings, cmd)
	f.device(cmd)
	f.source(cmd)
	f.format = "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		formats := []string{"table", "markdown", "json"}
		fs.VarP(choice{&f.format, "format", formats}, "format", "o", "how to print: "+strings.Join(formats, ", "))
	})
	completeGrid(cmd)
}

// reproduction checks the flags, then lists, reports on or reproduces experiments.
func reproduction(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, args []string, quick bool, from recorded) error {
	all := slices.Contains(args, "all")
	one := len(args) == 1 && args[0] != "list" && !all
	if from.run != "" && !one {
		return misused(cmd, errors.New("--from takes one experiment: name one"))
	}
	if from.again != "" && from.run == "" {
		return misused(cmd, errors.New("--again needs a first run to compare with: add --from RUN"))
	}
	if f.resume != "" && !one && !all {
		return misused(cmd, errors.New("--resume takes one experiment, or all"))
	}
	if err := f.checkResume(); err != nil {
		return misused(cmd, err)
	}
	if from.run != "" {
		f.shard = noShard
	}
	if err := f.readShard(p); err != nil {
		return misused(cmd, err)
	}
	if f.divided() && !one && len(args) > 0 && args[0] != "list" {
		return usage(errors.New("--shard divides one experiment: name one, or add --shard off"), "rnnbench reproduce")
	}
	if len(args) == 0 || slices.Contains(args, "list") {
		return listExperiments(p, f.format)
	}
	if all {
		args = experiments.IDs()
	}
	f.applySwitches()
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if f.resume == resumeLatest {
		f.resume = c.Dir
	}
	if !one {
		return several(ctx, p, cmd, f, c, args, quick)
	}
	e, err := experiments.Lookup(args[0])
	if err != nil {
		return misused(cmd, err)
	}
	if from.run != "" {
		from.run = runPath(from.run, c.Dir)
		if from.again != "" {
			from.again = runPath(from.again, c.Dir)
		}
		return reportFrom(p, e, from, f.format)
	}
	if len(f.rivals) > 0 && e.Rivals == "" && !e.Guests {
		return usage(fmt.Errorf("%s compares no rivals, so --rival has no effect: omit it", e.ID), "rnnbench reproduce rivals-cpu, rivals-gpu and random-layers take --rival; so does sweep")
	}
	size := experiments.Full
	if quick {
		size = experiments.Quick
	}
	var before *record.Manifest
	if f.resume != "" {
		if c, before, err = f.resumed(p, c.Dir); err != nil {
			return misused(cmd, err)
		}
	}
	return reproduce(ctx, p, cmd, f, c, e, size, before, nil)
}

// several reproduces experiments one after the other, in a new session or the one that --resume
// names.
func several(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, c config.Config, ids []string, quick bool) error {
	if f.resume != "" {
		s, err := session.Find(runPath(f.resume, c.Dir))
		if none := (*session.NoneError)(nil); errors.As(err, &none) {
			return &failure{exitError, err, "run rnnbench reproduce all --quick to start one"}
		}
		if err != nil {
			return err
		}
		was, err := config.FromJSON(s.Config)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Dir, err)
		}
		if c, err = f.resolve(p, was); err != nil {
			return misused(cmd, err)
		}
		c.Dir = filepath.Dir(s.Dir)
		return reproduceAll(ctx, p, cmd, f, c, s)
	}
	if f.dryRun { // it creates no folder
		return reproduceAll(ctx, p, cmd, f, c, session.New(ids, quick))
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	s := session.New(ids, quick)
	s.Config = text
	if err := s.Create(c.Dir); err != nil {
		if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
			return &failure{exitError, err, "set --out DIR to a writable folder"}
		}
		return err
	}
	return reproduceAll(ctx, p, cmd, f, c, s)
}

func listExperiments(p *program, format string) error {
	t := words("experiment", "what", "source")
	for _, e := range experiments.All() {
		t.Rows = append(t.Rows, row(e.ID, e.Title, e.Source))
	}
	return t.Write(p.out, format, pageStyle(p))
}

// reproduce measures one experiment and reports on it. With before, it measures only what that
// run lacks.
func reproduce(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, c config.Config, e experiments.Experiment, size experiments.Size, before *record.Manifest, of *session.Sitting) error {
	c.Measure.Energy = c.Measure.Energy || e.Energy
	env := environment(f.hideHost)
	f.guests, c.Grid.Impl, c.Grid.SkipImpl = e.Rivals != "" || e.Guests, nil, nil // an experiment names its own techniques
	b, err := p.open(&f.settings, c)
	if err != nil {
		return misused(cmd, err)
	}
	defer b.Close()
	if c.Label == "" {
		c.Label = e.ID
	}
	followNamed(&f.settings, b)
	on := experiments.TargetOf(b.record())
	on.Seed = c.Measure.Seed
	if why, hint := e.Declines(on); why != "" {
		return &failure{exitNoDevice, errors.New(why), hint}
	}
	q, resume := e.Plan(size, on), ""
	if before != nil {
		if quick := e.Plan(experiments.Quick, on); quick.Hash() == before.Plan.Hash {
			q = quick
		}
	}
	if err := usesWisdom(&f.settings, q, e.ID, of == nil); err != nil {
		return err
	}
	if q, before, err = f.divide(p, c, b, q, before); err != nil {
		return misused(cmd, err)
	}
	if before != nil {
		if differs := q.Mismatch(*before, b.record()); differs != "" {
			return usage(fmt.Errorf("run %s cannot be resumed: %s", before.Run, differs), "omit --resume to start a new run")
		}
		resume = runPath(f.resume, c.Dir)
	}
	if err := training.Readable(q.Networks()); err != nil {
		return fmt.Errorf("%s: %w", e.ID, err)
	}
	if err := measureExperiment(p, b, e, before); err != nil {
		return err
	}
	tellEnergy(p, b, c.Measure)
	if q.Records() == 0 {
		return compute(p, f, c, b, e, q, env, of)
	}
	decided, err := choose(p, b, q)
	if err != nil {
		return misused(cmd, err)
	}
	if f.dryRun {
		return dryRun(ctx, p, cmd, f, b, decided, c.Measure)
	}
	look, err := forecast(ctx, p, b, decided, c.Measure)
	if err != nil {
		return err
	}
	p.note("%s (%s)", e.Title, e.Source)
	p.note("%s", look.Line(q.Summary))
	run, err := begin(p, c, b, q, resume, env)
	if err != nil {
		return err
	}
	if err := of.Begin(run.Dir()); err != nil {
		return err
	}
	end, err := complete(ctx, p, f, c, run, look, job{bench: b, plan: decided, spread: true, measure: c.Measure})
	if err != nil {
		return err
	}
	if err := reportOn(p, b, e, end, f.format, run.Dir(), of == nil); err != nil {
		return errors.Join(end.outcome, err)
	}
	if end.code != exitInterrupted {
		if err := of.End(end.missing); err != nil {
			return err
		}
	}
	return conclude(p, end, c, fmt.Sprintf("rnnbench reproduce %s --resume %s", e.ID, run.Dir()))
}

// reportOn reports on a run's records. If too many are missing for a report, it prints a note.
func reportOn(p *program, b *bench, e experiments.Experiment, end *ending, format, dir string, show bool) error {
	if len(end.records) == 0 {
		return nil
	}
	report, err := e.On(b.record(), end.records)
	if err != nil && end.missing > 0 {
		p.note("no report yet: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if e.Model != nil {
		moved, err := b.machineChanges()
		if err != nil {
			return err
		}
		report.Findings = append(report.Findings, moved...)
	}
	return present(p, e, report, format, dir, show)
}

// measureExperiment measures the peaks to which an experiment's records are compared, or takes
// them from the run to resume.
func measureExperiment(p *program, b *bench, e experiments.Experiment, before *record.Manifest) error {
	if before != nil && before.Devices[0].Peak != nil { // all records of a run are compared to the same peaks
		b.limits.FLOPS, b.limits.Unsure = *before.Devices[0].Peak, before.Devices[0].Unsure
		for precision, rate := range before.Devices[0].ProductRates() {
			b.limits.More = append(b.limits.More, device.Rate{Name: precision + " products", Value: rate, Unit: "FLOP/s"})
		}
		if c := before.Devices[0].Bandwidth; c != nil {
			b.limits.Copy = *c
		}
	} else if err := measureBench(p, b); err != nil {
		return err
	}
	if e.Model == nil {
		return nil
	}
	return measureModel(p, b)
}

// compute reports on an experiment that has nothing to measure.
func compute(p *program, f *sweepFlags, c config.Config, b *bench, e experiments.Experiment, q plan.Plan, env record.Environment, of *session.Sitting) error {
	p.note("%s (%s)", e.Title, e.Source)
	if f.dryRun {
		p.note("this experiment is computed; nothing to measure")
		return nil
	}
	report, err := e.On(b.record(), nil)
	if err != nil {
		return err
	}
	run, err := begin(p, c, b, q, "", env)
	if err != nil {
		return err
	}
	err = errors.Join(of.Begin(run.Dir()), present(p, e, report, f.format, run.Dir(), of == nil), run.Finish(exitDone))
	if err != nil {
		return err
	}
	return of.End(0)
}

// present prints a report if show is set. It saves the report with its figures in dir; "": it
// saves nothing.
func present(p *program, e experiments.Experiment, r *experiments.Report, format, dir string, show bool) error {
	if show {
		if err := p.show(r, format); err != nil {
			return err
		}
	}
	if dir == "" {
		return nil
	}
	return e.Save(r, dir, func(path string) {
		if show {
			p.note("wrote %s", path)
		}
	})
}

// show prints the tables and findings of a report.
func (p *program) show(r *experiments.Report, format string) error {
	for i, t := range r.Tables {
		if i > 0 && format != "json" {
			if _, err := fmt.Fprintln(p.out); err != nil {
				return err
			}
		}
		if err := t.Write(p.out, format, p.style()); err != nil {
			return err
		}
	}
	if format != "json" {
		for _, s := range r.Findings {
			if err := table.WriteLines(p.out, []string{"", s}, 0, p.style()); err != nil {
				return err
			}
		}
	}
	return nil
}
