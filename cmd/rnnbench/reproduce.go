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

	"rnnbench/experiments"
	"rnnbench/experiments/session"
	"rnnbench/experiments/study"
	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/job"
	"rnnbench/tuner/wisdom"
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
					return exit.Misuse(grid.Unknown("experiment", a, known), "rnnbench reproduce")
				}
				if slices.Contains(args[:i], a) {
					return exit.Misuse(fmt.Errorf("%s is named twice: omit one", a), "rnnbench reproduce")
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
		fs.BoolVar(&f.DryRun, "dry-run", false, "print the plan and the estimated time without measuring")
		fs.StringVar(&from.run, "from", "", "redo the report and figures of a recorded `RUN` without measuring")
		fs.StringVar(&from.again, "again", "", "with --from, a second `RUN` of the experiment; report how far both differ")
		f.resumeFlag(fs)
		f.retryFlag(fs)
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.AllowFailures, "allow-failures", false, "exit with 0 despite failed points, if at least one succeeded")
		fs.BoolVar(&f.HideHost, "no-hostname", false, "omit the host name from the run")
	})
	f.measureFlags(cmd)
	f.rivalFlag(cmd)
	addGroup(cmd, "Techniques", func(fs *pflag.FlagSet) {
		fs.StringVar(&f.Wisdom, "wisdom", "", "`FILE` with wisdom that auto follows (default: none; the cost model chooses)")
	})
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
	if f.Resume != "" && !one && !all {
		return misused(cmd, errors.New("--resume takes one experiment, or all"))
	}
	if from.run != "" {
		f.Shard = job.NoShard
	}
	f.Version = version()
	if err := f.Check(); err != nil {
		return misused(cmd, err)
	}
	if f.Divided() && !one && len(args) > 0 && args[0] != "list" {
		return exit.Misuse(errors.New("--shard divides one experiment: name one, or add --shard off"), "rnnbench reproduce")
	}
	if len(args) == 0 || slices.Contains(args, "list") {
		return listExperiments(p, f.format)
	}
	if all {
		args = experiments.IDs()
	}
	f.applySwitches()
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	if f.Resume == job.Latest {
		f.Resume = f.Config.Dir
	}
	if !one {
		return several(ctx, p, cmd, f, args, quick)
	}
	e, err := experiments.Lookup(args[0])
	if err != nil {
		return misused(cmd, err)
	}
	if from.run != "" {
		from.run = record.Find(from.run, f.Config.Dir)
		if from.again != "" {
			from.again = record.Find(from.again, f.Config.Dir)
		}
		return reportFrom(p, e, from, f.format)
	}
	if len(f.rivals) > 0 && e.Rivals == "" && !e.TakesRivals {
		return exit.Misuse(fmt.Errorf("%s compares no rivals, so --rival has no effect: omit it", e.ID), "rnnbench reproduce rivals-cpu, rivals-gpu, rivals-scan, rl and random-layers take --rival; so does sweep")
	}
	size := study.Full
	if quick {
		size = study.Quick
	}
	before, err := f.Prepare()
	if err != nil {
		return misused(cmd, err)
	}
	return reproduce(ctx, p, cmd, f, e, size, before, nil)
}

// several reproduces experiments one after the other, in a new session or the one that --resume
// names.
func several(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, ids []string, quick bool) error {
	if f.Resume != "" {
		s, err := session.Find(record.Find(f.Resume, f.Config.Dir))
		if none := (*session.NoneError)(nil); errors.As(err, &none) {
			return exit.With(exit.Error, err, "run rnnbench reproduce all --quick to start one")
		}
		if err != nil {
			return err
		}
		was, err := config.FromJSON(s.Config)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Dir, err)
		}
		if err := f.Base(was); err != nil {
			return misused(cmd, err)
		}
		f.Config.Dir = filepath.Dir(s.Dir)
		return reproduceAll(ctx, p, cmd, f, s)
	}
	s := session.New(ids, quick)
	if f.DryRun { // it creates no folder
		return reproduceAll(ctx, p, cmd, f, s)
	}
	var err error
	if s.Config, err = json.Marshal(f.Config); err != nil {
		return err
	}
	if err := s.Create(f.Config.Dir); err != nil {
		if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
			return exit.With(exit.Error, err, "set --out DIR to a writable folder")
		}
		return err
	}
	return reproduceAll(ctx, p, cmd, f, s)
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
func reproduce(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, e study.Experiment, size study.Size, before *record.Manifest, of *session.Entry) error {
	c := &f.Config
	f.Verified = true
	c.Measure.Energy = c.Measure.Energy || e.Energy
	f.Rivals, c.Grid.Impl, c.Grid.SkipImpl = e.Rivals != "" || e.TakesRivals, nil, nil // an experiment names its own techniques
	j, err := job.Open(&f.Request, before, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer j.Close()
	b := j.Bench
	if c.Label == "" {
		c.Label = e.ID
	}
	if f.Wisdom == "" { // with the user's own default file, nobody could repeat an experiment
		b.Oracle.Read = func() (*wisdom.Book, error) { return &wisdom.Book{}, nil }
	}
	on := study.TargetOf(b.Record())
	on.Seed = c.Measure.Seed
	if why, hint := e.Declines(on); why != "" {
		return exit.With(exit.NoDevice, errors.New(why), hint)
	}
	q := e.Agenda(size, on)
	if before != nil {
		if quick := e.Agenda(study.Quick, on); quick.Hash() == before.Scope.Hash {
			q = quick
		}
	}
	if f.Wisdom != "" && of == nil && !slices.Contains(q.Labels(), auto.Name) {
		return exit.Misuse(fmt.Errorf("%s does not measure auto, so --wisdom has no effect: omit it", e.ID), "rnnbench reproduce random-layers and deepbench-16bit take --wisdom; so does sweep")
	}
	if err := j.Set(q, "omit --resume to start a new run"); err != nil {
		return misused(cmd, err)
	}
	if err := training.Readable(j.Agenda.Networks()); err != nil {
		return fmt.Errorf("%s: %w", e.ID, err)
	}
	if j.Before == nil || !b.TakeLimits(j.Before) { // all records of a run are compared to the same peaks
		err = b.MeasureLimits()
	}
	if err == nil && e.Model != nil {
		err = b.MeasureMachine()
	}
	if err != nil {
		return err
	}
	j.TellEnergy()
	if j.Agenda.Records() == 0 {
		return compute(p, f, j, e, of)
	}
	decided, err := b.Choose(j.Agenda)
	if err != nil {
		return misused(cmd, err)
	}
	if f.DryRun {
		return dryRun(ctx, p, cmd, f, j, decided)
	}
	j.Spread = true
	return measureExperiment(ctx, p, f, j, decided, e, of)
}

// measureExperiment measures an experiment with techniques decided, and reports on it.
func measureExperiment(ctx context.Context, p *program, f *sweepFlags, j *job.Job, decided agenda.Agenda, e study.Experiment, of *session.Entry) error {
	look, err := j.Bench.Forecast(ctx, decided, f.Config.Measure)
	if err != nil {
		return err
	}
	p.Note("%s (%s)", e.Title, e.Source)
	p.Note("%s", look.Line(decided.Summary))
	run, err := j.Begin()
	if err != nil {
		return err
	}
	if err := of.Begin(run.Dir()); err != nil {
		return err
	}
	end, err := j.Measure(ctx, run, decided, look)
	if err != nil {
		return err
	}
	if err := reportOn(p, j.Bench, e, end, f.format, run.Dir(), of == nil); err != nil {
		return errors.Join(end.Outcome, err)
	}
	if end.Code != exit.Interrupted {
		if err := of.End(end.Missing); err != nil {
			return err
		}
	}
	return j.Conclude(end, fmt.Sprintf("rnnbench reproduce %s --resume %s", e.ID, run.Dir()))
}

// reportOn reports on a run's records. If too many are missing for a report, it prints a note.
func reportOn(p *program, b *bench.Bench, e study.Experiment, end *job.Ending, format, dir string, show bool) error {
	if len(end.Records) == 0 {
		return nil
	}
	report, err := e.On(b.Record(), end.Records)
	if err != nil && end.Missing > 0 {
		p.Note("no report yet: %v", err)
		return nil
	}
	if err == nil && e.Model != nil {
		var moved []string
		moved, err = b.MachineChanges()
		report.Findings = append(report.Findings, moved...)
	}
	if err != nil {
		return err
	}
	return present(p, e, report, format, dir, show)
}

// compute reports on an experiment that has nothing to measure.
func compute(p *program, f *sweepFlags, j *job.Job, e study.Experiment, of *session.Entry) error {
	p.Note("%s (%s)", e.Title, e.Source)
	if f.DryRun {
		p.Note("this experiment is computed; nothing to measure")
		return nil
	}
	report, err := e.On(j.Bench.Record(), nil)
	if err != nil {
		return err
	}
	j.Before = nil
	run, err := j.Begin()
	if err != nil {
		return err
	}
	err = errors.Join(of.Begin(run.Dir()), present(p, e, report, f.format, run.Dir(), of == nil), run.Finish(exit.Done))
	if err != nil {
		return err
	}
	return of.End(0)
}

// present prints a report if show is set. It saves the report with its figures in dir; "": it
// saves nothing.
func present(p *program, e study.Experiment, r *study.Report, format, dir string, show bool) error {
	if show {
		if err := showReport(p, r, format); err != nil {
			return err
		}
	}
	if dir == "" {
		return nil
	}
	return e.Save(r, dir, func(path string) {
		if show {
			p.Note("wrote %s", path)
		}
	})
}

// showReport prints the tables and findings of a report.
func showReport(p *program, r *study.Report, format string) error {
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
