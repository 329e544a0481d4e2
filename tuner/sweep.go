// Package tuner measures techniques on devices.
//
// A sweep takes points one after the other. At each point every technique is
// laid out, checked against the float64 reference and then timed in rounds in
// which the techniques take turns in shuffled order, so that a machine whose
// speed drifts slows all of them alike. What happened becomes records; nothing
// is printed here.
package tuner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"rnnbench/device"
	"rnnbench/results"
	"rnnbench/rnn"
	"rnnbench/rnn/cell"
	"rnnbench/rnn/knob"
	"rnnbench/rnn/schedule"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
)

// A Sweep measures techniques on one device.
type Sweep struct {
	Device     device.Device
	Techniques []rnn.Technique
	Settings   config.Measure
	Limits     device.Limits // of the device, as measured; zero: unknown
	MaxMemory  int64         // bytes that a point may take; 0: what the device has free

	// Skip reports whether a record with that key exists already; nil: none do.
	Skip func(key string) bool
	// Emit keeps a finished record. An error ends the sweep.
	Emit func(*results.Record) error
	// Watch, where set, is told what is going on, never during a burst.
	Watch func(Event)

	evict []byte // see cold
}

// An Event is one step of a sweep, for progress displays.
type Event struct {
	Phase  Phase
	Point  results.Point
	Label  string // of the technique at hand; "" for all
	Round  int    // rounds done
	Rounds int    // rounds planned
	Record *results.Record
}

// A Phase is what a sweep is doing.
type Phase string

// The phases of a point, in order.
const (
	Laying    Phase = "laying out"
	Verifying Phase = "verifying"
	Warming   Phase = "warming up"
	Measuring Phase = "measuring"
	Done      Phase = "done" // with one record
)

// ErrBudget ends a sweep whose time is up. What is left can be resumed.
var ErrBudget = errors.New("tuner: the budget of time is spent")

// Run measures every technique of specs at every point. It returns the
// context's error if that ends it, with every finished record kept.
func (s *Sweep) Run(ctx context.Context, points []results.Point, specs []grid.Spec) error {
	start := time.Now()
	backstop := &backstop{}
	if s.Settings.Order == "random" { // of points, too
		points = slices.Clone(points)
		rng := rand.New(rand.NewPCG(s.Settings.Seed, 0))
		rng.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	}
	for i, p := range points {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b := s.Settings.Budget; b > 0 && time.Since(start) > b {
			return ErrBudget
		}
		if err := s.point(ctx, i, p, specs, backstop); err != nil {
			return err
		}
	}
	return nil
}

// A candidate is one technique at one point.
type candidate struct {
	spec   grid.Spec
	tech   rnn.Technique
	knobs  knob.Params // of the technique, complete
	dknobs knob.Params // of the device, complete
	plan   *rnn.Plan
	sched  *schedule.Schedule
	input  *rnn.Data
	prog   device.Program
	record results.Record

	perBurst int // runs
	last     float64
	samples  results.Samples
}

// Problem turns a point into a problem, or says which word or size is wrong.
func Problem(p results.Point) (rnn.Problem, error) {
	c := cell.Lookup(p.Cell)
	if c == nil {
		var names []string
		for _, c := range cell.All() {
			names = append(names, c.Name)
		}
		return rnn.Problem{}, fmt.Errorf("tuner: there is no cell %q: did you mean %s?", p.Cell, grid.Nearest(p.Cell, names))
	}
	q := rnn.Problem{
		Cell: c, Input: p.Input, Hidden: p.Hidden, Layers: p.Layers, Batch: p.Batch, Steps: p.Steps,
		Output: p.Output, OneHot: p.OneHot,
	}
	pass, precision := -1, -1
	for i, name := range rnn.Passes() {
		if name == p.Pass {
			pass = i
		}
	}
	for i, name := range rnn.Precisions() {
		if name == p.Precision {
			precision = i
		}
	}
	if pass < 0 {
		return rnn.Problem{}, fmt.Errorf("tuner: there is no pass %q: did you mean %s?", p.Pass, grid.Nearest(p.Pass, rnn.Passes()))
	}
	if precision < 0 {
		return rnn.Problem{}, fmt.Errorf("tuner: there is no precision %q: did you mean %s?", p.Precision, grid.Nearest(p.Precision, rnn.Precisions()))
	}
	q.Pass, q.Precision = rnn.Pass(pass), rnn.Precision(precision)
	return q, q.Check()
}

// point measures all techniques at one point.
func (s *Sweep) point(ctx context.Context, index int, p results.Point, specs []grid.Spec, backstop *backstop) error {
	var todo []*candidate
	defer func() {
		for _, c := range todo {
			c.close()
		}
	}()
	for _, spec := range specs {
		s.watch(Event{Phase: Laying, Point: p, Label: spec.Label})
		c, err := s.prepare(p, spec)
		if err != nil {
			return err
		}
		if s.Skip != nil && s.Skip(c.record.Key()) {
			continue
		}
		if c.record.Status == results.OK {
			s.checkMemory(c, backstop)
		}
		if c.record.Status != results.OK {
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
	problem := todo[0].plan.Problem
	check := newVerification(problem, s.Settings)
	for _, batch := range s.together(todo) {
		if err := s.measure(ctx, batch, check, rng); err != nil {
			return err
		}
	}
	return nil
}

// prepare lays one technique out. What cannot be laid out gets a status other
// than ok; only mistakes of the user's are errors.
func (s *Sweep) prepare(p results.Point, spec grid.Spec) (*candidate, error) {
	start := time.Now()
	problem, err := Problem(p)
	if err != nil {
		return nil, err
	}
	c := &candidate{spec: spec, record: results.Record{
		Point: p, Device: s.Device.Info().Key, Status: results.OK, Warnings: []string{},
		Impl: results.Impl{Name: spec.Name, Label: spec.Label, Knobs: map[string]int{}},
		Mode: results.Mode{Order: s.Settings.Order, Cache: s.Settings.Cache, Timer: "wall", Data: s.Settings.Data, Seed: s.Settings.Seed},
		Work: results.Work{Model: "products", Flops: problem.FLOPs()},
	}}
	for _, t := range s.Techniques {
		if t.Name() == spec.Name {
			c.tech = t
		}
	}
	if c.tech == nil {
		var names []string
		for _, t := range s.Techniques {
			names = append(names, t.Name())
		}
		return nil, fmt.Errorf("tuner: there is no technique %q: did you mean %s?", spec.Name, grid.Nearest(spec.Name, names))
	}
	if info := s.Device.Info(); !slices.Contains(info.Precision, p.Precision) {
		c.decline(results.Skipped, results.ReasonPrecision, fmt.Sprintf("%s computes in %s, not in %s", info.Name, strings.Join(info.Precision, ", "), p.Precision))
		for name, v := range spec.Knobs {
			c.record.Impl.Knobs[name] = v
		}
		return c, nil
	}
	// Device knobs depend on the schedule, so the technique comes first with
	// the settings that it knows.
	settings := knob.Params{}
	for name, v := range spec.Knobs {
		settings[name] = v
	}
	offered := c.tech.Knobs(problem)
	if p.Streams > 0 {
		has := false
		for _, k := range offered {
			has = has || k.Name == "streams"
		}
		switch {
		case has:
			settings["streams"] = p.Streams
		case p.Streams > 1:
			c.decline(results.Skipped, results.ReasonShape, fmt.Sprintf("%s runs on one stream, not %d", spec.Name, p.Streams))
			for name, v := range settings {
				c.record.Impl.Knobs[name] = v
			}
			return c, nil
		}
	}
	rest, own := settings.Split(offered)
	if c.knobs, err = own.Complete(offered); err != nil {
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	for name, v := range c.knobs {
		c.record.Impl.Knobs[name] = v
	}
	c.record.Impl.Streams = max(1, c.knobs["streams"])
	c.plan, c.sched, err = rnn.Layout(c.tech, problem, c.knobs)
	if errors.Is(err, schedule.ErrUnsupported) {
		c.decline(results.Skipped, results.ReasonShape, err.Error())
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if c.dknobs, err = rest.Complete(s.Device.Knobs(c.sched)); err != nil {
		if len(rest) > 0 && len(s.Device.Knobs(c.sched)) == 0 { // name the technique's knobs: that is what was meant
			_, err = settings.Complete(offered)
		}
		return nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	for name, v := range c.dknobs {
		c.record.Impl.Knobs[name] = v
	}
	c.record.Mode.Graph = c.dknobs["graph"] != 0
	w := &c.record.Work
	w.Executed, w.Bytes, w.Ops = c.sched.FLOPs(), c.sched.Traffic(), len(c.sched.Nodes)
	for _, n := range c.sched.Nodes {
		w.Waits += len(n.Wait)
	}
	if w.Memory, err = s.Device.Memory(c.sched, c.dknobs); errors.Is(err, schedule.ErrUnsupported) {
		c.decline(results.Skipped, results.ReasonResource, err.Error())
		return c, nil
	} else if err != nil {
		return nil, err
	}
	c.record.Cost.Setup = time.Since(start).Seconds()
	return c, nil
}

func (c *candidate) decline(status results.Status, code, reason string) {
	c.record.Status, c.record.ReasonCode, c.record.Reason = status, &code, &reason
}

func (c *candidate) close() {
	if c.prog != nil {
		_ = c.prog.Close() // its memory goes with the process at the latest
		c.prog = nil
	}
}

// checkMemory declines what would not fit.
func (s *Sweep) checkMemory(c *candidate, b *backstop) {
	if pointer, ok := b.covers(c); ok {
		c.decline(results.Skipped, results.ReasonBackstop, pointer)
		return
	}
	limit := s.memory()
	if need := c.record.Work.Memory + hostMemory(c.plan.Problem); limit > 0 && need > limit {
		c.decline(results.Skipped, results.ReasonMemory,
			fmt.Sprintf("needs %s and %s are free", bytes(need), bytes(limit)))
		b.add(c)
	}
}

// memory is what one technique may take, 0 if unknown. A tenth stays free.
func (s *Sweep) memory() int64 {
	if s.MaxMemory > 0 {
		return s.MaxMemory
	}
	return s.Device.Info().Memory / 10 * 9
}

// hostMemory is what inputs and the answer take besides the device's memory.
func hostMemory(p rnn.Problem) int64 {
	weights := 0
	for l := range p.Layers {
		weights += p.Hidden * (len(p.Cell.Gates)*p.Width(l) + p.Cell.Recurrent*p.Hidden)
	}
	return 8 * int64(weights)
}

func bytes(n int64) string {
	const units = "KMGTPE"
	v, u := float64(n), -1
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	if u < 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %ciB", v, units[u])
}

// together groups candidates that can be in memory side by side, all of them
// if possible.
func (s *Sweep) together(all []*candidate) [][]*candidate {
	limit := s.memory()
	var groups [][]*candidate
	var sum int64
	for _, c := range all {
		need := c.record.Work.Memory
		if len(groups) == 0 || s.Settings.Order == "sequential" || limit > 0 && sum+need > limit {
			groups, sum = append(groups, nil), hostMemory(c.plan.Problem)
		}
		g := &groups[len(groups)-1]
		*g, sum = append(*g, c), sum+need
	}
	return groups
}

// A backstop remembers what did not fit, so that larger points of the same
// technique are not tried one by one.
type backstop struct{ failed []*candidate }

func (b *backstop) add(c *candidate) {
	// Only the point is remembered, not what was laid out for it.
	b.failed = append(b.failed, &candidate{spec: c.spec, record: c.record})
}

func (b *backstop) covers(c *candidate) (string, bool) {
	p := c.record.Point
	for _, f := range b.failed {
		q := f.record.Point
		if f.spec.String() == c.spec.String() && f.record.ReasonCode != nil && *f.record.ReasonCode == results.ReasonOOM &&
			p.Cell == q.Cell && p.Pass == q.Pass && p.Precision == q.Precision && p.OneHot == q.OneHot &&
			p.Hidden >= q.Hidden && p.Input >= q.Input && p.Batch >= q.Batch && p.Steps >= q.Steps && p.Layers >= q.Layers && p.Output >= q.Output {
			return fmt.Sprintf("%s did not fit at %v", c.spec, q), true
		}
	}
	return "", false
}

func (s *Sweep) emit(c *candidate) error {
	if err := s.Emit(&c.record); err != nil {
		return err
	}
	s.watch(Event{Phase: Done, Point: c.record.Point, Label: c.spec.Label, Record: &c.record})
	if s.Settings.OnError == "stop" && (c.record.Status == results.Failed || c.record.Status == results.Incorrect || c.record.Status == results.Timeout) {
		return fmt.Errorf("tuner: %v: %s: %s: stopped as --on-error stop asks", c.record.Point, c.record.Status, *c.record.Reason)
	}
	return nil
}

func (s *Sweep) watch(e Event) {
	if s.Watch != nil {
		s.Watch(e)
	}
}
