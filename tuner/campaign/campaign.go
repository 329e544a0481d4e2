// Package campaign tunes many points: on a device, with the records of earlier runs, or only among the
// records of runs.
package campaign

import (
	"context"
	"slices"
	"time"

	"rnnbench/record"
	"rnnbench/tuner"
	"rnnbench/tuner/agenda"
	"rnnbench/tuner/grid"
	"rnnbench/tuner/wisdom"
)

// A Campaign tunes the points of an agenda one after another. It saves what it finds at once: records in a
// run, winners in the run's manifest and in the wisdom.
type Campaign struct {
	Tune   *tuner.Tune
	Agenda agenda.Agenda
	Budget time.Duration // of all points; 0: no limit
	Known  map[string]*record.Record

	Book      *wisdom.Book
	Path      string            // of the book; "": it is not saved
	RunPath   string            // second file, for the winners of this campaign only; "": none
	Cache     string            // "hot" or "cold", for the book's entries
	Tool      string            // version of the program
	Libraries map[string]string // versions of the device's libraries

	// Begin creates the run's folder, or opens the run to resume.
	Begin func() (*record.Run, error)
	// Instead, where set, replaces tuning at each point. Its winners do not go into the book.
	Instead func(context.Context, record.Point, []grid.Spec) (*tuner.Verdict, error)
	// Tuned receives each verdict.
	Tuned func(*tuner.Verdict)

	Run     *record.Run // nil: nothing was measured yet
	Kept    bool        // the book has a winner
	Winners Winners
	Records []record.Record // of all candidates
	chosen  []record.Winner // of the points tuned so far
}

// Do tunes every point. Results found before an error stay saved.
func (c *Campaign) Do(ctx context.Context) error {
	start := time.Now()
	c.Tune.Recall = func(key string) *record.Record { return c.Known[key] }
	c.Tune.Emit, c.Tune.Elsewhere = c.append, c.elsewhere
	c.Tune.Search.Spent = func() bool { return c.Budget > 0 && time.Since(start) > c.Budget }
	left := c.Agenda.Points()
	return c.Agenda.Each(func(at record.Point, specs []grid.Spec) error {
		if c.Budget > 0 { // a point whose winner is open may use its share of what is left
			until := time.Now().Add(time.Until(start.Add(c.Budget)) / time.Duration(max(1, left)))
			c.Tune.Search.Longer = func() bool { return time.Now().Before(until) }
		}
		left--
		if c.Tune.Search.Spent() {
			return tuner.ErrBudget
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		return c.point(ctx, at, specs)
	})
}

// elsewhere lists the settings that won at or near a point on other machines.
func (c *Campaign) elsewhere(at record.Point) []record.Impl {
	return tuner.Elsewhere(c.Book, c.Tune.Objective, c.Tune.Device.Info().Key, c.Cache, at)
}

// Elsewhere counts the points at or near which other machines have winners.
func (c *Campaign) Elsewhere() (n int) {
	_ = c.Agenda.Each(func(at record.Point, _ []grid.Spec) error {
		if len(c.elsewhere(at)) > 0 {
			n++
		}
		return nil
	})
	return n
}

// point tunes one point.
func (c *Campaign) point(ctx context.Context, at record.Point, specs []grid.Spec) error {
	find := c.Instead
	if find == nil {
		find = func(ctx context.Context, at record.Point, specs []grid.Spec) (*tuner.Verdict, error) {
			return c.Tune.Tune(ctx, at, specs, tuner.Incumbent(c.Book, c.Tune.Objective, c.Tune.Device.Info().Key, c.Cache, at))
		}
	}
	v, err := find(ctx, at, specs)
	if err != nil {
		return err
	}
	c.Tuned(v)
	if err := c.won(v); err != nil {
		return err
	}
	for _, r := range v.Records {
		if r != nil {
			c.Records = append(c.Records, *r)
		}
	}
	c.Winners.Add(v)
	if v.Winner < 0 || c.Instead != nil || v.WinnerRecord().Rival != nil { // auto cannot choose a rival
		return nil
	}
	return c.keep(v)
}

// Open starts the run even if nothing will be measured.
func (c *Campaign) Open() (err error) {
	c.Run, err = c.Begin()
	return err
}

// append saves a record. The first one starts the run, so there is no run if everything is known
// already. It leaves out an old winner that ran again for comparison, if the resumed run has its
// record.
func (c *Campaign) append(r *record.Record) error {
	if c.Run == nil {
		if err := c.Open(); err != nil {
			return err
		}
	}
	if c.Run.Done(r.Key()) && c.Tune.Knows(r.Key()) {
		return nil
	}
	return c.Run.Append(r)
}

// keep writes the winner into the book at once, so that an interruption cannot lose it.
func (c *Campaign) keep(v *tuner.Verdict) error {
	e := v.Entry(c.Cache, c.Tool, c.Libraries)
	if c.RunPath != "" {
		if _, err := wisdom.Update(c.RunPath, func(b *wisdom.Book) bool { b.Put(e); return true }); err != nil {
			return err
		}
	}
	if c.Path == "" {
		return nil
	}
	if err := c.Book.Keep(c.Path, e); err != nil {
		return err
	}
	c.Kept = true
	return nil
}

// won adds the winner to the run's manifest, which reports read, if there is a run.
func (c *Campaign) won(v *tuner.Verdict) error {
	if w := v.WinnerRecord(); w != nil {
		run := w.Run
		if run == "" && c.Run != nil { // measured just now
			run = c.Run.Manifest().Run
		}
		seconds, joules := v.Cost()
		c.chosen = append(c.chosen, record.Winner{Point: v.Point, Label: w.Label(), Seconds: seconds, Joules: joules, Run: run, Ties: v.TieLabels(), Dropped: v.Dropped})
	}
	if c.Run == nil {
		return nil
	}
	return c.Run.Update(func(m *record.Manifest) {
		for _, w := range c.chosen {
			if i := slices.IndexFunc(m.Winners, func(old record.Winner) bool { return old.Point == w.Point }); i >= 0 {
				m.Winners[i] = w
			} else {
				m.Winners = append(m.Winners, w)
			}
		}
	})
}

// Candidates lists how many candidates each point has, without measuring. tell is called before each
// point with the number of points done.
func (c *Campaign) Candidates(ctx context.Context, tell func(done int)) (*Winners, error) {
	list := &Winners{}
	err := c.Agenda.Each(func(at record.Point, specs []grid.Spec) error {
		tell(list.Points())
		n, dropped, same, err := c.Tune.Candidates(ctx, at, specs)
		if err == nil {
			list.AddCandidates(at, n, same, dropped)
		}
		return err
	})
	return list, err
}
