package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/internal/exit"
	"rnnbench/plots/table"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/campaign"
	"rnnbench/tuner/config"
	"rnnbench/tuner/job"
	"rnnbench/tuner/search"
)

// tuneFlags are the flags of tune: those of sweep, and those of the search.
type tuneFlags struct {
	sweepFlags
	job.Tuning
	from        []string
	tie, margin string
}

func tuneCommand(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tune [flags]",
		Short:   "Find the fastest technique and settings for each point",
		GroupID: "measure",
		Long: `Tune finds the fastest technique and settings at every point of a grid. It tries all
settings of technique and device knobs in which at most --depth knobs differ from their
defaults. Candidates race in shuffled rounds, and tune drops those that cannot win. It
skips candidates that were clearly slower at nearby tuned points. Racing also skips
those that the device's cost model predicts to be far behind. It checks each other
candidate against the float64 reference before timing it.

Tune saves winners as wisdom for --impl auto (see rnnbench wisdom). A new winner
replaces an entry only if it is faster by --margin. Winners of other machines in that file
are tried first, but win only by their times here. Tune saves records in a run, as
sweep does, and does not measure them again. The same command resumes an interrupted
tune. If a technique or knob is new, tune races only that against the old winner.

With --objective energy, the winner takes the fewest joules per run. Each sample lasts until
the device's counter can resolve 2 %. Such wisdom is kept apart: --impl auto follows it only
with --objective energy.

--check tests the search: it also measures every candidate, and then runs both winners in
turns. It saves no wisdom.

--from searches recorded runs and needs no device. It reports how much time the search
would have taken, and its regret.`,
		Example: `  rnnbench tune --cell lstm -H 256:1024:x2 -B 1,32 -T 100
  rnnbench tune --point H=512,B=64,T=100,L=4 --depth 3 --budget 10m
  rnnbench tune --preset deepbench-infer --impl cudnnstyle,persistent --dry-run
  rnnbench tune -H 512 --search exhaustive --max-rounds 20
  rnnbench tune --from out/RUN --search random --no-wisdom
  rnnbench tune -H 512 && rnnbench sweep -H 512 --impl auto,naive
  rnnbench tune -H 768 --regret
  rnnbench tune --point H=96,B=3,T=40 --effort quick --check
  rnnbench tune --point H=512,B=16,T=50 --objective energy --device cuda:0
  rnnbench tune --preset deepbench-infer --shard 3/16`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &tuneFlags{}
	f.grid(cmd)
	f.rivalFlag(cmd)
	addGroup(cmd, "Techniques", func(fs *pflag.FlagSet) {
		fs.BoolVar(&f.WithRival, "with-rival", false, "race the rivals too; a rival that wins is not saved as wisdom")
	})
	cmd.Flags().Lookup("objective").Usage = "what the winner minimises: time, or energy, the joules of a run by the device's counter"
	f.searchFlags(cmd)
	f.Times = true
	f.measure(cmd, "effort", "max-rounds", "min-time", "min-iters", "budget", "seed", "cache", "data", "on-error", "isolate")
	f.device(cmd)
	f.source(cmd)
	f.runFlags(cmd)
	format := "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&format, "format", winnerFormats()}, "format", "o", "how to print the winners: "+strings.Join(winnerFormats(), ", "))
		fs.BoolVar(&f.NoWisdom, "no-wisdom", false, "do not read or write wisdom")
	})
	progressFlag(p, cmd)
	completeGrid(cmd)
	completeFlag(cmd, "from", completer(completeRuns))
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		f.format = format
		if f.Rounds = f.given("max-rounds"); f.Rounds { // tune has no flag for the minimum of rounds
			f.values["rounds"] = f.values["max-rounds"]
		}
		f.Objective = f.objective()
		err := f.Valid(&f.Request, f.from != nil)
		if err == nil {
			err = f.shares()
		}
		if err != nil {
			return misused(cmd, err)
		}
		if f.from != nil {
			return tuneFrom(ctx, p, cmd, f)
		}
		return tune(ctx, p, cmd, f)
	})
}

// searchFlags adds the flags that say how to search.
func (f *tuneFlags) searchFlags(cmd *cobra.Command) {
	addGroup(cmd, "Search", func(fs *pflag.FlagSet) {
		f.Search.Strategy, f.Depth, f.tie, f.margin = search.Strategies()[0], "2", "1%", "2%"
		fs.Var(choice{&f.Search.Strategy, "strategy", search.Strategies()}, "search", "how to search: "+strings.Join(search.Strategies(), ", "))
		fs.StringVar(&f.Depth, "depth", f.Depth, "maximum number of `KNOBS` that differ from their defaults, or all")
		fs.IntVar(&f.Search.MaxEvals, "max-evals", 0, "maximum number of `SAMPLES` per point; 0: no limit")
		fs.StringVar(&f.tie, "tie", f.tie, "candidates within `SHARE` tie; least memory wins")
		fs.StringVar(&f.margin, "margin", f.margin, "replace a wisdom entry only if the winner is faster by `SHARE`")
		fs.BoolVar(&f.Fresh, "fresh", false, "ignore records of earlier runs")
		fs.BoolVar(&f.Regret, "regret", false, "report how much slower --impl auto is than the fastest; do not change wisdom")
		fs.BoolVar(&f.Check, "check", false, "report how much slower the winner is than the fastest of all candidates; do not change wisdom")
		fs.StringArrayVar(&f.from, "from", nil, "search a recorded `RUN` without measuring; repeatable")
	})
}

// addWisdomFlag adds --wisdom, which names the wisdom file.
func addWisdomFlag(fs *pflag.FlagSet, file *string) {
	fs.StringVar(file, "wisdom", "", "`FILE` with wisdom (default: $RNNBENCH_WISDOM, or rnnbench/wisdom.toml in the user's configuration folder)")
}

// shares reads the flags that are shares.
func (f *tuneFlags) shares() (err error) {
	if f.Search.Tie, err = share(f.tie); err != nil {
		return fmt.Errorf("--tie: %w", err)
	}
	if f.Search.Margin, err = share(f.margin); err != nil {
		return fmt.Errorf("--margin: %w", err)
	}
	return nil
}

// tune finds the winners of the grid that the flags name. A dry run prints how many candidates there are.
func tune(ctx context.Context, p *program, cmd *cobra.Command, f *tuneFlags) error {
	f.Verified = true
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	before, err := f.Prepare()
	if err == nil && (f.Regret || f.Check) && f.Divided() {
		err = fmt.Errorf("--%s measures the whole plan: add --shard off", map[bool]string{true: "check", false: "regret"}[f.Check])
	}
	if err != nil {
		return misused(cmd, err)
	}
	if !f.Config.Measure.Verify && before == nil {
		return exit.Misuse(errors.New("tune must check answers, but the configuration sets verify to off"),
			"remove verify from the configuration file and RNNBENCH_VERIFY from the environment; sweep --no-verify measures unverified answers")
	}
	if f.print {
		return config.Print(p.out, f.Config)
	}
	t, err := job.OpenTune(&f.Request, f.Tuning, before, p)
	if err != nil {
		return misused(cmd, err)
	}
	defer t.Close()
	if !f.DryRun {
		return t.Run(ctx, f.winners(p))
	}
	list, err := t.Candidates(ctx)
	if err != nil {
		return err
	}
	return f.winners(p)(list, nil)
}

// winners returns a function that prints a table of winners, or another one instead.
func (f *tuneFlags) winners(p *program) func(*campaign.Winners, *table.Table) error {
	return func(w *campaign.Winners, instead *table.Table) error {
		switch {
		case f.format == "jsonl" && w != nil:
			return table.JSONL(p.out, w.Records)
		case instead != nil:
			return instead.Write(p.out, f.format, p.style())
		}
		return w.Table().Write(p.out, f.format, p.style())
	}
}

// winnerFormats lists the formats in which winners can be printed; jsonl prints their records.
func winnerFormats() []string { return append(table.Formats(), "jsonl") }

// tuneFrom searches among recorded runs.
func tuneFrom(ctx context.Context, p *program, cmd *cobra.Command, f *tuneFlags) error {
	if name := firstGiven(cmd, append(axis.Names(), "point", "preset", "zip", "impl", "skip-impl")); name != "" {
		return exit.Misuse(fmt.Errorf("--%s selects points to measure, but --from searches recorded runs", name),
			"select records with --where, as in --where hidden=512 --where impl!=naive")
	}
	if name := firstGiven(cmd, []string{"device", "threads", "simd", "max-memory", "isolate", "cache", "data", "budget", "resume", "shard"}); name != "" {
		return misused(cmd, fmt.Errorf("--%s applies to measuring, but --from searches recorded runs: omit it", name))
	}
	if err := f.resolve(p); err != nil {
		return misused(cmd, err)
	}
	if f.print {
		return config.Print(p.out, f.Config)
	}
	s := &selection{settings: f.settings, where: f.Config.Grid.Where}
	sets, recs, err := s.read(p, cmd, f.from)
	if err != nil {
		return err
	}
	if f.DryRun {
		list, candidates := campaign.Recorded(recs)
		p.Note("%s: %s in %s", plural(list.Points(), "point"), plural(candidates, "candidate"), plural(len(recs), "record"))
		return f.winners(p)(list, nil)
	}
	o := job.Recorded{Tuning: f.Tuning, Measure: f.Config.Measure, Wisdom: f.Wisdom, ReadOnly: f.ReadOnly, Vendor: f.Vendor}
	return o.Run(ctx, sets, recs, p, f.winners(p))
}

// firstGiven returns the first of these flags that the user gave; "": none.
func firstGiven(cmd *cobra.Command, names []string) string {
	if i := slices.IndexFunc(names, cmd.Flags().Changed); i >= 0 {
		return names[i]
	}
	return ""
}
