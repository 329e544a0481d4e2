package campaign

import (
	"context"
	"fmt"
	"math"
	"slices"

	"rnnbench/plots/quantity"
	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/search"
	"rnnbench/tuner/wisdom"
)

// A Replay searches among the records of runs, without a device.
type Replay struct {
	Sets   []record.Set // the runs
	Book   *wisdom.Book // gets the entries found
	Search search.Options

	Winners Winners
	Found   []wisdom.Entry
}

// Do searches at each point of recs.
func (y *Replay) Do(ctx context.Context, recs []record.Record) error {
	var all []*tuner.Replay
	priors := map[string]*tuner.Prior{} // by device and cache
	for _, group := range tuner.ByPoint(recs) {
		set := setOf(y.Sets, group[0])
		device, cache := group[0].Device, group[0].Mode.Cache
		where := device + " " + cache
		if priors[where] == nil {
			priors[where] = &tuner.Prior{}
		}
		r, err := tuner.NewReplay(ctx, group, tuner.Incumbent(y.Book, "", device, cache, group[0].Point), peakOf(set, device), priors[where], y.Search)
		if err != nil {
			return err
		}
		y.Winners.AddReplay(r)
		if r.Winner < 0 {
			continue
		}
		all = append(all, r)
		tool, libraries := versionsOf(set, device)
		e := r.Entry(cache, tool, libraries)
		y.Book.Put(e)
		y.Found = append(y.Found, e)
	}
	if len(all) > 0 {
		y.Winners.Notes = append(y.Winners.Notes, quality(all, y.Search.Strategy))
	}
	return nil
}

// Recorded lists how many candidates each recorded point has, and counts them all.
func Recorded(recs []record.Record) (list *Winners, candidates int) {
	list = &Winners{}
	for _, group := range tuner.ByPoint(recs) {
		n := tuner.CanRun(group)
		list.AddCandidates(group[0].Point, n, 0, 0)
		candidates += n
	}
	return list, candidates
}

// Unverified counts timed records whose answers were not checked.
func Unverified(recs []record.Record) (n int) {
	for i := range recs {
		if r := &recs[i]; r.Status == record.OK && r.Verify == nil {
			n++
		}
	}
	return n
}

// quality says in words how good a strategy is on the records of all points.
func quality(all []*tuner.Replay, strategy string) string {
	const near = 0.03
	within, worst, logs, time, whole := 0, 0.0, 0.0, 0.0, 0.0
	for _, r := range all {
		g := r.Regret()
		if g <= near {
			within++
		}
		worst, logs = max(worst, g), logs+math.Log1p(g)
		time, whole = time+r.Time, whole+r.All
	}
	return fmt.Sprintf("%s: within %.0f %% of the fastest at %d of %s (%s), in %s of the total time; regret: geometric mean %.2f %%, worst %.1f %%",
		strategy, 100*near, within, quantity.Plural(len(all), "point"), quantity.Percent(float64(within)/float64(len(all))), quantity.Percent(time/whole),
		100*math.Expm1(logs/float64(len(all))), 100*worst)
}

// setOf finds the run of a record.
func setOf(sets []record.Set, r *record.Record) *record.Set {
	i := slices.IndexFunc(sets, func(s record.Set) bool { return s.Manifest.Run == r.Run })
	return &sets[max(i, 0)]
}

// peakOf is the device's peak in FLOP/s that a run measured; 0: unknown or unsure.
func peakOf(s *record.Set, device string) float64 {
	for _, d := range s.Manifest.Devices {
		if d.Key == device {
			return d.PeakRate()
		}
	}
	return 0
}

// versionsOf returns the versions of a run's program and of a device's libraries.
func versionsOf(s *record.Set, device string) (tool string, libraries map[string]string) {
	for _, d := range s.Manifest.Devices {
		if d.Key == device {
			libraries = d.Facts
		}
	}
	return s.Manifest.Environment.Tool.Version, libraries
}
