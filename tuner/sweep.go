// Package tuner measures techniques on devices.
//
// A sweep takes points one after another. At each point it plans every technique
// and verifies its answer against the float64 reference. It then times them in
// rounds: techniques take turns in shuffled order, so that a machine whose speed
// drifts slows all of them alike. Results become records; nothing is printed here.
package tuner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"rnnbench/device"
	"rnnbench/model"
	"rnnbench/record"
	"rnnbench/record/around"
	"rnnbench/rnn"
	"rnnbench/rnn/axis"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A Sweep measures techniques on one device.
type Sweep struct {
	Device     device.Device
	Techniques []rnn.Technique
	Settings   config.Measure
	Limits     device.Limits  // of the device, as measured; zero: unknown
	Machine    *model.Machine // that floors are computed for; nil: unknown
	MaxMemory  int64          // bytes that a technique may take; 0: Free of the device
	Around     *around.Reader // of the counters that tell what disturbed a point; nil: none

	// Skip reports whether a record with that key exists already; nil: none does.
	Skip func(key string) bool
	// Emit receives each finished record. Its error ends the sweep.
	Emit func(*record.Record) error
	// Watch, where set, receives progress events, never during a sample.
	Watch func(Event)
	// Now, where set, is the clock by which warm-ups end and samples are charged.
	Now func() time.Time

	answers  answers
	backstop backstop
	energies energies
	tidier   tidier
	starts   int   // of the device that failed in a row
	share    share // of the budget
}

// An Event is one step of a sweep, for progress displays.
type Event struct {
	Phase  Phase
	Point  record.Point
	Label  string // of the current technique; "" for all
	Round  int    // rounds done
	Rounds int    // rounds planned
	Record *record.Record
}

// A Phase is what a sweep is doing.
type Phase string

// The phases of a point, in order.
const (
	Laying    Phase = "planning"
	Loading   Phase = "loading" // inputs and kernels, which may have to be compiled
	Verifying Phase = "verifying"
	Warming   Phase = "warming up"
	Measuring Phase = "measuring"
	Metering  Phase = "counting energy"
	Done      Phase = "done" // with one record
)

// ErrBudget ends a sweep whose time is up. What is left can be resumed.
var ErrBudget = errors.New("tuner: the time budget is spent")

// A Task is a point with the techniques that are to be measured there.
type Task struct {
	Point record.Point
	Specs []grid.Spec
}

// Run measures tasks in order, at least one whatever the budget. If ctx ends, Run returns its error;
// every finished record has been emitted.
func (s *Sweep) Run(ctx context.Context, tasks []Task) error {
	if err := checkCache(s.Device, s.Settings.Cache); err != nil {
		return err
	}
	s.share.began = time.Now()
	timeout := s.Settings.PointTimeout
	defer func() { s.Settings.PointTimeout = timeout }()
	tellRivals(s, ctx, ctx)
	user, limited := ctx, ctx // limited ends with the budget, which begins now; the first point may take longer
	if b := s.Settings.Budget; b > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, b, ErrBudget)
		defer cancel()
	}
	if s.Settings.Order == "random" { // of points, too
		tasks = slices.Clone(tasks)
		rng := rand.New(rand.NewPCG(s.Settings.Seed, 0))
		rng.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	}
	for i := 0; i < len(tasks); {
		next, err := s.survey(ctx, tasks[i:])
		if err != nil {
			return err
		}
		for _, all := range next {
			if err := ended(ctx); err != nil {
				return err
			}
			if part := s.share.next(s.Settings.Budget, len(tasks)-i); timeout > 0 && s.Settings.Until == config.UntilClear {
				s.Settings.PointTimeout = max(timeout, part) // an open point may use its share
			}
			if err := s.point(ctx, i, all); err != nil {
				return err
			}
			i++
			if len(all) > 0 {
				ctx = limited
				tellRivals(s, user, limited)
			}
		}
	}
	return nil
}

// ended returns ErrBudget or the context's error if the sweep has to stop, else nil. It reads the
// clock, because a timer may be late while workers spin.
func ended(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && time.Now().After(end) {
		<-ctx.Done()
	}
	if errors.Is(context.Cause(ctx), ErrBudget) {
		return ErrBudget
	}
	return ctx.Err()
}

// survey lays out the next tasks, without what has a record already. On a device that compiles
// kernels it takes several tasks, so that their kernels compile side by side. The list ends early at
// large schedules, which take memory, and after a second, since the budget may end the sweep first.
func (s *Sweep) survey(ctx context.Context, tasks []Task) ([][]*candidate, error) {
	const (
		most = 1 << 15 // operations
		far  = 16      // tasks
		long = time.Second
	)
	ahead, _ := s.Device.(device.Precompiler)
	start := time.Now()
	list := make([][]*candidate, 0, far)
	for operations := 0; len(list) < min(far, len(tasks)); {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		task := tasks[len(list)]
		var all []*candidate
		for _, spec := range task.Specs {
			s.watch(Event{Phase: Laying, Point: task.Point, Label: spec.Label})
			c, err := s.draft(task.Point, spec)
			if err != nil {
				return nil, err
			}
			done, err := c.recorded(s)
			if err != nil {
				return nil, err
			}
			if done {
				continue
			}
			if c.Reason == "" && ahead != nil && c.record.Rival == nil {
				ahead.Precompile(c.Schedule, c.DeviceKnobs)
			}
			all = append(all, c)
			operations += c.record.Work.Ops
		}
		if list = append(list, all); ahead == nil || operations > most || s.starts >= mostStarts || time.Since(start) > long {
			break
		}
	}
	for _, all := range list {
		for _, c := range all {
			if err := s.weigh(c); err != nil {
				return nil, err
			}
			if c.record.Status == record.OK {
				s.checkMemory(c)
			}
		}
	}
	return list, nil
}

// checkCache refuses cold caches on a device that cannot empty its caches.
func checkCache(d device.Device, cache string) error {
	if _, ok := d.(device.Evicter); cache == "cold" && !ok {
		return fmt.Errorf("tuner: device %s cannot empty its caches: use --cache hot", d.Info().Name)
	}
	return nil
}

// A candidate is one technique at one point.
type candidate struct {
	*Layout
	input  *rnn.Data
	prog   device.Program
	early  *error       // what loading it ahead of its turn came to; nil: it was not, or its turn has come
	floor  *model.Floor // nil: unknown
	record record.Record

	limit     int64   // bytes of memory when it was laid out; 0: none
	perSample int     // runs, or calls of a round
	last      float64 // seconds of the shortest run of the warm-up
	samples   record.Samples
	inputs    []float32     // that timed calls take in turns
	called    device.Called // all calls so far
	retried   bool          // after its worker was killed
	restarts  int           // since blocks of a kernel gave up waiting for each other
	again     recheck
}

// point measures all candidates of one point.
func (s *Sweep) point(ctx context.Context, index int, all []*candidate) error {
	var todo []*candidate
	defer func() {
		for _, c := range todo {
			c.close()
		}
	}()
	for _, c := range all {
		if c.record.Status != record.OK {
			if err := s.emit(c); err != nil {
				return err
			}
			continue
		}
		todo = append(todo, c)
	}
	if len(todo) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(s.Settings.Seed, uint64(index)))
	problem := todo[0].Problem
	check := newVerification(problem, s.Settings, &s.answers)
	for _, batch := range s.together(todo) {
		if err := s.measure(ctx, batch, check, rng); err != nil {
			return err
		}
	}
	return nil
}

// prepare lays one technique out. If that fails, the candidate has a status other than ok. Errors
// are mistakes of the user.
func (s *Sweep) prepare(p record.Point, spec grid.Spec) (*candidate, error) {
	c, err := s.draft(p, spec)
	if err != nil {
		return nil, err
	}
	return c, s.weigh(c)
}

// draft is prepare without asking for the device memory.
func (s *Sweep) draft(p record.Point, spec grid.Spec) (*candidate, error) {
	start := time.Now()
	limit := s.memory() // before laying out takes some
	l, err := draft(s.Device, s.Techniques, p, spec, limit)
	if l != nil && lost(err) {
		return s.lostCandidate(l, spec, err), nil
	}
	if err != nil {
		return nil, err
	}
	c := s.enter(l, spec)
	c.limit = limit
	if l.Reason != "" {
		return c, nil
	}
	c.record.Mode.Graph = l.DeviceKnobs["graph"] != 0
	w := &c.record.Work
	w.Executed, w.Bytes, w.Ops = l.Schedule.FLOPs(), l.Schedule.Traffic(), len(l.Schedule.Nodes)
	if l.Plan.Part {
		w.Flops = min(w.Flops, w.Executed)
	}
	for _, n := range l.Schedule.Nodes {
		w.Waits += len(n.Wait)
	}
	c.record.Cost.Setup = time.Since(start).Seconds()
	return c, nil
}

// enter makes a candidate of a layout. It is declined if the layout is.
func (s *Sweep) enter(l *Layout, spec grid.Spec) *candidate {
	c := &candidate{Layout: l, record: record.Record{
		Point: l.Point, Device: s.Device.Info().Key, Status: record.OK, Warnings: []string{},
		Impl:  record.Impl{Name: spec.Name, Label: spec.Label, Knobs: l.Settings(), Streams: max(1, l.Knobs["streams"]), Choice: spec.Choice},
		Mode:  record.Mode{Order: s.Settings.Order, Cache: s.Settings.Cache, Timer: "wall", Data: s.Settings.Data, Seed: s.Settings.Seed},
		Work:  record.Work{Model: "products", Flops: l.Problem.FLOPs(), Memory: l.Memory},
		Rival: rivalOf(l.Technique),
	}}
	if l.Reason != "" {
		c.decline(record.Skipped, l.Code, l.Reason)
	}
	return c
}

// weigh asks how much memory c takes.
func (s *Sweep) weigh(c *candidate) error {
	if c.record.Status != record.OK {
		return nil
	}
	start := time.Now()
	if err := c.Layout.weigh(s.Device); err != nil {
		if lost(err) || errors.Is(err, device.ErrHang) || errors.Is(err, device.ErrFault) {
			s.fail(c, err)
			return nil
		}
		return err
	}
	if c.record.Work.Memory = c.Memory; c.Reason != "" {
		c.decline(record.Skipped, c.Code, c.Reason)
	}
	c.record.Cost.Setup += time.Since(start).Seconds()
	return nil
}

func (c *candidate) decline(status record.Status, code, reason string) {
	c.record.Status, c.record.ReasonCode, c.record.Reason = status, &code, &reason
}

func (c *candidate) close() {
	if c.prog != nil {
		_ = c.prog.Close() // at the latest, the end of the process frees its memory
		c.prog = nil
	}
}

// checkMemory declines c if it would not fit in memory.
func (s *Sweep) checkMemory(c *candidate) {
	if pointer, ok := s.backstop.covers(c); ok {
		c.decline(record.Skipped, record.ReasonBackstop, pointer)
	} else if c.Fit(c.limit); c.Reason != "" {
		c.decline(record.Skipped, c.Code, c.Reason)
	}
}

// memory is how many bytes one technique may take; 0: unknown.
func (s *Sweep) memory() int64 {
	if s.MaxMemory > 0 {
		return s.MaxMemory
	}
	return Free(s.Device.Info())
}

// together groups candidates that fit in memory side by side, in one group if possible.
func (s *Sweep) together(all []*candidate) [][]*candidate {
	limit := s.memory()
	var groups [][]*candidate
	var laid, sum int64
	for _, c := range all {
		laid += c.Laid
	}
	for _, c := range all {
		need := c.record.Work.Memory
		if len(groups) == 0 || s.Settings.Order == "sequential" || limit > 0 && sum+need > limit {
			groups, sum = append(groups, nil), laid+hostMemory(c.Problem)
		}
		g := &groups[len(groups)-1]
		*g, sum = append(*g, c), sum+need
	}
	return groups
}

// A backstop remembers candidates that were expected to fit in memory and did not, so that larger
// points of the same technique are declined untried.
type backstop struct{ failed []*candidate }

func (b *backstop) add(c *candidate) {
	// Only the point is remembered, not what was laid out for it.
	b.failed = append(b.failed, &candidate{Layout: &Layout{Spec: c.Spec}, record: c.record})
}

func (b *backstop) covers(c *candidate) (string, bool) {
	for _, f := range b.failed {
		if q := f.record.Point; f.Spec.String() == c.Spec.String() && axis.TakesMore(c.record.Point, q) {
			return fmt.Sprintf("%s did not fit in memory at %v", c.Spec, q), true
		}
	}
	return "", false
}

func (s *Sweep) emit(c *candidate) error {
	if err := s.Emit(&c.record); err != nil {
		return err
	}
	s.watch(Event{Phase: Done, Point: c.record.Point, Label: c.Spec.Label, Record: &c.record})
	if s.Settings.OnError == "stop" && c.record.Status.Broken() {
		return fmt.Errorf("tuner: %v: %s: %s: stopped because of --on-error stop", c.record.Point, c.record.Status, *c.record.Reason)
	}
	return s.checkRestarts(c)
}

func (s *Sweep) watch(e Event) {
	if s.Watch != nil {
		s.Watch(e)
	}
}
