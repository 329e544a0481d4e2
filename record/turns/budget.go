package turns

import (
	"context"
	"time"

	"rnnbench/record"
)

// A Budget limits how long two programs run in turns.
type Budget struct {
	Time time.Duration
	Most int // runs of each program
}

// Within runs both programs in turns until another pair of runs would probably exceed the budget. One pair
// always runs. Runs that finished before count, with the time that they took.
func (t *Turns) Within(ctx context.Context, b Budget, tell func(Turn)) error {
	var longest [2]time.Duration
	var spent time.Duration
	for side, runs := range t.Done {
		for _, run := range runs {
			m, err := record.ReadManifest(run)
			if err != nil {
				return err
			}
			took := m.Finished.Sub(m.Started)
			longest[side], spent = max(longest[side], took), spent+took
		}
	}
	start := time.Now()
	for {
		t.Runs = b.pairs(min(len(t.Done[0]), len(t.Done[1])), spent+time.Since(start), longest[0]+longest[1])
		if t.Runs == 0 {
			return nil
		}
		err := t.Run(ctx, func(x Turn) {
			for side, p := range t.Programs {
				if p.Label == x.Label {
					longest[side] = max(longest[side], x.Took)
				}
			}
			tell(x)
		})
		if err != nil {
			return err
		}
		t.Seed++
	}
}

// pairs is how many pairs of runs to make next: two in mirrored order, if both fit. longest is the time of
// the longest pair so far.
func (b Budget) pairs(done int, spent, longest time.Duration) int {
	switch left := b.Time - spent; {
	case done == 0:
		return min(1, b.Most)
	case done >= b.Most || left < longest:
		return 0
	case done+1 == b.Most || left < 2*longest:
		return 1
	}
	return 2
}
