package auto

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// mostRacing is how many contenders race at most.
const mostRacing = 4

// race measures the contenders that the model cannot tell from the best. all is sorted by predicted
// time. ok is false if there is nothing to race or nothing could be measured.
func (o *Oracle) race(p record.Point, all []contender, remarks string) (s grid.Spec, ok bool) {
	if o.Race == nil {
		return s, false
	}
	var specs []grid.Spec
	for _, c := range all {
		if len(specs) < mostRacing && c.seconds <= all[0].seconds*(1+2*all[0].error) {
			specs = append(specs, c.spec)
		}
	}
	if len(specs) < 2 {
		return s, false
	}
	times := o.Race(p, specs)
	first, second := -1, -1
	for i, t := range times {
		switch {
		case t == 0:
		case first < 0 || t < times[first]:
			first, second = i, first
		case second < 0 || t < times[second]:
			second = i
		}
	}
	if first < 0 {
		return s, false
	}
	x := &record.Expected{Seconds: all[first].seconds, Error: all[first].error}
	c := record.Choice{Match: Raced, Expected: x, Why: fmt.Sprintf("the fastest of %d in a short race", len(specs))}
	if second >= 0 {
		x.RunnerUp, x.Margin = o.format(p, specs[second]), times[second]/times[first]-1
		c.Why += fmt.Sprintf("; %s was %s slower", x.RunnerUp, quantity.Percent(x.Margin))
	}
	c.Why += remarks
	return o.choose(p, specs[first], c), true
}

// The length of a race: a few samples of each contender. Answers are not checked; whoever runs the
// winner checks its answer.
const (
	raceRounds  = 6
	raceWarmup  = 10 * time.Millisecond
	raceSample  = 3 * time.Millisecond
	raceTimeout = 5 * time.Second
)

// Measure races specs at p, and keeps the winner in the book at path, unless that is "". It returns
// the seconds of a run of each spec; 0: not measured.
func (o *Oracle) Measure(ctx context.Context, path string, p record.Point, specs []grid.Spec) []float64 {
	settings := config.Default()
	settings.Rounds, settings.MaxRounds, settings.Warmup, settings.MinTime, settings.MinIters = raceRounds, raceRounds, raceWarmup, raceSample, 1
	settings.PointTimeout, settings.Verify, settings.Cache = raceTimeout, false, o.Cache
	times := make([]float64, len(specs))
	first := -1
	var winner record.Record
	named := make([]grid.Spec, len(specs))
	for i, s := range specs {
		s.Label = fmt.Sprintf("contender %d", i+1)
		named[i] = s
	}
	sweep := tuner.Sweep{Device: o.Device, Techniques: o.Techniques, Settings: settings, MaxMemory: o.Limit}
	sweep.Emit = func(r *record.Record) error {
		i := slices.IndexFunc(named, func(s grid.Spec) bool { return s.Label == r.Impl.Label })
		if times[i] = r.Seconds(); times[i] > 0 && (first < 0 || times[i] < times[first]) {
			first, winner = i, *r
		}
		return nil
	}
	if err := sweep.Run(ctx, []tuner.Task{{Point: p, Specs: named}}); err != nil || first < 0 || path == "" {
		return times
	}
	e := wisdom.Entry{
		Device: o.Info.Key, Cache: o.Cache, Point: p, Impl: winner.Impl.Name, Knobs: winner.Impl.Knobs, Seconds: times[first],
		Tried: len(specs), Complete: true, By: wisdom.ByRace, Tool: o.Tool, Libraries: o.Libraries, Time: time.Now(),
	}
	for i, t := range times {
		if lead := t/times[first] - 1; i != first && t > 0 && (e.RunnerUp == "" || lead < e.Lead) {
			e.RunnerUp, e.Lead = o.format(p, specs[i]), lead
		}
	}
	_ = o.book.Keep(path, e) // if the book cannot be written, the next run races again
	return times
}
