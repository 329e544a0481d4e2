package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/config"
	"rnnbench/tuner/job"
)

// sweepFlags are the flags of sweep.
type sweepFlags struct {
	settings
	noVerify, energy, print bool
	format, baseline        string
	open                    func(b *bench.Bench, c *config.Config) error // once the device and rivals are open, before the plan; nil: nothing
	show                    func(recs []record.Record) error             // prints the records; nil: as a table
	usual                   config.Layer                                 // settings that are weaker than all others
	sum                     *total                                       // of the dry runs of several experiments; nil: of one
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
	f.flags(cmd)
	f.runFlags(cmd)
	progressFlag(p, cmd)
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.Profile, "profile", false, "run each technique once, without checks or warm-up, under an external profiler")
	})
	formatFlags(p, cmd, &f.format, &f.baseline)
	completeGrid(cmd)
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		f.Verified = true
		return sweep(ctx, p, cmd, f)
	})
}

// flags adds the flags that say what is measured, how and where.
func (f *sweepFlags) flags(cmd *cobra.Command) {
	f.grid(cmd)
	f.rivalFlag(cmd)
	f.measureFlags(cmd)
	f.device(cmd)
	f.source(cmd)
}

// measureFlags adds the flags that say how to measure.
func (f *sweepFlags) measureFlags(cmd *cobra.Command) {
	f.Times = true
	f.measure(cmd, "effort", "rounds", "max-rounds", "warmup", "min-time", "min-iters", "target-ci", "point-timeout", "budget", "until",
		"order", "seed", "cache", "data", "on-error", "isolate")
	addGroup(cmd, "Measuring", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.noVerify, "no-verify", false, "skip the check of answers; wrong answers are timed too")
		fs.BoolVar(&f.energy, "energy", false, "also count the energy of each technique, which takes 10 s more for each")
	})
}

// applySwitches turns flags into the settings that they abbreviate.
func (f *sweepFlags) applySwitches() {
	if f.noVerify {
		f.set("verify", "off")
	}
	if f.energy {
		f.set("energy", "on")
	}
	if !f.Profile {
		return
	}
	for name, value := range map[string]string{
		"rounds": "1", "max-rounds": "1", "warmup": "0s", "min-time": "0s", "min-iters": "1", "verify": "off",
	} {
		if !f.given(name) {
			f.set(name, value)
		}
	}
}

// runFlags adds the flags of the run that the command creates.
func (f *sweepFlags) runFlags(cmd *cobra.Command) {
	addGroup(cmd, "Run", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.DryRun, "dry-run", false, "print the plan and the estimated time without measuring")
		fs.BoolVar(&f.print, "print-config", false, "print the effective settings as a configuration file")
		f.resumeFlag(fs)
		f.retryFlag(fs)
		f.shardFlag(fs)
		f.add(fs, "out", "DIR", "")
		f.add(fs, "label", "WORD", "")
		fs.BoolVar(&f.AllowFailures, "allow-failures", false, "exit with 0 despite failed points, if at least one succeeded")
		fs.BoolVar(&f.HideHost, "no-hostname", false, "omit the host name from the run")
	})
}

// sweep measures the grid that the flags name. A dry run prints what it would measure.
func sweep(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags) error {
	f.applySwitches()
	if err := f.resolve(p, f.usual); err != nil {
		return misused(cmd, err)
	}
	before, err := f.Prepare()
	if err != nil {
		return misused(cmd, err)
	}
	if f.print {
		return config.Print(p.out, f.Config)
	}
	f.Race = f.Race && !f.DryRun // it must not measure
	j, err := job.Open(&f.Request, before, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer j.Close()
	if f.open != nil {
		if err := f.open(j.Bench, &f.Config); err != nil {
			return misused(cmd, err)
		}
	}
	q, err := j.Bench.Agenda(f.Config)
	if err == nil {
		q.Aside = f.Profile
		err = j.Set(q, "omit --resume to start a new run, or omit the other flags to resume this one")
	}
	if err != nil {
		return misused(cmd, err)
	}
	specs := j.Agenda.Specs()
	if err := amongTechniques(cmd, f.baseline, len(specs), func(i int) (name, label string) { return specs[i].Name, specs[i].Label }); err != nil {
		return err
	}
	j.Bench.TellChoices(specs)
	if !f.Profile {
		if err := j.Bench.MeasureLimits(); err != nil {
			return err
		}
	}
	j.Bench.AtLeast(j.Before)
	j.TellEnergy()
	if f.DryRun {
		return dryRun(ctx, p, cmd, f, j, j.Agenda)
	}
	look, err := j.Bench.Forecast(ctx, j.Agenda, f.Config.Measure)
	if err != nil {
		return misused(cmd, err)
	}
	p.Note("%s", look.Line(j.Agenda.Summary))
	run, err := j.Begin()
	if err != nil {
		return err
	}
	e, err := j.Measure(ctx, run, j.Agenda, look)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(e.Records, func(r record.Record) bool { return r.Rate != nil && r.Rate.Percent != nil && *r.Rate.Percent > 100 }) {
		p.Warn("some rates exceed the measured peak: another program probably disturbed the measurement of the peak; ignore these percentages")
	}
	if len(e.Records) > 0 {
		show := f.show
		if show == nil {
			show = func(recs []record.Record) error { return records(p, recs, f.format, f.baseline) }
		}
		if err := show(e.Records); err != nil {
			return err
		}
		e.Format = f.format
	}
	return j.Conclude(e, "rnnbench sweep --resume "+run.Dir())
}

// dryRun prints what would be measured of decided, with estimates of time and memory.
func dryRun(ctx context.Context, p *program, cmd *cobra.Command, f *sweepFlags, j *job.Job, decided agenda.Agenda) error {
	look, err := j.ForecastAll(ctx, decided)
	if err != nil {
		return misused(cmd, err)
	}
	f.sum.add(decided.Records(), look.Seconds)
	switch f.format {
	case "table", "markdown":
	case "csv", "json":
		return look.Table().Write(p.out, f.format, p.style())
	default:
		return exit.Misuse(fmt.Errorf("a dry run cannot be printed as %s: choose one of %s", f.format, strings.Join(table.Formats(), ", ")), "")
	}
	lines := look.Lines(decided.Summary, f.Config.Measure.Budget, j.Bench.Free())
	if j.Share != "" {
		lines = append(lines, j.Share)
	}
	return table.WriteLines(p.out, lines, 4, p.style())
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
