package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnnbench/impl"
	"rnnbench/internal/exit"
	"rnnbench/plots/quantity"
	"rnnbench/plots/table"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/auto"
	"rnnbench/tuner/bench"
	"rnnbench/tuner/campaign"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/regret"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// A Tuning says how a tune searches, and what becomes of its winners.
type Tuning struct {
	Search    search.Options // without seed and rounds
	Depth     string         // most knobs that differ from their defaults, or "all"
	Rounds    bool           // the user set the most rounds
	Fresh     bool           // ignore records of earlier runs
	NoWisdom  bool           // neither read nor write wisdom
	WithRival bool           // rivals race too
	Regret    bool           // report how much slower auto is; change no wisdom
	Check     bool           // report how much slower the winner is than the fastest; change no wisdom
}

// Knobs returns Depth as a number.
func (o Tuning) Knobs() (int, error) {
	const all = 1 << 30
	if o.Depth == "all" {
		return all, nil
	}
	n, err := strconv.Atoi(o.Depth)
	if err != nil || n < 0 {
		return 0, fmt.Errorf(`--depth: %q must be a number of knobs (0 or more) or all`, o.Depth)
	}
	return n, nil
}

// Valid returns an error for settings that exclude each other. from: recorded runs are searched.
func (o Tuning) Valid(r *Request, from bool) error {
	energy := r.Objective != ""
	switch {
	case o.Search.MaxEvals < 0:
		return fmt.Errorf("--max-evals: %d must not be negative", o.Search.MaxEvals)
	case energy && o.Regret:
		return errors.New("--regret compares times: omit --objective energy")
	case energy && from:
		return errors.New("--from searches recorded times: omit --objective energy")
	case !o.Check:
	case o.Regret:
		return errors.New("--check and --regret exclude each other: omit one")
	case from:
		return errors.New("--check measures, but --from searches recorded runs and reports the search's regret anyway: omit --check")
	case energy:
		return errors.New("--check compares times: omit --objective energy")
	case r.Resume != "":
		return errors.New("--check measures every candidate again: omit --resume")
	case o.Search.Strategy == "exhaustive":
		return errors.New("--check compares a search with --search exhaustive: name another search, or omit --check")
	}
	_, err := o.Knobs()
	return err
}

// candidates leaves in the request only techniques that may win. Naming another one is an error.
func (o Tuning) candidates(r *Request) error {
	c := &r.Config
	if r.Objective != "" && c.Measure.Cache == "cold" {
		return errors.New("energy is counted while runs follow each other, so caches are hot: omit --cache cold or --objective energy")
	}
	for _, list := range c.Grid.Impl {
		for word := range strings.SplitSeq(list, ",") {
			s, err := grid.ParseSpec(word, nil)
			switch {
			case err != nil:
			case s.Name == auto.Name:
				return fmt.Errorf("--impl auto cannot be tuned: name techniques, or omit --impl")
			case !r.Vendor && bench.IsVendor(s.Name):
				return fmt.Errorf("%s is a vendor library: add --with-vendor to tune it", s.Name)
			case !o.WithRival && bench.IsRival(*c, s.Name):
				return fmt.Errorf("%s is a rival: add --with-rival to race it", s.Name)
			}
		}
	}
	if (len(c.Grid.Impl) == 0 || slices.Contains(c.Grid.Impl, "all")) && !r.Vendor {
		for _, t := range impl.Vendors() {
			c.Grid.SkipImpl = append(c.Grid.SkipImpl, t.Name())
		}
	}
	if !o.WithRival {
		c.Rivals = nil
	}
	return nil
}

// Book reads the wisdom of a file and returns it with its path, or "" if it must not be written. Without
// wisdom, it returns an empty book.
func (o Tuning) Book(file string, readOnly bool) (*wisdom.Book, string, error) {
	if o.NoWisdom || o.Check {
		return &wisdom.Book{}, "", nil
	}
	if o.Regret || readOnly { // a file that is not written must be there
		if err := wisdom.Missing(file); err != nil {
			return nil, "", err
		}
	}
	path, err := wisdom.Path(file)
	if err != nil {
		return nil, "", exit.With(exit.Error, err, "use --no-wisdom to tune without wisdom")
	}
	b, err := wisdom.Read(path)
	if err != nil {
		return nil, "", exit.With(exit.Error, err, "use --wisdom FILE for another file; see rnnbench wisdom --help")
	}
	if readOnly {
		path = ""
	}
	return b, path, nil
}

// A Tune is a job that tunes its points.
type Tune struct {
	*Job
	Tuning
	campaign *campaign.Campaign
	control  agenda.Agenda // of a shard: the control point, to compare nodes
	regrets  *regret.List  // of Regret; nil: not asked for
	checked  *regret.Check // of Check; nil: not asked for
}

// OpenTune opens the device and plans the tune that r and o ask for. Close it.
func OpenTune(r *Request, o Tuning, before *record.Manifest, tell Teller) (*Tune, error) {
	if err := o.candidates(r); err != nil {
		return nil, err
	}
	book, path, err := o.Book(r.Wisdom, r.ReadOnly)
	if err != nil {
		return nil, err
	}
	j, err := Open(r, before, tell)
	if err != nil {
		return nil, err
	}
	t := &Tune{Job: j, Tuning: o}
	if err := t.prepare(book, path); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return t, nil
}

// prepare makes the agenda and the campaign.
func (t *Tune) prepare(book *wisdom.Book, path string) error {
	q, err := t.Bench.Agenda(t.Config)
	if err != nil {
		return err
	}
	q.Kind, q.Aside = "tune --depth "+t.Depth, t.Regret || t.Check
	if t.Objective != "" {
		q.Kind += " --objective " + t.Objective
	}
	if err := t.Set(q, "omit --resume: rnnbench tune reuses earlier runs anyway"); err != nil {
		return err
	}
	if err := t.checkCounter(); err != nil {
		return err
	}
	if err := t.Bench.MeasureLimits(); err != nil {
		return exit.With(exit.Error, err, "")
	}
	if err := t.newCampaign(); err != nil {
		return err
	}
	t.campaign.Book, t.campaign.Path = book, path
	return nil
}

// checkCounter returns an error if a tune for energy has no counter. A dry run gets a warning instead.
func (t *Tune) checkCounter() error {
	if t.Objective == "" {
		return nil
	}
	err := tuner.NeedsMeter(t.Bench.Device)
	switch {
	case err == nil:
		return nil
	case t.DryRun:
		t.tell.Warn("this tune cannot run here, since energy cannot be counted: %v", err)
		return nil
	}
	return exit.With(exit.NoDevice, fmt.Errorf("--objective energy: energy cannot be counted: %w", err), "omit --objective to tune for time")
}

// newCampaign makes the campaign that tunes the agenda.
func (t *Tune) newCampaign() error {
	depth, err := t.Knobs()
	if err != nil {
		return err
	}
	b, m := t.Bench, t.Config.Measure
	t.Search.Seed, t.Search.Rounds = m.Seed, m.MaxRounds
	if t.Objective != "" && !t.Rounds { // samples of energy are long
		t.Search.Rounds = min(m.MaxRounds, tuner.EnergyRounds)
	}
	tune := &tuner.Tune{Sweep: b.Sweep(m), Depth: depth, Search: t.Search, Objective: t.Objective}
	tune.Settings.Verify = true // nothing wins that was not checked
	// The device is still warm from the previous candidate.
	tune.Settings.Warmup = min(m.Warmup, m.MinTime/2)
	s := &campaign.Campaign{Tune: tune, Agenda: t.Agenda.Own(), Budget: m.Budget, Cache: m.Cache, Begin: t.Begin}
	s.Tool, s.Libraries = b.Versions()
	if t.Agenda.Shard != nil {
		t.control = t.Agenda.Control()
	}
	switch {
	case t.Regret:
		t.regrets, s.Instead, tune.Search.Margin = &regret.List{}, t.regret, 0
	case t.Check:
		t.checked = &regret.Check{}
		s.Instead = func(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
			return t.checked.Measure(ctx, tune, at, specs)
		}
	}
	t.campaign = s
	return nil
}

// Candidates tells how many candidates each point has, for a dry run.
func (t *Tune) Candidates(ctx context.Context) (*campaign.Winners, error) {
	show := t.tell.Progress(nil, t.campaign.Agenda.Points())
	list, err := t.campaign.Candidates(ctx, show.LaidOut)
	show.Close()
	if err != nil {
		return nil, err
	}
	t.tell.Note("%s", t.summary())
	if t.Share != "" {
		t.tell.Note("%s", t.Share)
	}
	return list, nil
}

// summary describes the tune in one line.
func (t *Tune) summary() string {
	depth := "any number of knobs changed"
	if n, err := strconv.Atoi(t.Depth); err == nil {
		depth = fmt.Sprintf("up to %s changed", quantity.Plural(n, "knob"))
	}
	if t.Objective != "" {
		depth += ", least energy wins"
	}
	return fmt.Sprintf("%s: %s, %s", quantity.Plural(t.campaign.Agenda.Points(), "point"), strings.Join(t.campaign.Agenda.Labels(), ", "), depth)
}

// Run tunes every point and saves the records. print prints the winners, if a point has one.
func (t *Tune) Run(ctx context.Context, print func(w *campaign.Winners, instead *table.Table) error) error {
	s := t.campaign
	if s.Path != "" && !t.Regret {
		if err := wisdom.Writable(s.Path); err != nil {
			return exit.With(exit.Error, err, "use --wisdom FILE for another file, or --no-wisdom to save none")
		}
	}
	if err := t.recall(); err != nil {
		return err
	}
	t.tell.Note("%s", t.summary())
	if n := s.Elsewhere(); n > 0 && s.Instead == nil {
		t.tell.Note("winners of other machines are tried first at %d of %s", n, quantity.Plural(s.Agenda.Points(), "point"))
	}
	show := t.tell.Progress(nil, s.Agenda.Points())
	show.Tune(s.Agenda)
	ctx, stop := t.tell.Interruptible(ctx, show)
	defer stop()
	start := time.Now()
	s.Tune.Watch, s.Tune.Leader, s.Tuned = show.Watch, show.Lead, show.Tuned
	if t.Before != nil || t.part != nil {
		if err := s.Open(); err != nil {
			return err
		}
	}
	var err error
	if t.part != nil { // the control point, which another shard tunes, compares the nodes
		s.RunPath = filepath.Join(s.Run.Dir(), record.WisdomFile)
		m := t.Config.Measure
		m.Verify, m.Budget = true, 0
		err = t.sweep(ctx, t.control, m, into(s.Run, show))
	}
	if err == nil {
		err = s.Do(ctx)
	}
	show.Close()
	return t.finish(err, time.Since(start), print)
}

// regret measures how much slower auto is than the fastest at a point.
func (t *Tune) regret(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
	choice, err := t.Bench.Decide(at, grid.Spec{Name: auto.Name, Label: auto.Name})
	if err != nil {
		return nil, err
	}
	l, err := t.Bench.LayOut(at, choice)
	if err != nil {
		return nil, err
	}
	return t.regrets.Measure(ctx, t.campaign.Tune, at, specs, choice, l)
}

// recall reads the records of earlier runs in the same folder that were measured in the same way
// and environment. With Fresh, Regret or Check, it reads only the run to resume.
func (t *Tune) recall() error {
	defer t.tell.Busy("reading earlier runs in " + t.Config.Dir)()
	m := &campaign.Memory{
		Measure: t.Config.Measure, RetryFailed: t.RetryFailed, Objective: t.Objective,
		Device: t.Bench.Info.Key, Libraries: t.campaign.Libraries, Tool: t.Env.Tool, Log: t.tell.Logger(),
	}
	if t.Before != nil {
		if err := m.Read(t.folder()); err != nil {
			return exit.With(exit.Error, err, "")
		}
	}
	if !t.Fresh && !t.Regret && !t.Check { // auto must run beside its rivals, not against old records
		m.ReadAll(t.Config.Dir)
	}
	t.campaign.Known = m.Records()
	maps.DeleteFunc(t.campaign.Known, func(_ string, r *record.Record) bool { return t.Bench.Rivals.Outdate(r) })
	return nil
}

// finish closes the run and prints the winners. err is what ended the tune; nil: nothing.
func (t *Tune) finish(err error, took time.Duration, print func(*campaign.Winners, *table.Table) error) error {
	s := t.campaign
	list, recs, points := &s.Winners, s.Records, s.Agenda.Points()
	if points == 0 { // a shard of an agenda with fewer points than shards
		if recs, _ = s.Run.Records(); err == nil {
			t.tell.Note("the shard has no point of its own, because the plan has fewer points than shards")
		}
	}
	code, outcome := Outcome(recs, err, t.Config.Measure.OnError == "stop", t.AllowFailures)
	done := list.Tuned()
	where := "all records were known already"
	if err != nil || !list.Complete() {
		where = "nothing was recorded"
	}
	if s.Run != nil {
		where = "records in " + s.Run.Dir()
		if bad := s.Run.Finish(code); bad != nil {
			return bad
		}
	}
	t.tell.Note("%d of %s tuned, %s; took %v; %s", done, quantity.Plural(points, "point"), quantity.Plural(list.Samples, "sample"), took.Round(100*time.Millisecond), where)
	if list.Points() > 0 {
		if err := print(list, t.instead()); err != nil {
			return err
		}
		if s.Kept {
			t.tell.Note("wisdom saved to %s for --impl auto", s.Path)
		}
		if noise := list.Noise(); noise != "" {
			t.tell.Note("%s", noise)
		}
	}
	hint := ""
	spent := errors.Is(err, tuner.ErrBudget) || !list.Complete()
	skipped := !slices.ContainsFunc(recs, func(r record.Record) bool { return r.Status != record.Skipped })
	if spent && skipped && (err == nil || errors.Is(err, tuner.ErrBudget)) {
		enough := "--budget"
		if t.Config.Measure.Budget == 0 {
			enough = "--max-evals"
		}
		return exit.With(code, errors.New("nothing was measured: "+campaign.TimedNothing), "run the same command with a larger "+enough)
	}
	if spent {
		t.tell.Note("budget exhausted: %s not fully tuned", quantity.Plural(points-done+list.Cut, "point"))
	}
	if done < points || !list.Complete() {
		hint = "run the same command to tune the rest"
	}
	return t.end(code, outcome, hint, func() string { return Reasons(recs, "") })
}

// instead returns the table of Regret or Check, which replaces the table of winners; nil: neither is set.
func (t *Tune) instead() *table.Table {
	switch {
	case t.regrets != nil:
		return t.regrets.Table()
	case t.checked != nil:
		return t.checked.Table()
	}
	return nil
}
