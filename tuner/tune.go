package tuner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
)

// A Tune finds the technique and settings that are fastest, or take least energy, at one point after
// another. It measures as a sweep does, with the sweep's settings, but a search decides what is
// measured and how often.
type Tune struct {
	Sweep
	Depth  int            // knobs that may differ from their defaults at once
	Search search.Options // Incumbent is set for each point

	// Recall returns the record of a key from an earlier run in the same environment; nil: none.
	Recall func(key string) *record.Record
	// Elsewhere, where set, returns settings that won on other machines at a point or near it. They are
	// tried first, and win only by their times here.
	Elsewhere func(p record.Point) []record.Impl
	// Leader, where set, is called with the point, label and seconds of each new best candidate.
	Leader func(p record.Point, label string, seconds float64)

	// Objective is what the tune minimises: "" for time, or record.OfEnergy.
	Objective string

	prior   Prior   // from the points tuned so far
	joules  *joules // nil: time is the objective
	windows windows // of energy; zero: the usual ones
}

// A Verdict is the outcome of tuning at one point.
type Verdict struct {
	Point   record.Point
	Records []*record.Record // the newest of each candidate; nil: it never ran
	Same    int              // settings with the same program as a candidate
	Known   int              // candidates that were measured before
	Dropped int              // candidates that were predicted to be far behind

	// Objective is the tune's. For energy, medians, samples and scores of the search are in joules.
	Objective string
	*search.Result
}

// WinnerRecord is the record of the winner; nil: there is none.
func (v *Verdict) WinnerRecord() *record.Record {
	if v.Winner < 0 {
		return nil
	}
	return v.Records[v.Winner]
}

// Tune tunes one point. The incumbent is the setting that wins unless it is beaten. Its name is ""
// if there is none.
func (t *Tune) Tune(ctx context.Context, p record.Point, specs []grid.Spec, incumbent record.Impl) (*Verdict, error) {
	if err := checkCache(t.Device, t.Settings.Cache); err != nil {
		return nil, err
	}
	tellRivals(&t.Sweep, ctx, ctx)
	if err := t.countJoules(ctx); err != nil {
		return nil, err
	}
	was := record.Record{Point: p, Device: t.Device.Info().Key, Impl: incumbent}
	hints := t.hints(p)
	all, same, err := t.contenders(ctx, p, specs, append(keysOf(hints), was.Key()))
	if err != nil {
		return nil, err
	}
	for _, r := range append(hints, was) {
		if all, err = t.withSetting(all, p, specs, &r); err != nil {
			return nil, err
		}
	}
	c := &contest{Tune: t, entrants: make([]*entrant, len(all)), verdict: &Verdict{Point: p, Same: same, Objective: t.Objective, Records: make([]*record.Record, len(all))}}
	o := t.Search
	o.Incumbent = -1
	t.prior.Begun(p, t.interruptedRecords(all))
	arms := make([]search.Arm, len(all))
	for i, e := range all {
		c.entrants[i] = &entrant{contender: e}
		arms[i] = search.Arm{Bound: e.bound, Memory: e.memory, Rank: i, Predicted: e.seconds}
		if t.joules != nil { // a bound on time says nothing of energy
			arms[i].Bound = 0
		}
		arms[i].Hinted = slices.Contains(keysOf(hints), e.key)
		arms[i].Expected, arms[i].Doubt = t.prior.Expect(p, e.spec.Label)
		if e.key == was.Key() {
			o.Incumbent = i
		}
	}
	if err := c.decline(); err != nil {
		return nil, err
	}
	// Declined and dropped candidates are no arms, and known ones are not measured again.
	var running []int
	for i, e := range c.entrants {
		if e.dropped {
			c.verdict.Dropped++
		}
		if e.declined || e.dropped {
			continue
		}
		if r := t.recall(e.key); r != nil {
			c.verdict.Records[i] = r
			c.verdict.Known++
			if r.Status != record.OK && r.Status != record.Skipped || r.Stats == nil {
				continue
			}
			arms[i].Known, arms[i].Beaten = search.Score(costsOf(r, t.Objective)), r.Stats.Stop == stopOutraced
		}
		running = append(running, i)
	}
	o.Dropped = c.verdict.Dropped
	v, err := c.run(ctx, arms, running, o)
	if err != nil {
		return nil, err
	}
	for i, a := range arms { // the search has scores of known candidates, not medians
		if a.Known > 0 && len(v.Samples[i]) == 0 {
			v.Medians[i] *= costOf(v.Records[i], t.Objective) / a.Known
		}
	}
	v.recall()
	t.prior.Add(v)
	return v, nil
}

// hints returns the settings that won elsewhere as records of this device.
func (t *Tune) hints(p record.Point) (list []record.Record) {
	if t.Elsewhere == nil {
		return nil
	}
	for _, i := range t.Elsewhere(p) {
		list = append(list, record.Record{Point: p, Device: t.Device.Info().Key, Impl: i})
	}
	return list
}

func keysOf(list []record.Record) (keys []string) {
	for i := range list {
		keys = append(keys, list[i].Key())
	}
	return keys
}

// Knows reports whether a candidate of that key need not be measured.
func (t *Tune) Knows(key string) bool { return t.recall(key) != nil }

// recall returns the record by which key counts as known, or nil. Some records do not count: those
// that a budget or an interruption cut short, that a bound kept from running, that lost their worker,
// or that were never verified. A candidate skipped as unlikely stays known.
func (t *Tune) recall(key string) *record.Record {
	if t.Recall == nil {
		return nil
	}
	r := t.Recall(key)
	if r != nil && r.Mode.Objective != t.Objective {
		return nil
	}
	if r != nil && r.Status == record.OK && (r.Verify == nil || r.Stats == nil || costOf(r, t.Objective) == 0) {
		return nil
	}
	if r == nil || r.Stats != nil && (r.Stats.Stop == stopBudget || r.Stats.Stop == stopInterrupted) || r.Passing() || r.ReasonCode != nil && *r.ReasonCode == record.ReasonBound {
		return nil
	}
	return r
}

// A contest is the tuning of one point: it measures for the search.
type contest struct {
	*Tune
	verdict  *Verdict
	entrants []*entrant
	check    *verification
	order    []int   // entrants that are still to start, the next first
	leader   float64 // seconds, or joules, of the best so far
	began    *around.Counters
	launch   *float64 // seconds of a launch when the contest began; nil: unknown
}

// An entrant is a contender that may be running.
type entrant struct {
	*contender
	*candidate      // nil: it has not started, or has finished
	declined   bool // before it started
	ahead      bool // compilation of its kernels was started
	used       int  // when it ran last, counted in samples
	windows    []window
}

// decline records the entrants that cannot run.
func (c *contest) decline() error {
	for i, e := range c.entrants {
		if e.layout.Reason == "" {
			continue
		}
		e.declined = true
		if r := c.recall(e.key); r != nil {
			c.verdict.Records[i] = r
			continue
		}
		e.candidate = c.enter(&e.layout, e.spec)
		if err := c.finish(i); err != nil {
			return err
		}
	}
	return nil
}

// prepared lays e out.
func (c *contest) prepared(e *entrant) (err error) {
	e.candidate, err = c.prepare(c.verdict.Point, e.spec)
	return err
}

// finish records entrant i and frees its program.
func (c *contest) finish(i int) error {
	e := c.entrants[i]
	e.close()
	e.record.Mode.Objective = c.Objective
	err := c.emit(e.candidate)
	rec := e.record
	c.verdict.Records[i] = &rec
	e.candidate = nil
	return err
}

// run searches the entrants that running names.
func (c *contest) run(ctx context.Context, arms []search.Arm, running []int, o search.Options) (*Verdict, error) {
	defer func() {
		for _, e := range c.entrants {
			if e.candidate != nil {
				e.close()
			}
		}
	}()
	some := make([]search.Arm, len(running))
	incumbent := -1
	for k, i := range running {
		some[k] = arms[i]
		if i == o.Incumbent {
			incumbent = k
		}
	}
	o.Incumbent = incumbent
	c.launch = LaunchTime(c.Device)
	c.began = c.Around.Read()
	r, err := search.Run(ctx, some, &numbered{c, running}, o)
	if err != nil {
		return nil, errors.Join(err, c.recordInterrupted())
	}
	c.verdict.Result = renumber(r, running, len(arms))
	return c.verdict, nil
}

// numbered is the contest as the search sees it: arm k is entrant running[k].
type numbered struct {
	*contest
	running []int
}

func (n *numbered) Measure(ctx context.Context, arm int, limit float64) (float64, error) {
	return n.measureOne(ctx, n.running[arm], limit)
}

func (n *numbered) Plan(order []int) {
	for _, arm := range order {
		n.order = append(n.order, n.running[arm])
	}
}

func (n *numbered) Leave(arm int, why search.Reason) error { return n.leave(n.running[arm], why) }

// renumber turns r, in which arm k is entrant running[k], into a result about all n entrants.
func renumber(r *search.Result, running []int, n int) *search.Result {
	number := func(k int) int {
		if k < 0 {
			return k
		}
		return running[k]
	}
	all := *r
	all.Winner, all.Second, all.Fastest = number(r.Winner), number(r.Second), number(r.Fastest)
	all.Medians, all.Samples, all.Left, all.Ties = make([]float64, n), make([][]float64, n), make([]search.Reason, n), nil
	for k, i := range running {
		all.Medians[i], all.Samples[i], all.Left[i] = r.Medians[k], r.Samples[k], r.Left[k]
	}
	for _, k := range r.Ties {
		all.Ties = append(all.Ties, number(k))
	}
	return &all
}

// measureOne takes a sample of entrant i.
func (c *contest) measureOne(ctx context.Context, i int, limit float64) (float64, error) {
	e := c.entrants[i]
	first := e.candidate == nil
	if first {
		c.watch(Event{Phase: Laying, Point: c.verdict.Point, Label: e.spec.Label})
		if err := c.prepared(e); err != nil {
			return 0, err
		}
		if c.check == nil {
			c.check = newVerification(e.Problem, c.Settings, new(answers))
		}
		if !e.ahead {
			c.precompile()
		}
	}
	c.makeRoom(e)
	switch {
	case first:
		c.check.taken = c.loaded()
		c.readyOrRetry(ctx, e.candidate, c.check)
		if e.again.check != nil { // most take few samples, so the first one is checked, too
			e.again.at = []int{0, 1 + rand.IntN(max(1, c.Search.Rounds))}
		}
		runtime.GC() // frees what layout and check left, so that no sample includes it
	case e.prog == nil:
		if err := c.load(e.candidate); err != nil {
			c.fail(e.candidate, err)
		}
	}
	if cancelled(ctx) {
		return 0, ctx.Err()
	}
	if e.record.Status == record.OK {
		c.sampleOnce(ctx, e, first, limit)
	}
	if e.record.Status == record.OK && c.joules != nil {
		if err := c.count(ctx, e); err != nil {
			return 0, err
		}
	}
	switch {
	case cancelled(ctx): // which ends rivals
		return 0, ctx.Err()
	case e.record.Status != record.OK:
		return 0, c.out(i)
	}
	costs := c.costs(e)
	c.reportLeader(e, costs)
	return costs[len(costs)-1], nil
}

// out records entrant i, which cannot be measured, and returns an error that tells the search.
func (c *contest) out(i int) error {
	reason := *c.entrants[i].record.Reason
	if err := c.finish(i); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", reason, search.ErrOut)
}

// sampleOnce takes a sample. If the shortest run of the warm-up took longer than limit, it counts as
// the first sample.
func (c *contest) sampleOnce(ctx context.Context, e *entrant, first bool, limit float64) {
	if first && c.joules == nil && limit > 0 && e.last > limit && !math.IsInf(e.last, 0) { // infinite: there was no warm-up
		e.samples.Iters, e.samples.Wall = append(e.samples.Iters, 1), append(e.samples.Wall, e.last)
		if e.again.check != nil {
			reviewOnce(&c.Sweep, e.candidate)
		}
		return
	}
	c.watch(Event{Phase: Measuring, Point: c.verdict.Point, Label: e.spec.Label, Round: len(e.samples.Wall), Rounds: c.Search.Rounds})
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	c.take(ctx, e.candidate, true, len(e.samples.Wall)+1 == c.Search.Rounds)
}

// reportLeader reports e if it is the new best.
func (c *contest) reportLeader(e *entrant, costs []float64) {
	st, _ := record.Summarize(costs, 0)
	if c.leader == 0 || st.Median < c.leader {
		c.leader = st.Median
		if c.Leader != nil {
			c.Leader(c.verdict.Point, e.spec.Label, median(e.samples.Wall))
		}
	}
}

// makeRoom unloads the programs that ran longest ago until e fits in memory beside the others.
func (c *contest) makeRoom(e *entrant) {
	clock := 0
	for _, o := range c.entrants {
		clock = max(clock, o.used)
	}
	e.used = clock + 1
	limit := c.memory()
	if e.prog != nil || limit == 0 {
		return
	}
	var loaded []*entrant
	sum := e.memory + e.Laid + hostMemory(e.Problem)
	for _, o := range c.entrants {
		if o.candidate != nil && o.prog != nil {
			loaded, sum = append(loaded, o), sum+o.memory+o.Laid
		}
	}
	slices.SortFunc(loaded, func(a, b *entrant) int { return a.used - b.used })
	for _, o := range loaded {
		if sum <= limit {
			return
		}
		o.close()
		sum -= o.memory + o.Laid
	}
}

// loaded is the memory of the programs that are on the device, in bytes.
func (c *contest) loaded() (sum int64) {
	for _, o := range c.entrants {
		if o.candidate != nil && o.prog != nil {
			sum += o.memory + o.Laid
		}
	}
	return sum
}

const stopOutraced = "outraced" // others were faster

// leave records entrant i, which the search gave up for the reason why.
func (c *contest) leave(i int, why search.Reason) error {
	e := c.entrants[i]
	switch {
	case why == search.Bounded:
		if err := c.prepared(e); err != nil {
			return err
		}
		e.candidate.decline(record.Skipped, record.ReasonBound, fmt.Sprintf("its %d operations take at least %s, and another candidate ran faster",
			e.record.Work.Executed, quantity.SI(e.bound, "s")))
	case why == search.Unlikely: // not laid out again, which takes as long as a short sample
		e.candidate = c.enter(&e.layout, e.spec)
		e.candidate.decline(record.Skipped, record.ReasonUnlikely, "it was slower than others at nearby points")
	case e.candidate == nil || len(e.samples.Wall) == 0: // the budget was spent before
		return nil
	default:
		if why != search.Slower {
			reviewLast(&c.Sweep, e.candidate)
		}
		if e.record.Status != record.OK {
			return c.out(i)
		}
		c.conclude(e, map[search.Reason]string{
			search.Slower: stopOutraced, search.Spent: stopBudget, search.Finished: stopMax,
		}[why])
	}
	return c.finish(i)
}

// Candidates counts the candidates at p, how many of them would be dropped, and how many further
// settings have the same programs.
func (t *Tune) Candidates(ctx context.Context, p record.Point, specs []grid.Spec) (n, dropped, same int, err error) {
	list, same, err := t.contenders(ctx, p, specs, nil)
	for _, c := range list {
		if c.layout.Reason == "" {
			n++
		}
		if c.dropped {
			dropped++
		}
	}
	return n, dropped, same, err
}
