package training_test

import (
	"errors"
	"testing"
	"time"

	"rnnbench/record"
	"rnnbench/train/training"
	"rnnbench/tuner"
)

// A clock advances by tick at each look at it, and otherwise as it is told.
type clock struct {
	at   time.Time
	tick time.Duration
}

func (c *clock) now() time.Time {
	c.at = c.at.Add(c.tick)
	return c.at
}

// TestDivide: a sweep takes a tenth of a budget before a training, and what the training leaves over.
func TestDivide(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		budget         time.Duration
		sweeps, trains time.Duration // what each takes in all
		fails          error         // of the sweep
		swept, trained time.Duration // how long each was at work
		want           error
	}{
		"no budget":              {0, 100, 900, nil, 100, 900, nil},
		"both are short":         {1000, 50, 300, nil, 50, 300, nil},
		"the sweep is long":      {1000, 5000, 5000, nil, 100, 900, tuner.ErrBudget},
		"the training is short":  {1000, 5000, 300, nil, 700, 300, tuner.ErrBudget},
		"the sweep ends later":   {1000, 400, 300, nil, 400, 300, nil},
		"the training is long":   {1000, 50, 5000, nil, 50, 950, tuner.ErrBudget},
		"the sweep breaks":       {1000, 50, 300, broken, 50, 0, broken},
		"the sweep outlasts all": {4, 5000, 300, nil, 4, 0, tuner.ErrBudget}, // its first point ends late
	} {
		k := &clock{}
		var swept, trained time.Duration
		work := func(done *time.Duration, needs, least time.Duration, fails error) func(time.Duration) error {
			return func(budget time.Duration) error {
				some := needs - *done
				if budget = max(budget, least); c.budget > 0 {
					some = min(some, budget)
				}
				k.at, *done = k.at.Add(some), *done+some
				if *done < needs {
					return tuner.ErrBudget
				}
				return fails
			}
		}
		err := training.Divide(c.budget, k.now, work(&swept, c.sweeps, 4, c.fails), work(&trained, c.trains, 0, nil))
		if !errors.Is(err, c.want) || swept != c.swept || trained != c.trained {
			t.Errorf("%s: swept %d, trained %d: %v; want %d, %d: %v", name, swept, trained, err, c.swept, c.trained, c.want)
		}
	}
}

// TestEvenShares: all networks get the same share of a budget, each ends with a record, and a
// second budget adds as much to each.
func TestEvenShares(t *testing.T) {
	list := networks(10_000_000, "naive", "persistent", "cudnnstyle", "scc")
	for i := range list {
		list[i].Training.Every = 1_000_000 // no record in between
	}
	dir, before := "", make([]int, len(list))
	for part := range 2 {
		j := newJob(t, dir, list)
		k := &clock{tick: time.Second} // which is asked once an iteration
		j.Now, j.Budget = k.now, 200*time.Second
		if err := j.Do(t.Context()); !errors.Is(err, tuner.ErrBudget) {
			t.Fatalf("a spent budget: %v", err)
		}
		recs := read(t, j)
		if len(recs) != (part+1)*len(list) {
			t.Errorf("%d records after part %d of %d networks", len(recs), part+1, len(list))
		}
		for i, n := range list {
			last := n.Latest(recs)
			if last == nil || last.Status != record.OK {
				t.Fatalf("%s has no share: %+v", n.Spec.Label, last)
			}
			if got := last.Training.Iterations - before[i]; got < 40 || got > 50 {
				t.Errorf("part %d: %s has %d iterations of 50", part+1, n.Spec.Label, got)
			}
			before[i] = last.Training.Iterations
		}
		dir = j.Run.Dir()
	}
}
