package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rnnbench/impl"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// tuneFlags are the flags of tune: those of sweep and the search's.
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
}

func (p *program) tuneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tune [flags]",
		Short:   "Find the fastest technique and settings for each point",
		GroupID: "measure",
		Long: `Tune finds the fastest technique and settings at every point of a grid. It tries all
settings of technique and device knobs in which at most --depth knobs differ from their
defaults. Candidates race in shuffled rounds, and tune drops those that cannot win. It
skips candidates that were clearly slower at nearby tuned points. It checks each other
candidate against the float64 reference before timing it.

Tune saves winners as wisdom for --impl auto (see rnnbench wisdom). A new winner
replaces an entry only if it is faster by --margin. Tune saves records in a run, as
sweep does, and does not measure them again. The same command resumes an interrupted
tune. If a technique or knob is new, tune races only that against the old winner.

--from searches recorded runs and needs no device. It reports how much time the search
would have taken, and its regret.`,
		Example: `  rnnbench tune --cell lstm -H 256:1024:x2 -B 1,32 -T 100
  rnnbench tune --point H=512,B=64,T=100,L=4 --depth 3 --budget 10m
  rnnbench tune --preset deepbench-infer --impl cudnnstyle,persistent --dry-run
  rnnbench tune -H 512 --search exhaustive --max-rounds 20
  rnnbench tune --from out/RUN --search random --no-wisdom
  rnnbench tune -H 512 && rnnbench sweep -H 512 --impl auto,naive
  rnnbench tune -H 768 --regret`,
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := &tuneFlags{}
	f.grid(cmd)
	addGroup(cmd, "Search", func(fs *pflag.FlagSet) {
		f.search, f.depth, f.tie, f.margin = search.Strategies()[0], "2", "1%", "2%"
		fs.Var(choice{&f.search, "strategy", search.Strategies()}, "search", "how to search: "+strings.Join(search.Strategies(), ", "))
		fs.StringVar(&f.depth, "depth", f.depth, "maximum number of `KNOBS` that differ from their defaults, or all")
		fs.IntVar(&f.maxEvals, "max-evals", 0, "maximum number of `SAMPLES` per point; 0: no limit")
		fs.StringVar(&f.tie, "tie", f.tie, "candidates within `SHARE` tie; least memory wins")
		fs.StringVar(&f.margin, "margin", f.margin, "replace a wisdom entry only if the winner is faster by `SHARE`")
		fs.BoolVar(&f.fresh, "fresh", false, "ignore records of earlier runs")
		fs.BoolVar(&f.regret, "regret", false, "report how much slower --impl auto is than the fastest; do not change wisdom")
		fs.StringArrayVar(&f.from, "from", nil, "search a recorded `RUN` without measuring; repeatable")
	})
	f.measure(cmd, "effort", "max-rounds", "min-time", "min-iters", "budget", "seed", "cache", "data", "on-error", "isolate")
	f.device(cmd)
	f.source(cmd)
	f.runFlags(cmd)
	format := "table"
	addGroup(cmd, "Output", func(fs *pflag.FlagSet) {
		fs.VarP(choice{&format, "format", winnerFormats()}, "format", "o", "how to print the winners: "+strings.Join(winnerFormats(), ", "))
		fs.BoolVar(&f.noWisdom, "no-wisdom", false, "do not read or write wisdom")
	})
	p.progressFlag(cmd)
	completeGrid(cmd)
	completeFlag(cmd, "from", completer(completeRuns))
	return p.verb(cmd, func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		f.format = format
		f.fewest()
		o, err := f.options()
		if err != nil {
			return misused(cmd, err)
		}
		if f.from != nil {
			return p.tuneFrom(ctx, cmd, f, o)
		}
		return p.tune(ctx, cmd, f, o)
	})
}

// addWisdomFlag adds the flag that names the book.
func addWisdomFlag(fs *pflag.FlagSet, file *string) {
	fs.StringVar(file, "wisdom", "", "`FILE` with wisdom (default: $RNNBENCH_WISDOM, or rnnbench/wisdom.toml in the user's configuration folder)")
}

// options are those of the search, but for the seed and the rounds.
func (f *tuneFlags) options() (search.Options, error) {
	o := search.Options{Strategy: f.search, MaxEvals: f.maxEvals}
	if f.maxEvals < 0 {
		return o, fmt.Errorf("--max-evals: %d must not be negative", f.maxEvals)
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

// knobs is --depth as a number.
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

// candidates has the request name techniques that may win.
func (f *tuneFlags) candidates(r *grid.Request) error {
	for _, list := range r.Impl {
		for word := range strings.SplitSeq(list, ",") {
			s, err := grid.ParseSpec(word, nil)
			if err == nil && s.Name == autoName {
				return fmt.Errorf("--impl auto cannot be tuned: name techniques, or omit --impl")
			}
			if err == nil && !f.vendor && isVendor(s.Name) {
				return fmt.Errorf("%s is a vendor library: add --with-vendor to tune it", s.Name)
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
	return nil
}

// book reads the wisdom, an empty one where there is to be none.
func (f *tuneFlags) book() (*wisdom.Book, string, error) {
	if f.noWisdom {
		return &wisdom.Book{}, "", nil
	}
	if f.regret { // reads it and writes none
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

// fewest makes --max-rounds, which is all that tune has of rounds, stand for the
// fewest as well.
func (f *tuneFlags) fewest() {
	if t := f.values["max-rounds"]; t.list != nil {
		f.values["rounds"] = t
	}
}

func (p *program) tune(ctx context.Context, cmd *cobra.Command, f *tuneFlags, o search.Options) error {
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if err := f.checkResume(); err != nil {
		return misused(cmd, err)
	}
	var before *results.Manifest
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
	if err := f.candidates(&c.Grid); err != nil {
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
	q, err := p.planFor(c.Grid, b)
	if err != nil {
		return misused(cmd, err)
	}
	q.kind, q.aside = "tune --depth "+f.depth, f.regret
	if before != nil {
		if differs := mismatch(*before, b, q); differs != "" {
			return usage(fmt.Errorf("run %s cannot be resumed: %s", before.Run, differs), "omit --resume: rnnbench tune reuses earlier runs anyway")
		}
	}
	if err := p.measureBench(b); err != nil {
		return err
	}
	o.Seed, o.Rounds = c.Measure.Seed, c.Measure.MaxRounds
	depth, err := f.knobs()
	if err != nil {
		return misused(cmd, err)
	}
	t := &tuning{
		program: p, flags: f, config: c, bench: b, plan: q, env: env, book: book, path: path,
		tune: &tuner.Tune{
			Sweep:  tuner.Sweep{Device: b.Device, Techniques: impl.All(), Settings: c.Measure, Limits: b.limits, MaxMemory: b.maxMemory},
			Depth:  depth,
			Search: o,
		},
	}
	if f.regret {
		t.tune.Search.Margin = 0
	}
	t.tune.Settings.Verify = true // nothing wins that was not checked
	// The device is warm from the candidate before.
	t.tune.Settings.Warmup = min(c.Measure.Warmup, c.Measure.MinTime/2)
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

// A tuning is a tune that is under way.
type tuning struct {
	*program
	flags  *tuneFlags
	config config.Config
	bench  *bench
	plan   plan
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
	show := t.newProgress(nil, t.plan.shapes())
	err := t.each(func(at results.Point, specs []grid.Spec) error {
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
	var names []string
	for _, q := range t.plan.parts {
		for _, s := range q.specs {
			if !slices.Contains(names, s.Label) {
				names = append(names, s.Label)
			}
		}
	}
	depth := "any number of knobs changed"
	if t.flags.depth != "all" {
		depth = fmt.Sprintf("up to %s knobs changed", t.flags.depth)
	}
	return fmt.Sprintf("%s: %s, %s", plural(t.plan.shapes(), "point"), strings.Join(names, ", "), depth)
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
	t.show = t.newProgress(nil, t.plan.shapes())
	t.show.points = t.plan.shapes()
	for _, q := range t.plan.parts {
		for _, at := range q.points {
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
	err = t.each(func(at results.Point, specs []grid.Spec) error {
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

// each calls do with every point.
func (t *tuning) each(do func(results.Point, []grid.Spec) error) error {
	for _, q := range t.plan.parts {
		for _, at := range q.points {
			if err := do(at, q.specs); err != nil {
				return err
			}
		}
	}
	return nil
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
	t.note("%d of %s tuned, %s; took %v; %s", done, plural(t.plan.shapes(), "point"), plural(list.evaluations(), "sample"), took.Round(100*time.Millisecond), where)
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
		t.note("budget exhausted: %s not fully tuned", plural(t.plan.shapes()-done+list.cut(), "point"))
	}
	if done < t.plan.shapes() || !list.complete() {
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
