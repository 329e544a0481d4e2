package main

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"rnnbench/plots/quantity"
	"rnnbench/results"
	"rnnbench/tuner"
	"rnnbench/tuner/config"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// tuneFrom searches among recorded runs.
func (p *program) tuneFrom(ctx context.Context, cmd *cobra.Command, f *tuneFlags, o search.Options) error {
	if name := given(cmd, append(grid.AxisNames(), "point", "preset", "zip", "impl", "skip-impl")); name != "" {
		return usage(fmt.Errorf("--%s selects points to measure, but --from searches recorded runs", name),
			"select records with --where, as in --where hidden=512 --where impl!=naive")
	}
	if name := given(cmd, []string{"device", "threads", "simd", "max-memory", "isolate", "cache", "data", "budget", "resume"}); name != "" {
		return misused(cmd, fmt.Errorf("--%s applies to measuring, but --from searches recorded runs: omit it", name))
	}
	c, err := f.resolve(p)
	if err != nil {
		return misused(cmd, err)
	}
	if f.print {
		return config.Print(p.out, c)
	}
	s := &selection{settings: f.settings, where: c.Grid.Where}
	sets, recs, err := s.read(p, cmd, f.from)
	if err != nil {
		return err
	}
	if f.dryRun {
		return p.dryReplay(recs, f.format)
	}
	book, path, err := f.book()
	if err != nil {
		return err
	}
	if f.regret {
		far := &regrets{}
		for _, group := range tuner.ByPoint(recs) {
			regretOf(book, group, f.vendor, far)
		}
		return far.write(p, f.format)
	}
	o.Seed, o.Rounds = c.Measure.Seed, c.Measure.MaxRounds
	unchecked := unverified(recs)
	if unchecked > 0 && unchecked < len(recs) {
		p.warn("%s of %s cannot win: unverified (--no-verify)", plural(unchecked, "record"), plural(len(recs), "record"))
	}
	list := &winners{}
	read := &wisdom.Book{Entries: slices.Clone(book.Entries)}
	var found []wisdom.Entry
	var all []*tuner.Replay
	forms := map[string]*tuner.Form{} // by device and cache
	for _, group := range tuner.ByPoint(recs) {
		set := setOf(sets, group[0])
		where := group[0].Device + " " + group[0].Mode.Cache
		if forms[where] == nil {
			forms[where] = &tuner.Form{}
		}
		r, err := tuner.NewReplay(ctx, group, incumbent(book, group[0].Device, group[0].Mode.Cache, group[0].Point), peakOf(set, group[0].Device), forms[where], o)
		if err != nil {
			return err
		}
		list.addReplay(r)
		if r.Winner < 0 {
			continue
		}
		all = append(all, r)
		tool, libraries := versionsOf(set, group[0].Device)
		e := entryOf(&r.Verdict, group[0].Mode.Cache, tool, libraries)
		book.Put(e)
		found = append(found, e)
	}
	if len(all) == 0 {
		return noWinner(len(recs), unchecked)
	}
	list.notes = append(list.notes, replayed(all, o))
	if err := list.write(p, f.format); err != nil {
		return err
	}
	if path == "" {
		return nil
	}
	if err := read.Keep(path, found...); err != nil {
		return err
	}
	p.note("wisdom saved to %s for --impl auto", path)
	return nil
}

// unverified counts records that have times of answers that were not checked.
func unverified(recs []results.Record) (n int) {
	for i := range recs {
		if r := &recs[i]; r.Status == results.OK && r.Verify == nil {
			n++
		}
	}
	return n
}

// given is the first of these flags that is; "": none is.
func given(cmd *cobra.Command, names []string) string {
	if i := slices.IndexFunc(names, cmd.Flags().Changed); i >= 0 {
		return names[i]
	}
	return ""
}

// dryReplay says how many recorded candidates each point has.
func (p *program) dryReplay(recs []results.Record, format string) error {
	list := &winners{}
	points, all := 0, 0
	for _, group := range tuner.ByPoint(recs) {
		candidates := tuner.CanRun(group)
		list.plan(group[0].Point, candidates, 0)
		points, all = points+1, all+candidates
	}
	p.note("%s: %s in %s", plural(points, "point"), plural(all, "candidate"), plural(len(recs), "record"))
	return list.write(p, format)
}

// replayed says how good a strategy is on the records of all points.
func replayed(all []*tuner.Replay, o search.Options) string {
	const near = 0.03
	within, worst, logs, time, whole, bursts := 0, 0.0, 0.0, 0.0, 0.0, 0
	for _, r := range all {
		g := r.Regret()
		if g <= near {
			within++
		}
		worst, logs = max(worst, g), logs+math.Log1p(g)
		time, whole, bursts = time+r.Time, whole+r.All, bursts+r.Evaluations
	}
	return fmt.Sprintf("%s: within %.0f %% of the fastest at %d of %s (%s), in %s of the total time; regret: geometric mean %.2f %%, worst %.1f %%",
		o.Strategy, 100*near, within, plural(len(all), "point"), quantity.Percent(float64(within)/float64(len(all))), quantity.Percent(time/whole),
		100*math.Expm1(logs/float64(len(all))), 100*worst)
}

// setOf finds the run that a record is of.
func setOf(sets []results.Set, r *results.Record) *results.Set {
	i := slices.IndexFunc(sets, func(s results.Set) bool { return s.Manifest.Run == r.Run })
	return &sets[max(i, 0)]
}

// peakOf is the peak of a device as a run measured it, 0 if it did not.
func peakOf(s *results.Set, device string) float64 {
	for _, d := range s.Manifest.Devices {
		if d.Key == device && d.Peak != nil {
			return *d.Peak
		}
	}
	return 0
}

// versionsOf are those of the program and the device that a run is of.
func versionsOf(s *results.Set, device string) (tool string, libraries map[string]string) {
	for _, d := range s.Manifest.Devices {
		if d.Key == device {
			libraries = d.Facts
		}
	}
	return s.Manifest.Environment.Tool.Version, libraries
}

// incumbent is what the book says of a point already; its name may be "".
func incumbent(b *wisdom.Book, device, cache string, p results.Point) results.Impl {
	for _, m := range b.Lookup(device, cache, p) {
		if m.Kind == wisdom.Exact {
			return results.Impl{Name: m.Impl, Knobs: m.Knobs}
		}
	}
	return results.Impl{}
}

// noWinner says why none of n records can win, unchecked of which are unverified.
func noWinner(n, unchecked int) error {
	const hint = "tune accepts only verified records: measure again without --no-verify"
	switch unchecked {
	case 0:
		return &failure{exitError, fmt.Errorf("none of the %s succeeded", plural(n, "record")), ""}
	case n:
		return &failure{exitError, fmt.Errorf("no record can win: %s, none verified", plural(n, "record")), hint}
	}
	return &failure{exitError, fmt.Errorf("no record can win: %d of %d are unverified and the others failed", unchecked, n), hint}
}
