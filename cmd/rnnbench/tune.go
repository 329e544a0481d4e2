package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/impl"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/plan"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/search"
	"rnnbench/tuner/tuning"
	"rnnbench/tuner/wisdom"
)

// tuneFlags are the flags of tune: those of sweep, and those of the search.
type tuneFlags struct {
	sweepFlags
	from        []string
	search      string
	depth       string
	maxEvals    int
	tie, margin string
	fresh       bool
	noWisdom    bool
	regret      bool
	check       bool
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
replaces an entry only if it is faster by --margin. Tune saves records in a run, as
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
		fs.BoolVar(&f.race, "with-rival", false, "race the rivals too; a rival that wins is not saved as wisdom")
	})
	cmd.Flags().Lookup("objective").Usage = "what the winner minimises: time, or energy, the joules of a run by the device's counter"
	f.searchFlags(cmd)
	f.times = true
	f.measure(cmd, "effort", "max-rounds", "min-time", "min-iters", "budget", "seed", "cache", "data", "on-error", "isolate")
	f.device(cmd)
	f.source(cmd)
	f.runFlags(cmd)
	format := "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&format, "format", winnerFormats()}, "format", "o", "how to print the winners: "+strings.Join(winnerFormats(), ", "))
		fs.BoolVar(&f.noWisdom, "no-wisdom", false, "do not read or write wisdom")
	})
	progressFlag(p, cmd)
	completeGrid(cmd)
	completeFlag(cmd, "from", completer(completeRuns))
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		f.format = format
		f.setMinRounds()
		o, err := f.options()
		if err != nil {
			return misused(cmd, err)
		}
		if f.from != nil {
			return tuneFrom(ctx, p, cmd, f, o)
		}
		return tune(ctx, p, cmd, f, o)
	})
}

// searchFlags adds the flags that say how to search.
func (f *tuneFlags) searchFlags(cmd *cobra.Command) {
	addGroup(cmd, "Search", func(fs *pflag.FlagSet) {
		f.search, f.depth, f.tie, f.margin = search.Strategies()[0], "2", "1%", "2%"
		fs.Var(choice{&f.search, "strategy", search.Strategies()}, "search", "how to search: "+strings.Join(search.Strategies(), ", "))
		fs.StringVar(&f.depth, "depth", f.depth, "maximum number of `KNOBS` that differ from their defaults, or all")
		fs.IntVar(&f.maxEvals, "max-evals", 0, "maximum number of `SAMPLES` per point; 0: no limit")
		fs.StringVar(&f.tie, "tie", f.tie, "candidates within `SHARE` tie; least memory wins")
		fs.StringVar(&f.margin, "margin", f.margin, "replace a wisdom entry only if the winner is faster by `SHARE`")
		fs.BoolVar(&f.fresh, "fresh", false, "ignore records of earlier runs")
		fs.BoolVar(&f.regret, "regret", false, "report how much slower --impl auto is than the fastest; do not change wisdom")
		fs.BoolVar(&f.check, "check", false, "report how much slower the winner is than the fastest of all candidates; do not change wisdom")
		fs.StringArrayVar(&f.from, "from", nil, "search a recorded `RUN` without measuring; repeatable")
	})
}

// addWisdomFlag adds --wisdom, which names the wisdom file.
func addWisdomFlag(fs *pflag.FlagSet, file *string) {
	fs.StringVar(file, "wisdom", "", "`FILE` with wisdom (default: $RNNBENCH_WISDOM, or rnnbench/wisdom.toml in the user's configuration folder)")
}

// options returns the options of the search, without its seed and rounds.
func (f *tuneFlags) options() (search.Options, error) {
	o := search.Options{Strategy: f.search, MaxEvals: f.maxEvals}
	if f.maxEvals < 0 {
		return o, fmt.Errorf("--max-evals: %d must not be negative", f.maxEvals)
	}
	if f.objective() != "" && f.regret {
		return o, errors.New("--regret compares times: omit --objective energy")
	}
	if f.objective() != "" && f.from != nil {
		return o, errors.New("--from searches recorded times: omit --objective energy")
	}
	if err := f.checkable(); err != nil {
		return o, err
	}
	var err error
	if o.Tie, err = share(f.tie); err != nil {
		return o, fmt.Errorf("--tie: %w", err)
	}
	if o.Margin, err = share(f.margin); err != nil {
		return o, fmt.Errorf("--margin: %w", err)
	}
	_, err = f.knobs()
	return o, err
}

// checkable returns an error for a flag that excludes --check.
func (f *tuneFlags) checkable() error {
	switch {
	case !f.check:
	case f.regret:
		return errors.New("--check and --regret exclude each other: omit one")
	case f.from != nil:
		return errors.New("--check measures, but --from searches recorded runs and reports the search's regret anyway: omit --check")
	case f.objective() != "":
		return errors.New("--check compares times: omit --objective energy")
	case f.resume != "":
		return errors.New("--check measures every candidate again: omit --resume")
	case f.search == "exhaustive":
		return errors.New("--check compares a search with --search exhaustive: name another search, or omit --check")
	}
	return nil
}

// knobs returns --depth as a number.
func (f *tuneFlags) knobs() (int, error) {
	const all = 1 << 30
	if f.depth == "all" {
		return all, nil
	}
	n, err := strconv.Atoi(f.depth)
	if err != nil || n < 0 {
		return 0, fmt.Errorf(`--depth: %q must be a number of knobs (0 or more) or all`, f.depth)
	}
	return n, nil
}

// candidates leaves in the request only techniques that may win. Naming another one is an error.
func (f *tuneFlags) candidates(c *config.Config) error {
	if f.objective() != "" && c.Measure.Cache == "cold" {
		return errors.New("energy is counted while runs follow each other, so caches are hot: omit --cache cold or --objective energy")
	}
	r := &c.Grid
	for _, list := range r.Impl {
		for word := range strings.SplitSeq(list, ",") {
			s, err := grid.ParseSpec(word, nil)
			if err == nil && s.Name == autoName {
				return fmt.Errorf("--impl auto cannot be tuned: name techniques, or omit --impl")
			}
			if err == nil && !f.vendor && isVendor(s.Name) {
				return fmt.Errorf("%s is a vendor library: add --with-vendor to tune it", s.Name)
			}
			if err == nil && !f.race && isRival(*c, s.Name) {
				return fmt.Errorf("%s is a rival: add --with-rival to race it", s.Name)
			}
		}
	}
	if len(r.Impl) == 0 || slices.Contains(r.Impl, "all") {
		if !f.vendor {
			for _, t := range impl.Vendors() {
				r.SkipImpl = append(r.SkipImpl, t.Name())
			}
		}
	}
	if !f.race {
		c.Rivals = nil
	}
	return nil
}

// book reads the wisdom and returns it with its path. Without wisdom, it returns an empty book and "".
func (f *tuneFlags) book() (*wisdom.Book, string, error) {
	if f.noWisdom || f.check {
		return &wisdom.Book{}, "", nil
	}
	if f.regret { // it reads wisdom and writes none
		if err := missingBook(f.wisdom); err != nil {
			return nil, "", err
		}
	}
	path, err := wisdom.Path(f.wisdom)
	if err != nil {
		return nil, "", &failure{exitError, err, "use --no-wisdom to tune without wisdom"}
	}
	b, err := wisdom.Read(path)
	if err != nil {
		return nil, "", &failure{exitError, err, "use --wisdom FILE for another file; see rnnbench wisdom --help"}
	}
	return b, path, nil
}

// setMinRounds makes --max-rounds also set the minimum of rounds, for which tune has no flag.
func (f *tuneFlags) setMinRounds() {
	if t := f.values["max-rounds"]; t.list != nil {
		f.values["rounds"] = t
	}
}

func tune(ctx context.Context, p *program, cmd *cobra.Command, f *tuneFlags, o search.Options) error {
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if err := f.checkResume(); err != nil {
		return misused(cmd, err)
	}
	if err := f.readShard(p); err != nil {
		return misused(cmd, err)
	}
	if (f.regret || f.check) && f.divided() {
		return misused(cmd, fmt.Errorf("--%s measures the whole plan: add --shard off", map[bool]string{true: "check", false: "regret"}[f.check]))
	}
	var before *record.Manifest
	if f.resume != "" {
		if c, before, err = f.resumed(p, c.Dir); err != nil {
			return misused(cmd, err)
		}
	}
	if !c.Measure.Verify && before == nil {
		return usage(errors.New("tune must check answers, but the configuration sets verify to off"),
			"remove verify from the configuration file and RNNBENCH_VERIFY from the environment; sweep --no-verify measures unverified answers")
	}
	if f.print {
		return config.Print(p.out, c)
	}
	if err := f.candidates(&c); err != nil {
		return misused(cmd, err)
	}
	book, path, err := f.book()
	if err != nil {
		return err
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
	q.Kind, q.Aside = f.kind(), f.regret || f.check
	if q, before, err = f.divide(p, c, b, q, before); err != nil {
		return misused(cmd, err)
	}
	if before != nil {
		if differs := q.Mismatch(*before, b.record()); differs != "" {
			return usage(fmt.Errorf("run %s cannot be resumed: %s", before.Run, differs), "omit --resume: rnnbench tune reuses earlier runs anyway")
		}
	}
	if err := f.checkEnergyCounter(p, b); err != nil {
		return err
	}
	if err := measureBench(p, b); err != nil {
		return err
	}
	o.Seed, o.Rounds = c.Measure.Seed, f.rounds(c.Measure)
	t := &tuneRun{program: p, flags: f, config: c, bench: b, env: env}
	if t.session, err = t.newSession(q, o); err != nil {
		return misused(cmd, err)
	}
	t.session.Book, t.session.Path = book, path
	if f.dryRun {
		return t.dryRun(ctx)
	}
	if before != nil {
		t.resume = runPath(f.resume, c.Dir)
	}
	if path != "" && !f.regret {
		if err := wisdom.Writable(path); err != nil {
			return &failure{exitError, err, "use --wisdom FILE for another file, or --no-wisdom to save none"}
		}
	}
	return t.run(ctx)
}

// newSession returns a session that tunes plan q by search o.
func (t *tuneRun) newSession(q plan.Plan, o search.Options) (*tuning.Session, error) {
	depth, err := t.flags.knobs()
	if err != nil {
		return nil, err
	}
	b, m := t.bench, t.config.Measure
	tune := &tuner.Tune{
		Sweep:  tuner.Sweep{Device: b.Device, Techniques: b.techniques(), Settings: m, Limits: b.limits, Machine: b.floorMachine(), MaxMemory: b.maxMemory, Around: b.around},
		Depth:  depth,
		Search: o, Objective: t.flags.objective(),
	}
	tune.Settings.Verify = true // nothing wins that was not checked
	// The device is still warm from the previous candidate.
	tune.Settings.Warmup = min(m.Warmup, m.MinTime/2)
	s := &tuning.Session{Tune: tune, Plan: q.Own(), Budget: m.Budget, Cache: m.Cache}
	s.Tool, s.Libraries = b.versions()
	if q.Shard != nil {
		t.control = q.Control()
	}
	s.Begin = func() (*record.Run, error) { return begin(t.program, t.config, b, q, t.resume, t.env) }
	if t.flags.regret {
		t.regrets, s.Instead, tune.Search.Margin = &regret.List{}, t.regret, 0
	}
	if t.flags.check {
		t.checked = &regret.Check{}
		s.Instead = func(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
			return t.checked.Measure(ctx, tune, at, specs)
		}
	}
	return s, nil
}
